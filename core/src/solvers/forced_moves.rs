//! Forced moves (`forced_depth`): an immediate win, else the replies to an immediate threat.
//!
//! Only moves that lose at once are dropped, and only while another remains, so the game-theoretic value does not change.

use crate::games::{Action, World, CHANCE};

/// Returns whether the player to move has a winning move.
fn can_win_at_once<W: World>(state: &W::State, actions: &mut Vec<Action>) -> bool {
    W::legal_actions(state, actions);
    actions.iter().any(|&action| wins::<W>(state, action))
}

fn wins<W: World>(state: &W::State, action: Action) -> bool {
    let mut after = state.clone();
    W::play(&mut after, action);
    W::outcome(&after).is_some_and(|result| result * sign(W::to_play(state)) > 0)
}

fn sign(player: u8) -> i8 {
    1 - 2 * player as i8
}

/// Restricts `legal`, the legal actions of `state`, to the forced ones, if any.
pub fn keep_forced<W: World>(state: &W::State, legal: &mut Vec<Action>) {
    if legal.iter().any(|&action| wins::<W>(state, action)) {
        legal.retain(|&action| wins::<W>(state, action));
        return;
    }
    let mover = W::to_play(state);
    let mut replies = Vec::new();
    let safe: Vec<Action> = legal
        .iter()
        .copied()
        .filter(|&action| {
            let mut after = state.clone();
            W::play(&mut after, action);
            match W::outcome(&after) {
                Some(result) => result * sign(mover) >= 0,
                // Chance is no opponent, and nothing is forced behind it.
                None if W::HAS_CHANCE && W::to_play(&after) == CHANCE => true,
                None => W::to_play(&after) == mover || !can_win_at_once::<W>(&after, &mut replies),
            }
        })
        .collect();
    if !safe.is_empty() && safe.len() < legal.len() {
        *legal = safe;
    }
}
