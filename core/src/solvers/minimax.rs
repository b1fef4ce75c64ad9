//! Depth-limited minimax over terminal positions, which guards the root move of UCT (`minimax_depth`). Returns proofs only, within
//! a node budget. Nothing is proven behind a chance node.

use crate::games::{Action, World, CHANCE};

/// Node budget; moves undecided by then are `Unknown`.
const NODE_BUDGET: u32 = 1 << 20;
/// Nodes between two polls of `stop`.
const NODES_PER_CHECK: u32 = 1 << 10;

/// The proven result of a root action for the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A forced win, in plies.
    Win(u32),
    /// A forced loss.
    Loss,
    /// Neither, within the depth.
    Unknown,
}

struct Budget<'a> {
    left: u32,
    stop: &'a dyn Fn() -> bool,
}

/// Returns a verdict on each legal action of `state` by iterative deepening to `depth` plies, so that the shortest proofs come
/// first. If `stop` returns true, the remaining verdicts are `Unknown`.
#[must_use]
pub fn minimax<W: World>(state: &W::State, depth: u32, stop: &dyn Fn() -> bool) -> Vec<(Action, Verdict)> {
    let mut legal = Vec::new();
    W::legal_actions(state, &mut legal);
    let mover = W::to_play(state);
    let mut verdicts: Vec<(Action, Verdict)> = legal.into_iter().map(|action| (action, Verdict::Unknown)).collect();
    let mut budget = Budget { left: NODE_BUDGET, stop };
    for plies in 1..=depth {
        for (action, verdict) in verdicts.iter_mut().filter(|(_, verdict)| *verdict == Verdict::Unknown) {
            let mut after = state.clone();
            W::play(&mut after, *action);
            match solve::<W>(&after, plies - 1, mover, &mut budget) {
                Some(1) => *verdict = Verdict::Win(plies),
                Some(-1) => *verdict = Verdict::Loss,
                Some(_) => {}
                None => return verdicts,
            }
        }
    }
    verdicts
}

/// Returns +1 for a proven win of `player` within `depth` plies, -1 for a proven loss, 0 for neither, None if the budget is
/// exhausted.
fn solve<W: World>(state: &W::State, depth: u32, player: u8, budget: &mut Budget<'_>) -> Option<i8> {
    budget.left = budget.left.checked_sub(1)?;
    if budget.left.is_multiple_of(NODES_PER_CHECK) && (budget.stop)() {
        budget.left = 0;
        return None;
    }
    if let Some(result) = W::outcome(state) {
        return Some(result * (1 - 2 * player as i8));
    }
    if depth == 0 || W::HAS_CHANCE && W::to_play(state) == CHANCE {
        return Some(0);
    }
    let mut legal = Vec::new();
    W::legal_actions(state, &mut legal);
    let ours: i8 = if W::to_play(state) == player { 1 } else { -1 };
    let mut best = -ours;
    for action in legal {
        let mut after = state.clone();
        W::play(&mut after, action);
        let value = solve::<W>(&after, depth - 1, player, budget)?;
        if value == ours {
            return Some(ours);
        }
        if value == 0 {
            best = 0;
        }
    }
    Some(best)
}
