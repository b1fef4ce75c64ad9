//! The leaf analysis of chess: static evaluation, mate search, ending tables, move categories.

use std::sync::Arc;

use crate::chess::endings::{self, Ending};
use crate::chess::evaluation::{bare_king, Pesto};
use crate::chess::mate::{checks_first, mate_search, Verdict, MAX_DEPTH};
use crate::chess::quiescence::Quiescence;
use crate::chess::{categorize, CategoryOptions, MoveCategory, MoveScores, CATEGORIES};
use crate::error::Error;
use crate::games::analysis::{Analyzed, LeafAnalysis, MoveHint, MoveOrdering, OrderingContext, Priority, ProvenResult, RootProof};
use crate::games::chess::Chess;
use crate::games::{Action, Game};

/// The settings of the chess analysis in one search.
#[derive(Clone, Debug)]
pub struct ChessAnalysis {
    /// The static evaluation.
    pub pesto: Arc<Pesto>,
    /// Whether leaves are valued by a quiescence search.
    pub quiescence: bool,
    /// Whether the three-piece ending tables are probed.
    pub endings: bool,
    /// Depth of the mate search at leaves, in moves; 0 disables it.
    pub mate_depth: u32,
    /// Node budget per mate search at a leaf.
    pub mate_budget: u64,
    /// Depth of the full-width mate search at the root, in moves; 0 disables it.
    pub root_depth: u32,
    /// Node budget per full-width mate search.
    pub root_budget: u64,
    /// Exchanges of at most this absolute value are equal, in centipawns.
    pub see_threshold: i32,
    /// The use of move categories; None disables them.
    pub priority: Option<Priority>,
    /// Prior factors by category, under `Priority::Prior`.
    pub weights: [f64; CATEGORIES],
    /// Learned move scores that scale priors, under `Priority::Prior`.
    pub move_scores: Option<Arc<MoveScores>>,
    /// Visits after which a good quiet move becomes a killer.
    pub killer_visits: u32,
}

impl Analyzed for Chess {
    type Analysis = ChessAnalysis;
}

/// Returns the set of one category, as a bit mask of tags.
const fn tag(category: MoveCategory) -> u16 {
    1 << category as u16
}

/// The categories of quiet moves.
const QUIET: u16 = {
    use MoveCategory::{Check, HistoryHeuristic, KillerMove1, KillerMove2, OtherQuiet};
    tag(KillerMove1) | tag(KillerMove2) | tag(Check) | tag(HistoryHeuristic) | tag(OtherQuiet)
};
/// The categories up to `Check`.
const TACTICAL: u16 = (1 << (MoveCategory::Check as u16 + 1)) - 1;

