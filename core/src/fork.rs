//! Forks (Unix). A forked process has the memory of its parent, but only the thread that forked: a lock that another thread held at
//! that moment would stay locked for ever, and pools would wait for workers that do not exist. So the forking thread holds every
//! static lock of this crate across the fork, and the child begins without pools.

use std::cell::RefCell;
use std::sync::{MutexGuard, Once};

use crate::chess::endings;
use crate::memory::slab;
use crate::runtime::thread_pool::{self, ThreadPool};
use crate::search::score::ucb1;

/// Every static lock, in an order in which no thread waits for an earlier one while it holds a later one.
struct Locks {
    _endings: MutexGuard<'static, ()>,
    idle_pools: MutexGuard<'static, Vec<ThreadPool>>,
    _slabs: slab::Locks,
}

thread_local! {
    /// The locks between the start of a fork and its end.
    static HELD: RefCell<Option<Locks>> = const { RefCell::new(None) };
}

/// Makes forks safe from now on. To be called while no other thread uses this crate.
pub fn handle_forks() {
    static REGISTERED: Once = Once::new();
    // A table that another thread were computing would be waited for in vain by the child.
    ucb1::initialize();
    REGISTERED.call_once(|| {
        // SAFETY: the handlers are functions of this crate, do not unwind, and live as long as the process.
        #[expect(unsafe_code, reason = "see above")]
        let failed = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) } != 0;
        assert!(!failed, "no memory for three pointers");
    });
}

extern "C" fn prepare() {
    // A thread that is so near its end that it has no such storage any more forks without the locks.
    let _ = HELD.try_with(|held| {
        let all = Locks { _endings: endings::lock_all(), idle_pools: thread_pool::idle_pools(), _slabs: slab::lock_all() };
        *held.borrow_mut() = Some(all);
    });
}

extern "C" fn parent() {
    let _ = HELD.try_with(RefCell::take);
}

extern "C" fn child() {
    if let Ok(Some(mut held)) = HELD.try_with(RefCell::take) {
        // Not dropped: their workers are not here to be told.
        std::mem::forget(std::mem::take(&mut *held.idle_pools));
    }
}
