//! What a search may know of a game beside its rules (seed 4): an evaluation, mates, hints of moves. Of our games only chess
//! has it; the others keep the defaults, which say nothing.

use std::sync::Arc;

use crate::chess::evaluation::Pesto;
use crate::chess::MoveScores;
use crate::error::Error;
use crate::games::connect_four::ConnectFour;
use crate::games::othello::Othello;
use crate::games::tic_tac_toe::TicTacToe;
use crate::games::Action;

/// Kinds of moves there are at most.
pub const CATEGORIES: usize = 10;

/// Moves of the categories up to this one promise something: those that mate, promote or capture without loss, killers, checks.
pub const LAST_TACTICAL: u8 = 6;

/// The category of a move that mates, or begins a mate that is known.
pub const FORCED_MATE: u8 = 0;

/// What the categories of moves are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Every move is tried once, in the order of the categories, before any is scored (seed 4).
    Strict,
    /// The moves that promise something are; then all are scored, tried or not.
    Tactical,
    /// They make priors larger or smaller.
    Prior,
}

/// The knowledge of one search.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The evaluation.
    pub pesto: Arc<Pesto>,
    /// Whether leaves are valued after the captures.
    pub quiescence: bool,
    /// Whether positions of three pieces are looked up in the tables of elementary endings.
    pub endings: bool,
    /// Moves in which mates are looked for; 0 looks for none.
    pub mate_depth: u32,
    /// Positions such a look may cost at a new position.
    pub mate_budget: u64,
    /// Moves in which they are looked for at the root, at full width; 0 looks for none.
    pub root_depth: u32,
    /// Positions the full-width look at the root may cost.
    pub root_budget: u64,
    /// Exchanges that win or lose no more than this are even, in centipawns.
    pub see_threshold: i32,
    /// None does without categories.
    pub priority: Option<Priority>,
    /// By category: what a prior is multiplied by, where categories shape the priors.
    pub weights: [f64; CATEGORIES],
    /// There, a prior is also multiplied by what its move's score says; None does without scores.
    pub move_scores: Option<Arc<MoveScores>>,
    /// A quiet move that is better than its position becomes a killer after so many visits.
    pub killer_visits: u32,
}

impl Knowledge {
    /// Refuses what no search can use.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the setting and its range.
    pub fn check(&self) -> Result<(), Error> {
        let most = crate::chess::mate::MAX_DEPTH;
        if self.mate_depth.max(self.root_depth) > most {
            return Err(Error::InvalidArgument(format!("mate_search_depth must be at most {most} moves, not {}", self.mate_depth)));
        }
        if self.see_threshold < 0 {
            return Err(Error::InvalidArgument(format!("see_threshold must be at least 0, not {}", self.see_threshold)));
        }
        match self.weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            Some(weight) => Err(Error::InvalidArgument(format!("weights must be finite numbers above 0, not {weight}"))),
            None => Ok(()),
        }
    }
}

/// The exact result of a position, for the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// 1 is a win, -1 a loss.
    pub value: i8,
    /// Plies to the end.
    pub plies: u16,
}

/// A mate that was found for or against the player to move at a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootMate {
    /// The first action of `line` mates in so many plies.
    Wins {
        /// The moves, as far as they are known.
        line: Vec<Action>,
        /// Plies to the mate.
        plies: u16,
    },
    /// Every action loses.
    Loses {
        /// The moves of the longest defence.
        line: Vec<Action>,
        /// Each action with the plies that the other side then needs.
        replies: Vec<(Action, u16)>,
    },
}

/// What was history_table of quiet moves elsewhere, as one position hears of it.
#[derive(Clone, Copy, Debug)]
pub struct OrderingContext<'a> {
    /// Moves that were good at other positions of the same ply.
    pub killers: [Option<Action>; 2],
    /// How often each action was good for this player; empty where nothing is known.
    pub history: &'a [f64],
}

/// What is told of a legal action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveHint {
    /// Its category.
    pub category: u8,
    /// What its prior is multiplied by, where categories shape the priors.
    pub weight: f64,
}

/// What a game can tell beside its rules.
pub trait LeafAnalysis {
    /// The value of a position for the player to move, from -1 to 1.
    fn value(&self, _knowledge: &Knowledge) -> f64 {
        0.0
    }

    /// The mate for or against the player to move that a short look has found. None says nothing.
    fn mate(&self, _knowledge: &Knowledge) -> Option<Exact> {
        None
    }

    /// A mate at a root, looked for at length.
    fn root_mate(&self, _knowledge: &Knowledge) -> Option<RootMate> {
        None
    }

    /// Replaces `hints` by the kind of each legal action, in their order.
    fn hints(&self, _knowledge: &Knowledge, _experience: OrderingContext<'_>, hints: &mut Vec<MoveHint>) {
        hints.clear();
    }
}

impl LeafAnalysis for TicTacToe {}
impl LeafAnalysis for ConnectFour {}
impl LeafAnalysis for Othello {}
