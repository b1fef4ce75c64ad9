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

    /// Returns the number of slots, and those without a node in the order in which they were released: with `used` all.
    pub(crate) fn to_columns(&self, used: &[u32]) -> (u64, Vec<u32>) {
        let mut is_known = vec![false; self.capacity()];
        for &slot in used.iter().chain(&self.free) {
            is_known[slot as usize] = true;
        }
        let others = (0..self.next).filter(|&slot| !is_known[slot as usize]);
        (u64::from(self.next), others.chain(self.free.iter().copied()).collect())
    }

    /// Builds the allocator of these columns; None unless `used` and `free` have each of the `slots` once.
    pub(crate) fn from_columns(slots: Option<u64>, free: &[u32], used: &[u32]) -> Option<Self> {
        let next = u32::try_from(slots?).ok()?;
        if used.len() + free.len() != next as usize {
            return None;
        }
        let mut is_known = vec![false; next as usize];
        let is_new = |&slot: &u32| is_known.get_mut(slot as usize).is_some_and(|known| !std::mem::replace(known, true));
        used.iter().chain(free).all(is_new).then(|| Self { free: free.to_vec(), next })
    }

    /// Releases slots.
    pub(crate) fn release(&mut self, slots: &[u32]) {
        self.free.extend(slots.iter().rev());
    }
}
