//! Blocks are cut from slabs and go from tree to tree. A batch of trees is planted and dropped for every move; the allocator would
//! give its memory back to the system each time, and fetching it again, page by page, costs as much as searching.
//!
//! A slab is given back to the system when none of its blocks is in use, unless few such are kept; so a process that has once had
//! a very large tree does not keep its memory. Slabs of the kind that was not needed for longest go first: searches of one game
//! follow those of another.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::Pages;

/// Slabs without a block in use are kept up to so many bytes.
const MOST_KEPT: usize = 256 << 20;
/// A pool's first slabs are small, if several blocks fit: a single search of a small tree shall not fill a huge page.
const SMALL_SLAB: usize = 64 << 10;
/// So much of a pool is in small slabs.
const MOST_SMALL: usize = 2 << 20;
/// Slabs stand on so many shelves, so that threads do not wait for each other.
const SHELVES: usize = 16;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of slabs without a block in use, in all pools.
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// Counts slabs that came into use.
static CLOCK: AtomicUsize = AtomicUsize::new(0);
/// The pools that are in use.
static POOLS: Mutex<Vec<&'static dyn Keeps>> = Mutex::new(Vec::new());

/// Every lock of this module.
#[cfg(unix)]
pub(crate) struct Held {
    _pools: MutexGuard<'static, Vec<&'static dyn Keeps>>,
    _shelves: Vec<MutexGuard<'static, Shelf>>,
}

/// Locks every pool. Who waits for a shelf here holds `POOLS`; so nobody may wait for `POOLS` who holds a shelf.
#[cfg(unix)]
pub(crate) fn hold() -> Held {
    let pools = pools();
    let shelves = pools.iter().flat_map(|pool| pool.hold()).collect();
    Held { _pools: pools, _shelves: shelves }
}

fn pools() -> MutexGuard<'static, Vec<&'static dyn Keeps>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pool of any kind.
trait Keeps: Sync {
    /// Locks every shelf.
    #[cfg(unix)]
    fn hold(&self) -> Vec<MutexGuard<'_, Shelf>>;
    /// Lets go of a slab without a block in use, if there is one that nobody is looking at.
    fn give_up_one(&self) -> Option<Slab>;
    /// When the last of its slabs came into use.
    fn last_needed(&self) -> usize;
}

thread_local! {
    /// The shelf of this thread: the next one, for each thread that comes.
    static OWN_SHELF: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHELVES
    };
}

/// Memory for one block, and where it came from. It is there, and nobody else's, until it is given back.
#[derive(Debug)]
pub(crate) struct Lot<T> {
    pub(crate) start: NonNull<T>,
    slab: u32,
    place: u16,
    shelf: u8,
}

impl<T> Lot<T> {
    /// Memory that is part of no slab. Who drops it makes a box of it again.
    pub(crate) fn alone(list: Box<[T]>) -> Self {
        Self { start: NonNull::from(Box::leak(list)).cast(), slab: u32::MAX, place: 0, shelf: 0 }
    }
}

/// Slabs for blocks of `capacity` elements. All of a slab is zeros at first, and later holds what blocks of the same kind have left.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    shelves: [Apart; SHELVES],
    capacity: usize,
    /// Bytes in small slabs.
    small: AtomicUsize,
    /// Whether it is one of `POOLS`.
    known: AtomicBool,
    /// When the last slab came into use.
    last_needed: AtomicUsize,
    kind: PhantomData<fn() -> T>,
}

/// A shelf on cache lines of its own (processors fetch them in pairs): threads must not wait for each other's.
#[derive(Debug)]
#[repr(align(128))]
struct Apart(Mutex<Shelf>);

#[derive(Debug)]
struct Slab {
    pages: Pages,
    blocks: u16,
    /// Places of blocks that nobody has.
    free: Vec<u16>,
}

/// A block that is free: its slab, its place there, and where the slab begins.
struct Free {
    slab: u32,
    place: u16,
    start: NonNull<u8>,
    /// Whether none of the slab's blocks was in use.
    was_idle: bool,
}

