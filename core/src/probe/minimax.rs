//! Depth-limited minimax over ends of the game alone: the guard of UCT's answer (seed 3's `minimax_depth`).
//! It says what is proven within the depth and nothing else, so that it can only mend an answer, never spoil it.

use crate::game::Action;
use crate::world::World;

/// What is proven of a root action, for the player to move at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A forced win in so many plies.
    Win(u32),
    /// A forced loss.
    Loss,
    /// Neither, within the depth.
    Unknown,
}

/// A verdict on each legal action of `state`, looking `depth` plies ahead.
#[must_use]
pub fn minimax<W: World>(state: &W::State, depth: u32) -> Vec<(Action, Verdict)> {
    let mut legal = Vec::new();
    W::legal_actions(state, &mut legal);
    let mover = W::to_play(state);
    let judge = |action: Action| {
        let mut after = state.clone();
        W::play(&mut after, action);
        // Deepening finds the shortest win, and most wins cheaply.
        for plies in 1..=depth {
            match solve::<W>(&after, plies - 1, mover) {
                1 => return Verdict::Win(plies),
                -1 => return Verdict::Loss,
                _ => {}
            }
        }
        Verdict::Unknown
    };
    legal.into_iter().map(|action| (action, judge(action))).collect()
}

/// +1: a win for `player` is forced within `depth` plies; -1: a loss; 0: neither. Recursion is as deep as `depth`.
fn solve<W: World>(state: &W::State, depth: u32, player: u8) -> i8 {
    if let Some(result) = W::outcome(state) {
        return result * (1 - 2 * player as i8);
    }
    if depth == 0 {
        return 0;
    }
    let mut legal = Vec::new();
    W::legal_actions(state, &mut legal);
    let ours: i8 = if W::to_play(state) == player { 1 } else { -1 };
    let mut best = -ours;
    for action in legal {
        let mut after = state.clone();
        W::play(&mut after, action);
        let value = solve::<W>(&after, depth - 1, player);
        if value == ours {
            return ours;
        }
        if value == 0 {
            best = 0;
        }
    }
    best
}
