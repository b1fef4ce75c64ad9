//! Mate search for chess. Depth is counted in moves: mate in n is 2n - 1 plies.
//!
//! - `mate_search`: full-width and exact. Its proofs hold against every defence and respect every draw: stalemate, insufficient
//!   material, and, as below the root of every search, threefold repetition and the 50-move rule.
//! - `checks_first`: the shallow search at leaves. The attacker only gives check, so it may miss mates, but its mates are
//!   proven.

mod danger;
mod prover;
mod table;

use crate::chess::Checks;
use crate::error::Error;
use crate::games::chess::Chess;
use crate::games::Action;
use prover::{Attack, Prover};

/// Maximum depth, in moves.
pub const MAX_DEPTH: u32 = 64;

/// The result of a mate search for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It mates in that many moves; no shorter mate exists.
    MateIn(u32),
    /// It is mated in that many moves of the opponent; no defence is longer.
    MatedIn(u32),
    /// Neither within the depth, or the budget was exhausted.
    Unknown,
}

/// The result of `mate_search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MateResult {
    /// The proven result.
    pub verdict: Verdict,
    /// The principal variation to the mate; empty without a proof.
    pub line: Vec<Action>,
    /// Visited nodes.
    pub nodes: u64,
}

/// Searches the shortest mate for or against the side to move within `depth` moves.
///
/// `budget` bounds the nodes visited until the proof. `stop` is polled; if it returns true, the verdict is the one proven so far.
///
/// # Errors
/// `Error::GameOver` if the game is over without a claim, `Error::InvalidArgument` if `depth` is above `MAX_DEPTH`.
pub fn mate_search(state: &Chess, depth: u32, budget: Option<u64>, stop: &dyn Fn() -> bool) -> Result<MateResult, Error> {
    if let Some(termination) = state.termination() {
        return Err(Error::GameOver(format!(
            "the game is over ({}): there is no mate to search for in {}",
            termination.name(),
            state.fen()
        )));
    }
    if depth > MAX_DEPTH {
        return Err(Error::InvalidArgument(format!("depth must be at most {MAX_DEPTH} moves, not {depth}")));
    }
    let mut prover = Prover::new(state, depth, Attack::FullWidth, budget.unwrap_or(u64::MAX), stop);
    let verdict = shortest(&mut prover, state, depth).unwrap_or(Verdict::Unknown);
    let nodes = prover.nodes;
    let (n, attacks) = match verdict {
        Verdict::MateIn(n) => (n, true),
        Verdict::MatedIn(n) => (n, false),
        Verdict::Unknown => return Ok(MateResult { verdict, line: Vec::new(), nodes }),
    };
    // The budget bounds the proof alone; the line follows the transposition table.
    prover.budget = u64::MAX;
    let mut game = state.clone();
    let mut line = Vec::new();
    for mv in prover.line(state.board(), n as u8, attacks).unwrap_or_default() {
        line.push(game.action_of(mv)?);
        game.play_move(mv);
    }
    Ok(MateResult { verdict, line, nodes })
}

/// Deepens iteratively. Returns None if the search was cut off.
fn shortest(prover: &mut Prover<'_>, state: &Chess, depth: u32) -> Option<Verdict> {
    for n in 1..=depth {
        if prover.attacker_mates(state.board(), n as u8)? {
            return Some(Verdict::MateIn(n));
        }
        if prover.defender_is_mated_at_root(state.board(), n as u8)? {
            return Some(Verdict::MatedIn(n));
        }
    }
    Some(Verdict::Unknown)
}

/// Returns a mate within `depth` moves (at most `MAX_DEPTH`) in which every attacking move gives check: its length and first
/// action. None proves nothing. Visits at most `budget` nodes, none if there is no check.
#[must_use]
pub fn checks_first(state: &Chess, depth: u32, budget: u64) -> Option<(u32, Action)> {
    let board = state.board();
    // With a legal check the position is neither mate nor stalemate.
    if depth == 0 || !danger::is_in_danger(board) || !Checks::new(board).any(|_| true) || state.is_drawn_automatically() {
        return None;
    }
    let depth = depth.min(MAX_DEPTH);
    let mut prover = Prover::new(state, depth, Attack::Checks, budget, &|| false);
    for n in 1..=depth {
        if prover.attacker_mates(board, n as u8)? {
            prover.budget = u64::MAX;
            let mv = prover.attack_of(board, n as u8)??;
            return state.action_of(mv).ok().map(|action| (n, action));
        }
    }
    None
}