#[derive(Debug)]
struct Shelf {
    slabs: Vec<Option<Slab>>,
    /// Slabs that have a free block; the last is used first.
    open: Vec<u32>,
    /// Places in `slabs` where there is none.
    vacant: Vec<u32>,
}

impl<T> Pool<T> {
    pub(crate) const fn new(capacity: usize) -> Self {
        let shelves = [const { Apart(Mutex::new(Shelf { slabs: Vec::new(), open: Vec::new(), vacant: Vec::new() })) }; SHELVES];
        Self {
            shelves,
            capacity,
            small: AtomicUsize::new(0),
            known: AtomicBool::new(false),
            last_needed: AtomicUsize::new(0),
            kind: PhantomData,
        }
    }

    /// From one block to the next: an odd number of cache lines, or the beginnings of all blocks would fight for few places in the
    /// cache.
    const fn stride(&self) -> usize {
        ((self.capacity * size_of::<T>()).div_ceil(LINE) | 1) * LINE
    }

    fn shelf(&self, index: usize) -> MutexGuard<'_, Shelf> {
        // Nothing that is done while the lock is held can panic but for want of memory.
        self.shelves[index].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block that nobody has: of this thread's shelf, of another, or of a new slab.
    pub(crate) fn take(&'static self) -> Lot<T> {
        if !self.known.load(Ordering::Acquire) {
            self.register();
        }
        let own = OWN_SHELF.with(|&own| own);
        let known = self.shelf(own).take().map(|found| (found, own));
        let elsewhere = || {
            let found = |(index, shelf): (usize, &Apart)| Some((shelf.0.try_lock().ok()?.take()?, index));
            self.shelves.iter().enumerate().find_map(found)
        };
        let added = || {
            let slab = self.new_slab();
            (self.shelf(own).add(slab), own)
        };
        let (Free { slab, place, start, was_idle }, shelf) = known.or_else(elsewhere).unwrap_or_else(added);
        if was_idle {
            self.last_needed.store(CLOCK.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        // Within the slab: `add` has counted how many blocks there is room for.
        let start = NonNull::new(start.as_ptr().wrapping_add(usize::from(place) * self.stride())).unwrap_or(start);
        Lot { start: start.cast(), slab, place, shelf: shelf as u8 }
    }

    /// Takes back what `take` gave.
    pub(crate) fn give_back(&self, lot: &Lot<T>) {
        let kept = self.shelf(usize::from(lot.shelf)).give_back(lot.slab, lot.place);
        if kept.is_some_and(|kept| kept > MOST_KEPT) {
            let mut unneeded = Vec::new();
            let mut pools = pools();
            pools.sort_unstable_by_key(|pool| pool.last_needed());
            while KEPT.load(Ordering::Relaxed) > MOST_KEPT {
                let Some(slab) = pools.iter().find_map(|pool| pool.give_up_one()) else { break };
                unneeded.push(slab);
            }
            // The system is asked when nobody waits for the lock.
            drop(pools);
            drop(unneeded);
        }
    }

    /// Adds the pool to `POOLS`, before any of its shelves is locked: `hold` must find it there.
    fn register(&'static self) {
        let mut pools = pools();
        if !self.known.load(Ordering::Relaxed) {
            pools.push(self);
            self.known.store(true, Ordering::Release);
        }
    }

    fn new_slab(&self) -> Slab {
        let stride = self.stride();
        let is_small = 2 * stride <= SMALL_SLAB && self.small.load(Ordering::Relaxed) < MOST_SMALL;
        let pages = if is_small {
            self.small.fetch_add(SMALL_SLAB, Ordering::Relaxed);
            Pages::plain(SMALL_SLAB)
        } else {
            Pages::huge()
        };
        let blocks = u16::try_from(pages.bytes() / stride).unwrap_or(u16::MAX);
        KEPT.fetch_add(pages.bytes(), Ordering::Relaxed);
        Slab { pages, blocks, free: (0..blocks).rev().collect() }
    }
}

impl<T> Keeps for Pool<T> {
    #[cfg(unix)]
    fn hold(&self) -> Vec<MutexGuard<'_, Shelf>> {
        (0..SHELVES).map(|index| self.shelf(index)).collect()
    }

    fn give_up_one(&self) -> Option<Slab> {
        let unneeded = self.shelves.iter().find_map(|shelf| shelf.0.try_lock().ok()?.give_up_one());
        if let Some(slab) = &unneeded {
            KEPT.fetch_sub(slab.pages.bytes(), Ordering::Relaxed);
            if slab.pages.bytes() == SMALL_SLAB {
                self.small.fetch_sub(SMALL_SLAB, Ordering::Relaxed);
            }
        }
        unneeded
    }

    fn last_needed(&self) -> usize {
        self.last_needed.load(Ordering::Relaxed)
    }
}

impl Shelf {
    /// A slab without a block in use, if there is one.
    fn give_up_one(&mut self) -> Option<Slab> {
        let is_free = |slab: &Slab| slab.free.len() == usize::from(slab.blocks);
        let at = self.open.iter().position(|&id| self.slabs[id as usize].as_ref().is_some_and(is_free))?;
        let id = self.open.remove(at);
        self.vacant.push(id);
        self.slabs[id as usize].take()
    }

