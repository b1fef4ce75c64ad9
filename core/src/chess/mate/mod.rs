//! Mate search for chess. Depth is counted in moves: mate in n is 2n - 1 plies.
//!
//! - `mate_search`: full-width and exact. Its proofs hold against every defence and respect every draw: stalemate, insufficient
//!   material, and, as below the root of every search, threefold repetition and the 50-move rule.
//! - `checks_first`: the shallow search at leaves. The attacker only gives check, so it may miss mates, but its mates are
//!   proven.
//!
//! `table` is the transposition table, `prover` the proof search.

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
    /// It mates in that many moves, and not sooner.
    MateIn(u32),
    /// It is mated in that many moves of the opponent, and can hold out as long.
    MatedIn(u32),
    /// Neither within the depth, or the budget was exhausted.
    Unknown,
}

/// The answer of `mate_search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The proven result.
    pub verdict: Verdict,
    /// The line to the mate with the best play of both sides; empty without a proof.
    pub line: Vec<Action>,
    /// Visited positions.
    pub nodes: u64,
}

/// Searches the shortest mate for or against the side to move within `depth` moves.
///
/// `budget` bounds the visited positions before a proof. If the polled `stop` returns true, the answer is what is proven by
/// then.
///
/// # Errors
/// `Error::GameOver` if the game is over by itself, `Error::InvalidArgument` if `depth` is above `MAX_DEPTH`.
pub fn mate_search(state: &Chess, depth: u32, budget: Option<u64>, stop: &dyn Fn() -> bool) -> Result<Answer, Error> {
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
        Verdict::Unknown => return Ok(Answer { verdict, line: Vec::new(), nodes }),
    };
    // The budget is for the proof; the line is read from the table.
    prover.budget = u64::MAX;
    let mut game = state.clone();
    let mut line = Vec::new();
    for mv in prover.line(state.board(), n as u8, attacks).unwrap_or_default() {
        line.push(game.action_of(mv)?);
        game.play_move(mv);
    }
    Ok(Answer { verdict, line, nodes })
}

/// Returns None if the search was cut off.
fn shortest(prover: &mut Prover<'_>, state: &Chess, depth: u32) -> Option<Verdict> {
    for n in 1..=depth {
        if prover.mates(state.board(), n as u8)? {
            return Some(Verdict::MateIn(n));
        }
        if prover.loses(state.board(), n as u8)? {
            return Some(Verdict::MatedIn(n));
        }
    }
    Some(Verdict::Unknown)
}

/// Returns a mate within `depth` moves (at most `MAX_DEPTH`) in which every attacking move gives check: its length and first
/// action. None proves nothing. Visits at most `budget` positions, none without a check to give.
#[must_use]
pub fn checks_first(state: &Chess, depth: u32, budget: u64) -> Option<(u32, Action)> {
    let board = state.board();
    // A check is a legal move: no mate and no stalemate.
    if depth == 0 || !danger::is_in_danger(board) || !Checks::new(board).any(|_| true) || state.is_drawn_automatically() {
        return None;
    }
    let depth = depth.min(MAX_DEPTH);
    let mut prover = Prover::new(state, depth, Attack::Checks, budget, &|| false);
    for n in 1..=depth {
        if prover.mates(board, n as u8)? {
            prover.budget = u64::MAX;
            let mv = prover.attack_of(board, n as u8)??;
            return state.action_of(mv).ok().map(|action| (n, action));
        }
    }
    None
}
