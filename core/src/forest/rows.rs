//! Rows of batches, and the slots under which positions are stored outside.

use crate::search::pending::PendingLeaf;
use crate::tree::Tree;

/// One row of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the tree.
    pub tree: u32,
    /// The slot of the new position (external worlds).
    pub slot: u32,
    /// The slot of the parent position.
    pub parent_slot: u32,
    /// The action between them.
    pub action: u16,
    /// The player who chose it.
    pub chooser: u8,
    /// Key of the simulation's random numbers.
    pub key: u64,
}

impl Row {
    /// Returns the row of a leaf of tree number `index`.
    pub(super) fn of_leaf<S>(index: usize, tree: &Tree, leaf: &PendingLeaf<S>) -> Self {
        let last = leaf.path.last();
        Self {
            tree: index as u32,
            slot: leaf.slot,
            parent_slot: last.and_then(|step| tree.slot(step.node)).unwrap_or(u32::MAX),
            action: last.map_or(0, |step| tree.action(step.edge)),
            chooser: last.map_or(0, |step| step.chooser),
            key: leaf.key,
        }
    }
}

/// Allocates slots: small integers, reused after their release.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotAllocator {
    free: Vec<u32>,
    next: u32,
}

impl SlotAllocator {
    /// Allocates a slot.
    pub(crate) fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Returns the maximum number of slots in use so far; all slots are below.
    #[must_use]
    pub(crate) fn capacity(&self) -> usize {
        self.next as usize
    }

    /// Releases slots.
    pub(crate) fn release(&mut self, slots: &[u32]) {
        self.free.extend(slots.iter().rev());
    }
}
