//! PendingLeaves of a tree that wait for what something outside says of them.

use std::ops::{Deref, DerefMut};

use crate::games::analysis::{Exact, MoveHint};
use crate::search::backup::Step;
use crate::search::path::TraceStep;
use crate::tree::NodeIndex;

/// A leaf on its way to being evaluated.
#[derive(Clone, Debug)]
pub struct PendingLeaf<S> {
    /// How it was reached.
    pub path: Vec<Step>,
    /// The position to evaluate (compiled worlds; where a playout was cut, the position of the cut).
    pub state: S,
    /// The number of its simulation.
    pub simulation: u64,
    /// The key of its simulation's random numbers.
    pub key: u64,
    /// Its node, if it has one already: once the outside has stepped it, or where its moves wait for priors.
    pub node: Option<NodeIndex>,
    /// Its slot (external worlds).
    pub slot: u32,
    /// Its value for player 0, where a playout reached an end before the evaluator was asked.
    pub value: Option<f64>,
    /// The mate for or against the player to move, where one was found: its value is then known.
    pub mate: Option<Exact>,
    /// What is told of its legal moves, in searches that ask for them.
    pub hints: Vec<MoveHint>,
    /// What was seen on the way, if recorded.
    pub trace: Vec<TraceStep>,
}

/// PendingLeaves under way, in the order they were reached. Those that are done stay behind them, and the next ones take over their place
/// and their buffers: nothing is moved from one list to another on every simulation.
#[derive(Clone, Debug)]
pub struct PendingLeaves<S> {
    all: Vec<PendingLeaf<S>>,
    under_way: usize,
}

impl<S> Default for PendingLeaves<S> {
    fn default() -> Self {
        Self { all: Vec::new(), under_way: 0 }
    }
}

impl<S> PendingLeaves<S> {
    /// One more leaf, with buffers that hold anything; `make` makes one where none is left over.
    pub(crate) fn add(&mut self, make: impl FnOnce() -> PendingLeaf<S>) -> &mut PendingLeaf<S> {
        if self.under_way == self.all.len() {
            if self.all.is_empty() {
                // Most trees never have two.
                self.all.reserve_exact(1);
            }
            self.all.push(make());
        }
        self.under_way += 1;
        &mut self.all[self.under_way - 1]
    }

    /// The last one is done.
    pub(crate) fn drop_last(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// All are done.
    pub(crate) fn clear(&mut self) {
        self.under_way = 0;
    }
}

impl<S> Deref for PendingLeaves<S> {
    type Target = [PendingLeaf<S>];

    #[inline]
    fn deref(&self) -> &[PendingLeaf<S>] {
        &self.all[..self.under_way]
    }
}

impl<S> DerefMut for PendingLeaves<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [PendingLeaf<S>] {
        &mut self.all[..self.under_way]
    }
}

impl<'a, S> IntoIterator for &'a mut PendingLeaves<S> {
    type Item = &'a mut PendingLeaf<S>;
    type IntoIter = std::slice::IterMut<'a, PendingLeaf<S>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
