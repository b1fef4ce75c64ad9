//! A slab allocator of blocks. Thousands of trees are created and dropped per move; the system allocator would unmap their memory
//! each time, and page faults would cost as much as searching.
//!
//! Idle slabs above a limit are unmapped, least recently used pool first, so that one very large tree does not keep its memory.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::Pages;

/// Upper bound of the bytes of idle slabs.
const MAX_IDLE_BYTES: usize = 256 << 20;
/// The first slabs of a pool are small if several blocks fit, so that a single small tree does not occupy a huge page.
const SMALL_SLAB: usize = 64 << 10;
/// Upper bound of the bytes of a pool's small slabs.
const MAX_SMALL_BYTES: usize = 2 << 20;
/// Shards of a pool, against lock contention.
const SHARDS: usize = 16;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of idle slabs in all pools.
static IDLE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Counts slabs that leave the idle state.
static CLOCK: AtomicUsize = AtomicUsize::new(0);
/// The registered pools.
static POOLS: Mutex<Vec<&'static dyn AnyPool>> = Mutex::new(Vec::new());

/// Guards of all locks of this module.
#[cfg(unix)]
pub(crate) struct Locks {
    _pools: MutexGuard<'static, Vec<&'static dyn AnyPool>>,
    _shards: Vec<MutexGuard<'static, Shard>>,
}

/// Locks every pool. This thread waits for shards while it holds `POOLS`; so no thread may wait for `POOLS` while it holds a
/// shard.
#[cfg(unix)]
pub(crate) fn lock_all() -> Locks {
    let pools = pools();
    let shards = pools.iter().flat_map(|pool| pool.lock_all()).collect();
    Locks { _pools: pools, _shards: shards }
}

fn pools() -> MutexGuard<'static, Vec<&'static dyn AnyPool>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool of any element type.
trait AnyPool: Sync {
    /// Locks every shard.
    #[cfg(unix)]
    fn lock_all(&self) -> Vec<MutexGuard<'_, Shard>>;
    /// Removes an idle slab of an uncontended shard.
    fn evict_idle_slab(&self) -> Option<Slab>;
    /// Returns the clock when a slab last left the idle state.
    fn last_used(&self) -> usize;
}

thread_local! {
    /// The shard of this thread, assigned round-robin.
    static OWN_SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(usize::from(!cfg!(feature = "ablate-shards")), Ordering::Relaxed) % SHARDS
    };
}

/// The memory of one block and its place in a slab, exclusively owned until it is released.
#[derive(Debug)]
pub(crate) struct Allocation<T> {
    pub(crate) start: NonNull<T>,
    slab: u32,
    place: u16,
    shard: u8,
}

impl<T> Allocation<T> {
    /// Wraps memory outside the slabs; the owner turns it back into a box.
    pub(crate) fn boxed(list: Box<[T]>) -> Self {
        Self { start: NonNull::from(Box::leak(list)).cast(), slab: u32::MAX, place: 0, shard: 0 }
    }
}

/// Slabs of blocks of `capacity` elements: zeros at first, later the content of released blocks.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    shards: [PaddedShard; SHARDS],
    capacity: usize,
    /// Bytes in small slabs.
    small: AtomicUsize,
    /// Whether it is in `POOLS`.
    registered: AtomicBool,
    /// Clock when a slab last left the idle state.
    last_used: AtomicUsize,
    kind: PhantomData<fn() -> T>,
}

/// A shard on cache lines of its own (prefetched in pairs), against false sharing.
#[derive(Debug)]
#[repr(align(128))]
struct PaddedShard(Mutex<Shard>);

#[derive(Debug)]
struct Slab {
    pages: Pages,
    num_blocks: u16,
    /// Places of free blocks.
    free: Vec<u16>,
}

/// A free block: its slab, its place, and the slab's first byte.
struct Free {
    slab: u32,
    place: u16,
    start: NonNull<u8>,
    /// Whether the slab was idle.
    was_idle: bool,
}

#[derive(Debug)]
struct Shard {
    slabs: Vec<Option<Slab>>,
    /// Slabs with a free block; the last is used first.
    open: Vec<u32>,
    /// Unused indices of `slabs`.
    vacant: Vec<u32>,
}

