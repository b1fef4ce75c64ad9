//! Blocks of memory that go from tree to tree. A batch of trees is planted and dropped for every move; the allocator would give
//! its memory back to the system each time, and fetching it again, page by page, costs as much as searching.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Blocks that nobody needs are kept up to so many bytes of each kind.
const MOST_KEPT: usize = 8 << 20;

/// Blocks of one kind that wait for a tree.
pub(super) struct Spare<T>(Mutex<Vec<Vec<T>>>);

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn take(&self) -> Option<Vec<T>> {
        // Whatever panicked while it held the lock: a list of empty blocks is right at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, mut block: Vec<T>) {
        block.clear();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if (waiting.len() + 1) * block.capacity() * size_of::<T>() <= MOST_KEPT {
            waiting.push(block);
        }
    }
}

/// What blocks are made of.
pub(super) trait Stored: Copy + 'static {
    /// Where blocks of it wait.
    fn spare() -> &'static Spare<Self>;
    /// How many of it a block has that is worth keeping.
    const BLOCK: usize;
}

/// A list with room for a whole block from the start; what is not used of it is never touched.
#[derive(Debug)]
pub(super) struct Block<T: Stored>(Vec<T>);

impl<T: Stored> Block<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let waiting = if capacity == T::BLOCK { T::spare().take() } else { None };
        Self(waiting.unwrap_or_else(|| Vec::with_capacity(capacity)))
    }
}

impl<T: Stored> Clone for Block<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::with_capacity(self.0.capacity());
        copy.0.extend_from_slice(&self.0);
        copy
    }
}

impl<T: Stored> Drop for Block<T> {
    fn drop(&mut self) {
        if self.0.capacity() == T::BLOCK {
            T::spare().give_back(std::mem::take(&mut self.0));
        }
    }
}

impl<T: Stored> Deref for Block<T> {
    type Target = Vec<T>;

    #[inline]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Stored> DerefMut for Block<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}
