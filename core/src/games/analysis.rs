//! The leaf-analysis hook: domain knowledge of a game beyond its rules. Games without any use `NoAnalysis`.

use std::fmt::Debug;

use super::{Action, Game};
use crate::error::Error;

/// The use of move tags in the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Every move is visited once, in the order of tags, before any is scored by the selection rule.
    Strict,
    /// Tactical moves are visited once first; then the selection rule scores all moves, untried ones included.
    Tactical,
    /// Move weights scale the priors.
    Prior,
}

/// A proven result for the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenResult {
    /// 1 is a win, -1 a loss.
    pub value: i8,
    /// Plies to the end.
    pub plies: u16,
}

/// A proven result for the player to move at a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootProof {
    /// The first action of `line` wins.
    Win {
        /// The proof line, as far as known.
        line: Vec<Action>,
        /// Plies to the end.
        plies: u16,
    },
    /// Every action loses.
    Loss {
        /// The longest defence.
        line: Vec<Action>,
        /// Each action with the plies from the position after it to the end.
        moves: Vec<(Action, u16)>,
    },
}

/// Killer moves and history scores of the tree, as seen from one position.
#[derive(Clone, Copy, Debug)]
pub struct OrderingContext<'a> {
    /// Killer moves of the position's ply.
    pub killers: [Option<Action>; 2],
    /// History scores by action for the player to move; empty if there are none.
    pub history: &'a [f64],
}

/// Tag and weight of a legal move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveHint {
    /// Below 16; lower tags are tried earlier.
    pub tag: u8,
    /// Factor of the prior under `Priority::Prior`.
    pub weight: f64,
}

/// Move ordering by tags. Sets of tags are bit masks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveOrdering {
    /// The use of the order.
    pub priority: Priority,
    /// Visits after which a quiet move with a better value than its position becomes a killer.
    pub killer_visits: u32,
    /// Tags of quiet moves, which killers and history apply to.
    pub quiet: u16,
    /// Tags of tactical moves; they are the lowest tags.
    pub tactical: u16,
    /// Tag of a move proven to win.
    pub proof: u8,
    /// Hint of a move that the analysis does not cover.
    pub default: MoveHint,
}

/// Analysis of positions of type `S` in one search. The defaults provide no knowledge.
pub trait LeafAnalysis<S>: Clone + Debug + Send + Sync + 'static {
    /// Checks the settings.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the setting and its range.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the static evaluation for the player to move, from -1 to 1.
    fn value(&self, _state: &S) -> f64 {
        0.0
    }

    /// Returns a result proven by a shallow search, below the root.
    fn forced_result(&self, _state: &S) -> Option<ProvenResult> {
        None
    }

    /// Returns a result proven by a deeper search, at the root.
    fn root_proof(&self, _state: &S) -> Option<RootProof> {
        None
    }

    /// Returns the move ordering; None leaves moves unordered.
    #[inline]
    fn ordering(&self) -> Option<MoveOrdering> {
        None
    }

    /// Replaces `hints` by one hint per legal action, in the order of `legal_actions`.
    fn move_hints(&self, _state: &S, _context: OrderingContext<'_>, hints: &mut Vec<MoveHint>) {
        hints.clear();
    }
}

/// The analysis of games that have none.
#[derive(Clone, Copy, Debug)]
pub struct NoAnalysis;

impl<S> LeafAnalysis<S> for NoAnalysis {}

/// A compiled game with its analysis.
pub trait Analyzed: Game {
    /// `NoAnalysis` for most games.
    type Analysis: LeafAnalysis<Self>;
}
