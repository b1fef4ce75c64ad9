//! Mate search for chess. Depth is counted in moves: mate in n is 2n - 1 plies.
//!
//! - `mate_search`: full-width and exact. What it claims is proven against every defence and respects every draw: stalemate,
//!   insufficient material, and, as everywhere below the root of a search, the third repetition and the 50-move rule.
//! - `checks_first`: the short look inside a tree. The attacker only gives check, so it may miss a mate, and claims no false one.
//!
//! `table.rs` keeps what is known, `prover.rs` proves.

mod danger;
mod prover;
mod table;

use crate::chess::Checks;
use crate::error::Error;
use crate::games::chess::Chess;
use crate::games::Action;
use prover::{Attack, Prover};

/// The largest depth, in moves.
pub const MAX_DEPTH: u32 = 64;

/// What a mate search found out, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It mates in so many moves, and not sooner.
    MateIn(u32),
    /// It is mated in so many moves of the other side whatever it plays, and can hold out so long.
    MatedIn(u32),
    /// Neither within the depth; or the budget was used up before it was decided.
    Unknown,
}

/// The answer of `mate_search`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What is proven.
    pub verdict: Verdict,
    /// The moves up to the mate, with the best play of both sides; empty if nothing is proven.
    pub line: Vec<Action>,
    /// Positions looked at.
    pub nodes: u64,
}

/// The shortest mate for or against the side to move within `depth` moves.
///
/// `budget` bounds the positions looked at while nothing is proven. `stop` is asked now and then; if it says so, the answer is
/// what is proven by then.
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
    // The budget was for the proof; its line is read off what the table kept of it.
    prover.budget = u64::MAX;
    let mut game = state.clone();
    let mut line = Vec::new();
    for mv in prover.line(state.board(), n as u8, attacks).unwrap_or_default() {
        line.push(game.action_of(mv)?);
        game.play_move(mv);
    }
    Ok(Answer { verdict, line, nodes })
}

/// None when the search was cut short.
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

/// A mate within `depth` moves (at most `MAX_DEPTH` are looked at) in which every move of the attacker gives check: in how many
/// moves, and its first action. None says nothing. At most `budget` positions are looked at; without a check to give, none.
#[must_use]
pub fn checks_first(state: &Chess, depth: u32, budget: u64) -> Option<(u32, Action)> {
    let board = state.board();
    // Where there is a check to give there is a move: no mate and no stalemate.
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