impl LeafAnalysis<Chess> for ChessAnalysis {
    fn check(&self) -> Result<(), Error> {
        for (name, depth) in [("mate_depth", self.mate_depth), ("root_depth", self.root_depth)] {
            if depth > MAX_DEPTH {
                return Err(Error::InvalidArgument(format!("{name} must be at most {MAX_DEPTH} moves, not {depth}")));
            }
        }
        if self.see_threshold < 0 {
            return Err(Error::InvalidArgument(format!("see_threshold must be at least 0, not {}", self.see_threshold)));
        }
        match self.weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            Some(weight) => Err(Error::InvalidArgument(format!("weights must be finite numbers above 0, not {weight}"))),
            None => Ok(()),
        }
    }

    fn value(&self, state: &Chess) -> f64 {
        value(state, &self.pesto, self.quiescence)
    }

    fn forced_result(&self, state: &Chess) -> Option<ProvenResult> {
        match self.table(state) {
            Some(Ending::Wins(plies)) => Some(ProvenResult { value: 1, plies }),
            Some(Ending::Loses(plies)) => Some(ProvenResult { value: -1, plies }),
            // Evaluated as a draw but not proven, so that the search still prefers moves that set problems.
            Some(Ending::Drawn) => None,
            None => {
                let (moves, _) = checks_first(state, self.mate_depth, self.mate_budget)?;
                Some(ProvenResult { value: 1, plies: plies(moves) })
            }
        }
    }

    /// Probes the ending tables, then searches for mates at full width, which finds the shortest; if that exceeds its budget, with
    /// checks alone.
    fn root_proof(&self, state: &Chess) -> Option<RootProof> {
        match self.table(state) {
            Some(Ending::Wins(plies)) => return Some(RootProof::Win { line: endings::line(state), plies }),
            Some(Ending::Loses(_)) => return Some(RootProof::Loss { line: endings::line(state), moves: replies_by_table(state)? }),
            Some(Ending::Drawn) => return None,
            None if self.root_depth == 0 => return None,
            None => {}
        }
        let result = mate_search(state, self.root_depth, Some(self.root_budget), &|| false).ok()?;
        match result.verdict {
            Verdict::MateIn(moves) => Some(RootProof::Win { line: result.line, plies: plies(moves) }),
            Verdict::MatedIn(moves) => {
                let replies = replies_by_search(state, moves, self.root_budget)?;
                Some(RootProof::Loss { line: result.line, moves: replies })
            }
            Verdict::Unknown => {
                let (moves, action) = checks_first(state, self.root_depth, self.mate_budget)?;
                Some(RootProof::Win { line: vec![action], plies: plies(moves) })
            }
        }
    }

    #[inline]
    fn ordering(&self) -> Option<MoveOrdering> {
        let default = MoveCategory::HistoryHeuristic;
        let hint = MoveHint { tag: default as u8, weight: self.weights[default as usize] };
        let proof = MoveCategory::ForcedMate as u8;
        let ordering =
            |priority| MoveOrdering { priority, killer_visits: self.killer_visits, quiet: QUIET, tactical: TACTICAL, proof, default: hint };
        self.priority.map(ordering)
    }

    fn move_hints(&self, state: &Chess, context: OrderingContext<'_>, hints: &mut Vec<MoveHint>) {
        let options = CategoryOptions { killers: context.killers, see_threshold: self.see_threshold, ..CategoryOptions::default() };
        let history = |action: Action| context.history.get(usize::from(action)).copied().unwrap_or(0.0);
        let mut found = Vec::with_capacity(Chess::MAX_LEGAL);
        categorize(state, &options, history, &mut found);
        hints.clear();
        hints.extend(found.iter().map(|one| MoveHint { tag: one.category as u8, weight: self.weights[one.category as usize] }));
        if let (Some(Priority::Prior), Some(scores)) = (self.priority, &self.move_scores) {
            let mut left = hints.iter_mut();
            scores.factors(state, &found, |factor| left.next().into_iter().for_each(|hint| hint.weight *= factor));
        }
    }
}

impl ChessAnalysis {
    fn table(&self, state: &Chess) -> Option<Ending> {
        self.endings.then(|| endings::ending(state)).flatten()
    }
}

/// Returns each legal move with the plies to the opponent's mate after it, from the ending tables.
fn replies_by_table(state: &Chess) -> Option<Vec<(Action, u16)>> {
    let plies = |(action, known)| match known {
        Some(Ending::Wins(plies)) => Some((action, plies)),
        _ => None,
    };
    endings::moves(state).into_iter().map(plies).collect()
}

/// Returns each legal move with the plies to the opponent's mate after it, by mate searches to depth `moves`; None if one of them
/// exceeds `budget` nodes.
fn replies_by_search(state: &Chess, moves: u32, budget: u64) -> Option<Vec<(Action, u16)>> {
    let mate_after = |action: Action| match mate_search(&state.after(action), moves, Some(budget), &|| false).ok()?.verdict {
        Verdict::MateIn(moves) => Some((action, plies(moves))),
        _ => None,
    };
    state.legal().into_iter().map(mate_after).collect()
}

/// Converts mate in n moves to plies, 2n - 1.
fn plies(moves: u32) -> u16 {
    (2 * moves).saturating_sub(1) as u16
}

/// Returns the value of a nonterminal position for the side to move, from -1 to 1; with `quiescence`, of the quiescence search.
/// Three-piece endings use their tables; positions against a bare king are scaled by progress towards mate.
#[must_use]
pub fn value(state: &Chess, pesto: &Pesto, quiescence: bool) -> f64 {
    let board = state.board();
    let score = || if quiescence { Quiescence::default().search(board, pesto).score } else { pesto.eval(board) };
    match board.occupied().len() {
        0..=3 => bare_king::in_table(state).unwrap_or_else(|| pesto.squash(score())),
        _ => pesto.squash(score()) * bare_king::progress(board),
    }
}