    /// A free block.
    fn take(&mut self) -> Option<Free> {
        let id = *self.open.last()?;
        let slab = self.slabs[id as usize].as_mut()?;
        let was_idle = slab.free.len() == usize::from(slab.blocks);
        if was_idle {
            KEPT.fetch_sub(slab.pages.bytes(), Ordering::Relaxed);
        }
        let place = slab.free.pop()?;
        let start = slab.pages.start();
        if slab.free.is_empty() {
            self.open.pop();
        }
        Some(Free { slab: id, place, start, was_idle })
    }

    /// Puts a slab here, and takes its first block.
    fn add(&mut self, slab: Slab) -> Free {
        let start = slab.pages.start();
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slabs.push(None);
            (self.slabs.len() - 1) as u32
        });
        self.slabs[id as usize] = Some(slab);
        self.open.push(id);
        self.take().unwrap_or(Free { slab: id, place: 0, start, was_idle: true })
    }

    /// Puts a block back. If its slab is not in use any more, how many bytes are kept now.
    fn give_back(&mut self, id: u32, place: u16) -> Option<usize> {
        let slab = self.slabs[id as usize].as_mut()?;
        slab.free.push(place);
        if slab.free.len() == 1 {
            self.open.push(id);
        }
        let bytes = slab.pages.bytes();
        (slab.free.len() == usize::from(slab.blocks)).then(|| KEPT.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_that_nobody_needs_go_back_to_the_system() {
        static POOL: Pool<u64> = Pool::new(1024);
        let wanted = 2 * MOST_KEPT / 8192;
        let lots: Vec<Lot<u64>> = (0..wanted).map(|_| POOL.take()).collect();
        let slabs = || POOL.shelves.iter().map(|shelf| shelf.0.lock().expect("no panic").slabs.iter().flatten().count()).sum::<usize>();
        let most = slabs();
        assert!(most > MOST_KEPT / (2 << 20), "there are more than would be kept");
        lots.iter().for_each(|lot| POOL.give_back(lot));
        assert!(KEPT.load(Ordering::Relaxed) <= MOST_KEPT);
        assert!(slabs() < most);
        static OTHER: Pool<u64> = Pool::new(2048);
        let other: Vec<Lot<u64>> = (0..MOST_KEPT / 4 / 16384).map(|_| OTHER.take()).collect();
        other.iter().for_each(|lot| OTHER.give_back(lot));
        let kept = |pool: &Pool<u64>| pool.shelves.iter().map(|shelf| shelf.0.lock().expect("no panic").open.len()).sum::<usize>();
        assert!(kept(&OTHER) > MOST_KEPT / 5 / (2 << 20), "the slabs of the first have made room");
        assert!(KEPT.load(Ordering::Relaxed) <= MOST_KEPT);
        let again = POOL.take();
        assert!(lots.iter().any(|lot| lot.start == again.start), "what was kept is used again");
        POOL.give_back(&again);
    }
}
