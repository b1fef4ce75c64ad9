//! The path of a descent, and its record in the format of the reference implementation.

use crate::search::terms::ChoiceTerms;
use crate::tree::{Edge, NodeIndex, Tree};

/// One choice of a descent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The node where the choice was made.
    pub(crate) node: NodeIndex,
    /// The chosen edge.
    pub(crate) edge: Edge,
    /// The player who chose; player 0 for an outcome of chance.
    pub(crate) chooser: u8,
}

/// Changes the number of leaves in flight below each edge of a path.
#[inline]
pub(crate) fn count_in_flight(tree: &mut Tree, path: &[Step], change: i16) {
    for step in path {
        tree.add_in_flight(step.edge, change);
    }
}

/// The record of one choice.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceStep {
    /// The chosen action.
    pub action: u16,
    /// Action and score of each edge; None if an untried edge was opened without scores.
    pub scores: Option<Vec<(u16, f64)>>,
    /// What the scores were made of.
    pub terms: ChoiceTerms,
}

/// The record of one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// Number of the simulation in the life of the tree.
    pub simulation: u64,
    /// Choices from the root down.
    pub steps: Vec<TraceStep>,
    /// The backed up values, one per player.
    pub values: Vec<f64>,
}
