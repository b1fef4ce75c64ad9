//! A record of descents, in the form the Python twin writes, so that the first difference between the two can be named.

/// What happened at one node of a descent.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceStep {
    /// The move chosen.
    pub action: u16,
    /// Each edge's move and score; None where an untried edge was opened.
    pub scores: Option<Vec<(u16, f64)>>,
}

/// One simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// Its number in the life of the tree.
    pub simulation: u64,
    /// From the root down.
    pub steps: Vec<TraceStep>,
    /// The values backed up from the leaf, one per player.
    pub values: Vec<f64>,
}
