//! Fixed-size blocks of elements, the allocation unit of trees.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::allocation::zeroed_slice_box;
use bytemuck::Zeroable;

use super::slab::{Allocation, Pool};

/// Element types of blocks. All-zero bytes are a valid value.
pub(crate) trait Element: Copy + Zeroable + Send + Sync + 'static {
    /// Returns the pool of blocks of this capacity; None allocates each block separately.
    fn pool(capacity: usize) -> Option<&'static Pool<Self>>;
}

/// A boxed slice whose initial content is arbitrary: zeros, or the content of a released block.
pub(crate) struct Block<T: Element> {
    allocation: Allocation<T>,
    capacity: u32,
}

// SAFETY: a block owns its elements, as a vector does, and they are `Send` and `Sync`.
#[expect(unsafe_code, reason = "see above")]
unsafe impl<T: Element> Send for Block<T> {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "see above")]
unsafe impl<T: Element> Sync for Block<T> {}

impl<T: Element> Block<T> {
    fn pool(capacity: usize) -> Option<&'static Pool<T>> {
        T::pool(capacity).filter(|_| !cfg!(feature = "ablate-slabs"))
    }

    /// Allocates a block.
    pub(crate) fn new(capacity: usize) -> Self {
        let allocation = Self::pool(capacity).map_or_else(|| Allocation::boxed(zeroed_slice_box(capacity)), Pool::allocate);
        Self { allocation, capacity: capacity as u32 }
    }
}

impl<T: Element> Clone for Block<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

impl<T: Element> Drop for Block<T> {
    fn drop(&mut self) {
        let capacity = self.capacity as usize;
        match Self::pool(capacity) {
            Some(pool) => pool.release(&self.allocation),
            // SAFETY: a block without a pool was made of a box of this length, which is dropped once.
            #[expect(unsafe_code, reason = "see above")]
            None => drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.allocation.start.as_ptr(), capacity)) }),
        }
    }
}

impl<T: Element> Deref for Block<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `capacity` aligned elements are valid from the start (zeros, or the content of a block of the same type) and
        // belong to this block until it is dropped.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            std::slice::from_raw_parts(self.allocation.start.as_ptr(), self.capacity as usize)
        }
    }
}

impl<T: Element> DerefMut for Block<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            std::slice::from_raw_parts_mut(self.allocation.start.as_ptr(), self.capacity as usize)
        }
    }
}

impl<T: Element> fmt::Debug for Block<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Block of {}", self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block filled with one number.
    fn filled(capacity: usize, number: u64) -> Block<u64> {
        let mut block = Block::new(capacity);
        block.fill(number);
        block
    }

    #[test]
    fn block_is_as_small_as_a_vector() {
        assert_eq!(size_of::<Block<u64>>(), size_of::<Vec<u64>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Allocated, cloned, moved between threads and released in any order, blocks keep their content.
        #[test]
        fn blocks_keep_their_content(steps in prop::collection::vec((0usize..8, 0usize..5, any::<usize>()), 1..400)) {
            let mut held: Vec<(u64, Block<u64>)> = Vec::new();
            for (number, (operation, kind, pick)) in steps.into_iter().enumerate() {
                let (number, capacity) = (number as u64, [1024, 2048, 4096, 16384, 4096 + 5][kind]);
                let place = pick % held.len().max(1);
                match operation {
                    0..4 => held.push((number, filled(capacity, number))),
                    4 if !held.is_empty() => drop(held.swap_remove(place)),
                    5 if !held.is_empty() => {
                        let copy = (held[place].0, held[place].1.clone());
                        held.push(copy);
                    }
                    6 if !held.is_empty() => {
                        let (_, removed) = held.swap_remove(place);
                        std::thread::spawn(move || drop(removed)).join().expect("dropping does not panic");
                    }
                    7 => held.push((number, std::thread::spawn(move || filled(capacity, number)).join().expect("filled"))),
                    _ => {}
                }
                if operation >= 4 {
                    for (number, block) in &held {
                        prop_assert!(block.iter().all(|word| word == number));
                    }
                }
            }
        }
    }

    #[test]
    fn concurrent_blocks_do_not_overlap() {
        // Enough for small and huge slabs, on several threads.
        let work = |thread: u64| {
            let mut held: Vec<Block<u64>> = (0..400).map(|number| filled(1024, thread << 32 | number)).collect();
            held.retain(|block| block[0] % 3 != 0);
            held.extend((400..600).map(|number| filled(1024, thread << 32 | number)));
            held.iter().all(|block| block.iter().all(|&word| word == block[0] && word >> 32 == thread))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
            assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
        });
    }
}
