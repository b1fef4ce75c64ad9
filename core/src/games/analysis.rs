//! The leaf-analysis hook: knowledge of a game beside its rules that a search may use. Games without any use `NoAnalysis`.

use std::fmt::Debug;

use super::{Action, Game};
use crate::error::Error;

/// How the tags of moves direct the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Every move is tried once, in the order of tags, before any is scored.
    Strict,
    /// Tactical moves are tried once first; then all moves are scored, tried or not.
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

/// A forced result for the player to move at a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootProof {
    /// The first action of `line` wins.
    Win {
        /// The moves, as far as they are known.
        line: Vec<Action>,
        /// Plies to the end.
        plies: u16,
    },
    /// Every action loses.
    Loss {
        /// The longest defence.
        line: Vec<Action>,
        /// Each action, with the plies to the end after it.
        moves: Vec<(Action, u16)>,
    },
}

/// Statistics of quiet moves in the rest of the tree, as one position uses them.
#[derive(Clone, Copy, Debug)]
pub struct OrderingContext<'a> {
    /// Killer moves of the position's ply.
    pub killers: [Option<Action>; 2],
    /// History score of each action for the player to move; empty without any.
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

/// How a search orders moves by their tags. Sets of tags are bit masks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveOrdering {
    /// What the order is used for.
    pub priority: Priority,
    /// Visits after which a quiet move that is better than its position becomes a killer.
    pub killer_visits: u32,
    /// Tags of quiet moves, for which killers and history are kept.
    pub quiet: u16,
    /// Tags of tactical moves; they are the lowest tags.
    pub tactical: u16,
    /// Tag of a move that is proven to win.
    pub proof: u8,
    /// The hint of a move that the analysis says nothing of.
    pub default: MoveHint,
}

/// Knowledge of one search about positions of type `S`. The defaults know nothing.
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

    /// Returns a forced result found by a shallow search below the root.
    fn forced_result(&self, _state: &S) -> Option<ProvenResult> {
        None
    }

    /// Returns a forced result of a root, found by a deeper search.
    fn root_proof(&self, _state: &S) -> Option<RootProof> {
        None
    }

    /// Returns how moves are ordered; None leaves them unordered.
    #[inline]
    fn ordering(&self) -> Option<MoveOrdering> {
        None
    }

    /// Replaces `hints` by one hint for each legal action, in their order.
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
