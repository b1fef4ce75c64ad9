//! Blocks of memory that go from tree to tree. A batch of trees is planted and dropped for every move; the allocator would give
//! its memory back to the system each time, and fetching it again, page by page, costs as much as searching.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Blocks that nobody needs are kept up to so many bytes of each kind.
const MOST_KEPT: usize = 64 << 20;
/// They wait in so many places, so that threads do not wait for each other.
const SHELVES: usize = 16;

thread_local! {
    /// The shelf of this thread: the next one, for each thread that comes.
    static OWN_SHELF: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHELVES
    };
}

/// Blocks of one kind that wait for a tree.
pub(super) struct Spare<T>([Mutex<Vec<Vec<T>>>; SHELVES]);

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Self([const { Mutex::new(Vec::new()) }; SHELVES])
    }

    /// A block that waits; another thread's if this one has none.
    fn take(&self) -> Option<Vec<T>> {
        let own = OWN_SHELF.with(|&own| own);
        // Whatever panicked while it held a lock: a list of empty blocks is right at any moment.
        let known = self.0[own].lock().unwrap_or_else(PoisonError::into_inner).pop();
        known.or_else(|| self.0.iter().find_map(|shelf| shelf.try_lock().ok()?.pop()))
    }

    fn give_back(&self, mut block: Vec<T>) {
        block.clear();
        let own = OWN_SHELF.with(|&own| own);
        let mut waiting = self.0[own].lock().unwrap_or_else(PoisonError::into_inner);
        if (waiting.len() + 1) * block.capacity() * size_of::<T>() <= MOST_KEPT / SHELVES {
            waiting.push(block);
        }
    }
}

/// What blocks are made of.
pub(super) trait Stored: Copy + 'static {
    /// Where blocks of this capacity wait; None if none are kept.
    fn spare(capacity: usize) -> Option<&'static Spare<Self>>;
}

/// A list with room for a whole block from the start; what is not used of it is never touched.
#[derive(Debug)]
pub(super) struct Block<T: Stored>(Vec<T>);

impl<T: Stored> Block<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let waiting = T::spare(capacity).and_then(Spare::take);
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
        if let Some(spare) = T::spare(self.0.capacity()) {
            spare.give_back(std::mem::take(&mut self.0));
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