impl<T> Pool<T> {
    pub(crate) const fn new(capacity: usize) -> Self {
        let shards = [const { PaddedShard(Mutex::new(Shard { slabs: Vec::new(), open: Vec::new(), vacant: Vec::new() })) }; SHARDS];
        Self {
            shards,
            capacity,
            small: AtomicUsize::new(0),
            registered: AtomicBool::new(false),
            last_used: AtomicUsize::new(0),
            kind: PhantomData,
        }
    }

    /// Returns the distance of blocks: an odd number of cache lines, so that block starts spread over the cache sets.
    const fn stride(&self) -> usize {
        ((self.capacity * size_of::<T>()).div_ceil(LINE) | 1) * LINE
    }

    fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        // Nothing panics while the lock is held, except for lack of memory.
        self.shards[index].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a block: from this thread's shard, another one, or a new slab.
    pub(crate) fn allocate(&'static self) -> Allocation<T> {
        if !self.registered.load(Ordering::Acquire) {
            self.register();
        }
        let own = OWN_SHARD.with(|&own| own);
        let registered = self.shard(own).allocate().map(|found| (found, own));
        let other_shards = || {
            let found = |(index, shard): (usize, &PaddedShard)| Some((shard.0.try_lock().ok()?.allocate()?, index));
            self.shards.iter().enumerate().find_map(found)
        };
        let added = || {
            let slab = self.new_slab();
            (self.shard(own).add(slab), own)
        };
        let (Free { slab, place, start, was_idle }, shard) = registered.or_else(other_shards).unwrap_or_else(added);
        if was_idle {
            self.last_used.store(CLOCK.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        // Within the slab: `add` has counted its blocks.
        let start = NonNull::new(start.as_ptr().wrapping_add(usize::from(place) * self.stride())).unwrap_or(start);
        Allocation { start: start.cast(), slab, place, shard: shard as u8 }
    }

    /// Releases what `allocate` returned.
    pub(crate) fn release(&self, allocation: &Allocation<T>) {
        let idle_bytes = self.shard(usize::from(allocation.shard)).release(allocation.slab, allocation.place);
        if idle_bytes.is_some_and(|bytes| bytes > MAX_IDLE_BYTES) {
            let mut evicted = Vec::new();
            let mut pools = pools();
            pools.sort_unstable_by_key(|pool| pool.last_used());
            while IDLE_BYTES.load(Ordering::Relaxed) > MAX_IDLE_BYTES {
                let Some(slab) = pools.iter().find_map(|pool| pool.evict_idle_slab()) else { break };
                evicted.push(slab);
            }
            // Unmaps after unlocking.
            drop(pools);
            drop(evicted);
        }
    }

    /// Adds the pool to `POOLS` before any of its shards is locked, so that `lock_all` finds it.
    fn register(&'static self) {
        let mut pools = pools();
        if !self.registered.load(Ordering::Relaxed) {
            pools.push(self);
            self.registered.store(true, Ordering::Release);
        }
    }

    fn new_slab(&self) -> Slab {
        let stride = self.stride();
        let is_small = 2 * stride <= SMALL_SLAB && self.small.load(Ordering::Relaxed) < MAX_SMALL_BYTES;
        let pages = if is_small {
            self.small.fetch_add(SMALL_SLAB, Ordering::Relaxed);
            Pages::from_allocator(SMALL_SLAB)
        } else {
            Pages::huge()
        };
        let num_blocks = u16::try_from(pages.bytes() / stride).unwrap_or(u16::MAX);
        IDLE_BYTES.fetch_add(pages.bytes(), Ordering::Relaxed);
        Slab { pages, num_blocks, free: (0..num_blocks).rev().collect() }
    }
}

impl<T> AnyPool for Pool<T> {
    #[cfg(unix)]
    fn lock_all(&self) -> Vec<MutexGuard<'_, Shard>> {
        (0..SHARDS).map(|index| self.shard(index)).collect()
    }

    fn evict_idle_slab(&self) -> Option<Slab> {
        let evicted = self.shards.iter().find_map(|shard| shard.0.try_lock().ok()?.evict_idle_slab());
        if let Some(slab) = &evicted {
            IDLE_BYTES.fetch_sub(slab.pages.bytes(), Ordering::Relaxed);
            if slab.pages.bytes() == SMALL_SLAB {
                self.small.fetch_sub(SMALL_SLAB, Ordering::Relaxed);
            }
        }
        evicted
    }

    fn last_used(&self) -> usize {
        self.last_used.load(Ordering::Relaxed)
    }
}

impl Shard {
    /// Removes an idle slab.
    fn evict_idle_slab(&mut self) -> Option<Slab> {
        let is_free = |slab: &Slab| slab.free.len() == usize::from(slab.num_blocks);
        let at = self.open.iter().position(|&id| self.slabs[id as usize].as_ref().is_some_and(is_free))?;
        let id = self.open.remove(at);
        self.vacant.push(id);
        self.slabs[id as usize].take()
    }

