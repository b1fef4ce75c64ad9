//! What is known of chess: evaluation, mates, hints of moves.

use crate::chess::endings::{self, Ending};
use crate::chess::evaluation::{bare_king, Pesto};
use crate::chess::mate::{checks_first, mate_search, Verdict};
use crate::chess::quiescence::Quiescence;
use crate::chess::{categorize, CategoryOptions};
use crate::games::analysis::{Exact, Knowledge, LeafAnalysis, MoveHint, OrderingContext, Priority, RootMate};
use crate::games::chess::Chess;
use crate::games::{Action, Game};

impl LeafAnalysis for Chess {
    fn value(&self, knowledge: &Knowledge) -> f64 {
        value(self, &knowledge.pesto, knowledge.quiescence)
    }

    fn mate(&self, knowledge: &Knowledge) -> Option<Exact> {
        match endings::ending(self).filter(|_| knowledge.endings) {
            Some(Ending::Wins(plies)) => Some(Exact { value: 1, plies }),
            Some(Ending::Loses(plies)) => Some(Exact { value: -1, plies }),
            // Valued as a draw, and not proven to be one: the search still looks for the moves that set problems.
            Some(Ending::Drawn) => None,
            None => {
                let (moves, _) = checks_first(self, knowledge.mate_depth, knowledge.mate_budget)?;
                Some(Exact { value: 1, plies: plies(moves) })
            }
        }
    }

    /// A table first, which knows everything; then full width, which finds the shortest mate and those by quiet moves; where its
    /// budget was too small, checks alone.
    fn root_mate(&self, knowledge: &Knowledge) -> Option<RootMate> {
        match endings::ending(self).filter(|_| knowledge.endings) {
            Some(Ending::Wins(plies)) => return Some(RootMate::Wins { line: endings::line(self), plies }),
            Some(Ending::Loses(_)) => {
                return Some(RootMate::Loses { line: endings::line(self), replies: how_each_move_is_answered(self)? })
            }
            Some(Ending::Drawn) => return None,
            None if knowledge.root_depth == 0 => return None,
            None => {}
        }
        let answer = mate_search(self, knowledge.root_depth, Some(knowledge.root_budget), &|| false).ok()?;
        match answer.verdict {
            Verdict::MateIn(moves) => Some(RootMate::Wins { line: answer.line, plies: plies(moves) }),
            Verdict::MatedIn(moves) => {
                let replies = how_each_move_loses(self, moves, knowledge.root_budget)?;
                Some(RootMate::Loses { line: answer.line, replies })
            }
            Verdict::Unknown => {
                let (moves, action) = checks_first(self, knowledge.root_depth, knowledge.mate_budget)?;
                Some(RootMate::Wins { line: vec![action], plies: plies(moves) })
            }
        }
    }

    fn hints(&self, knowledge: &Knowledge, context: OrderingContext<'_>, hints: &mut Vec<MoveHint>) {
        let options = CategoryOptions { killers: context.killers, see_threshold: knowledge.see_threshold, ..CategoryOptions::default() };
        let history = |action: Action| context.history.get(usize::from(action)).copied().unwrap_or(0.0);
        let mut found = Vec::with_capacity(Self::MAX_LEGAL);
        categorize(self, &options, history, &mut found);
        hints.clear();
        hints.extend(found.iter().map(|one| MoveHint { category: one.category as u8, weight: knowledge.weights[one.category as usize] }));
        if let (Some(Priority::Prior), Some(scores)) = (knowledge.priority, &knowledge.move_scores) {
            let mut left = hints.iter_mut();
            scores.factors(self, &found, |factor| left.next().into_iter().for_each(|kind| kind.weight *= factor));
        }
    }
}

/// Each legal move with the plies in which the other side mates after it, by the table of the ending.
fn how_each_move_is_answered(state: &Chess) -> Option<Vec<(Action, u16)>> {
    let plies = |(action, known)| match known {
        Some(Ending::Wins(plies)) => Some((action, plies)),
        _ => None,
    };
    endings::moves(state).into_iter().map(plies).collect()
}

/// Each legal move with the plies in which the other side mates after it, where it does within `moves`; None if `budget`
/// positions were too few for one of them.
fn how_each_move_loses(state: &Chess, moves: u32, budget: u64) -> Option<Vec<(Action, u16)>> {
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    let mate_after = |action: Action| {
        let mut next = state.clone();
        next.play(action);
        match mate_search(&next, moves, Some(budget), &|| false).ok()?.verdict {
            Verdict::MateIn(moves) => Some((action, plies(moves))),
            _ => None,
        }
    };
    legal.into_iter().map(mate_after).collect()
}

/// Mate in n moves is 2n - 1 plies.
fn plies(moves: u32) -> u16 {
    (2 * moves).saturating_sub(1) as u16
}

/// What a position is worth for the side to move, from -1 to 1; with `quiescence`, after the captures are played out. Against a
/// bare king, what is known of its end counts too.
/// Ends of the game are for the caller to know.
#[must_use]
pub fn value(state: &Chess, pesto: &Pesto, quiescence: bool) -> f64 {
    let board = state.board();
    let score = || if quiescence { Quiescence::default().search(board, pesto).score } else { pesto.eval(board) };
    match board.occupied().len() {
        0..=3 => bare_king::in_table(state).unwrap_or_else(|| pesto.squash(score())),
        _ => pesto.squash(score()) * bare_king::progress(board),
    }
}
