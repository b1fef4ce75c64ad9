//! Leaves in flight: the batch of one tree.

use std::ops::{Deref, DerefMut};

use crate::games::analysis::{MoveHint, ProvenResult};
use crate::runtime::random::Random;
use crate::search::path::{Step, TraceStep};
use crate::tree::NodeIndex;

/// A leaf that waits for its value.
#[derive(Clone, Debug)]
pub(crate) struct PendingLeaf<S> {
    /// The path to it.
    pub path: Vec<Step>,
    /// The position to evaluate (compiled worlds): the leaf, or where its playout was cut off.
    pub state: S,
    /// Number of its simulation.
    pub simulation: u64,
    /// Key of the simulation's random numbers.
    pub key: u64,
    /// Its node, once stepped (external worlds) or if its edges wait for priors.
    pub node: Option<NodeIndex>,
    /// Its slot (external worlds).
    pub slot: u32,
    /// Its value for player 0, if known without the external evaluator.
    pub value: Option<f64>,
    /// Its values per player, if the external world gave them with its step; else empty.
    pub step_values: Vec<f64>,
    /// Rewards of player 0 in a playout from the leaf to the position to evaluate, and the discount there (compiled worlds).
    pub playout_rewards: f64,
    pub weight: f64,
    /// Random numbers of the outcomes on its way (external worlds).
    pub outcome_random: Random,
    /// Its forced result, if the analysis found one.
    pub proof: Option<ProvenResult>,
    /// Hints of its legal moves, in searches that order moves.
    pub hints: Vec<MoveHint>,
    /// The recorded descent.
    pub trace: Vec<TraceStep>,
}

impl<S> PendingLeaf<S> {
    /// Returns whether the leaf waits for a value of the external evaluator.
    pub(crate) fn awaits_value(&self) -> bool {
        self.value.is_none() && self.step_values.is_empty()
    }
}

/// The leaves in flight, in gathering order. Finished leaves stay behind them in the list, so that the next leaves reuse their
/// buffers without moving anything per simulation.
#[derive(Clone, Debug)]
pub(crate) struct PendingLeaves<S> {
    all: Vec<PendingLeaf<S>>,
    len: usize,
}

impl<S> Default for PendingLeaves<S> {
    fn default() -> Self {
        Self { all: Vec::new(), len: 0 }
    }
}

impl<S> PendingLeaves<S> {
    /// Adds a leaf whose buffers have arbitrary content; `make` creates one if none can be reused.
    pub(crate) fn add(&mut self, make: impl FnOnce() -> PendingLeaf<S>) -> &mut PendingLeaf<S> {
        if self.len == self.all.len() {
            if self.all.is_empty() {
                // Most trees never have two leaves in flight.
                self.all.reserve_exact(1);
            }
            self.all.push(make());
        }
        self.len += 1;
        &mut self.all[self.len - 1]
    }

    /// Removes the last leaf.
    pub(crate) fn drop_last(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// Removes all leaves.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

impl<S> Deref for PendingLeaves<S> {
    type Target = [PendingLeaf<S>];

    #[inline]
    fn deref(&self) -> &[PendingLeaf<S>] {
        &self.all[..self.len]
    }
}

impl<S> DerefMut for PendingLeaves<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [PendingLeaf<S>] {
        &mut self.all[..self.len]
    }
}

impl<'a, S> IntoIterator for &'a mut PendingLeaves<S> {
    type Item = &'a mut PendingLeaf<S>;
    type IntoIter = std::slice::IterMut<'a, PendingLeaf<S>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