    /// Takes a free block.
    fn allocate(&mut self) -> Option<Free> {
        let id = *self.open.last()?;
        let slab = self.slabs[id as usize].as_mut()?;
        let was_idle = slab.free.len() == usize::from(slab.num_blocks);
        if was_idle {
            IDLE_BYTES.fetch_sub(slab.pages.bytes(), Ordering::Relaxed);
        }
        let place = slab.free.pop()?;
        let start = slab.pages.start();
        if slab.free.is_empty() {
            self.open.pop();
        }
        Some(Free { slab: id, place, start, was_idle })
    }

    /// Adds a slab and takes its first block.
    fn add(&mut self, slab: Slab) -> Free {
        let start = slab.pages.start();
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slabs.push(None);
            (self.slabs.len() - 1) as u32
        });
        self.slabs[id as usize] = Some(slab);
        self.open.push(id);
        self.allocate().unwrap_or(Free { slab: id, place: 0, start, was_idle: true })
    }

    /// Releases a block. Returns the idle bytes if its slab became idle.
    fn release(&mut self, id: u32, place: u16) -> Option<usize> {
        let slab = self.slabs[id as usize].as_mut()?;
        slab.free.push(place);
        if slab.free.len() == 1 {
            self.open.push(id);
        }
        let bytes = slab.pages.bytes();
        (slab.free.len() == usize::from(slab.num_blocks)).then(|| IDLE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_slabs_above_the_limit_are_unmapped() {
        static POOL: Pool<u64> = Pool::new(1024);
        let wanted = 2 * MAX_IDLE_BYTES / 8192;
        let allocations: Vec<Allocation<u64>> = (0..wanted).map(|_| POOL.allocate()).collect();
        let slabs = || POOL.shards.iter().map(|shard| shard.0.lock().expect("no panic").slabs.iter().flatten().count()).sum::<usize>();
        let peak = slabs();
        assert!(peak > MAX_IDLE_BYTES / (2 << 20), "more than the limit");
        allocations.iter().for_each(|allocation| POOL.release(allocation));
        assert!(IDLE_BYTES.load(Ordering::Relaxed) <= MAX_IDLE_BYTES);
        assert!(slabs() < peak);
        static OTHER: Pool<u64> = Pool::new(2048);
        let other: Vec<Allocation<u64>> = (0..MAX_IDLE_BYTES / 4 / 16384).map(|_| OTHER.allocate()).collect();
        other.iter().for_each(|allocation| OTHER.release(allocation));
        let open = |pool: &Pool<u64>| pool.shards.iter().map(|shard| shard.0.lock().expect("no panic").open.len()).sum::<usize>();
        assert!(open(&OTHER) > MAX_IDLE_BYTES / 5 / (2 << 20), "slabs of the first pool are evicted");
        assert!(IDLE_BYTES.load(Ordering::Relaxed) <= MAX_IDLE_BYTES);
        let again = POOL.allocate();
        assert!(allocations.iter().any(|allocation| allocation.start == again.start), "idle slabs are reused");
        POOL.release(&again);
    }
}
