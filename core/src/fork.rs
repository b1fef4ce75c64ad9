//! Fork handling (Unix). The child of a fork has only the forking thread: a lock held by another thread would stay locked, and
//! pools would wait for workers that do not exist. The forking thread therefore holds every static lock of this crate across
//! the fork, and the child starts without pools.

use std::cell::RefCell;
use std::sync::{MutexGuard, Once};

use crate::chess::endings;
use crate::memory::slab;
use crate::runtime::thread_pool::{self, ThreadPool};
use crate::search::score::ucb1;

/// Every static lock, in lock order.
struct Locks {
    _endings: MutexGuard<'static, ()>,
    idle_pools: MutexGuard<'static, Vec<ThreadPool>>,
    _slabs: slab::Locks,
}

thread_local! {
    /// The locks held during a fork.
    static HELD: RefCell<Option<Locks>> = const { RefCell::new(None) };
}

/// Makes forks safe from now on. Call it while no other thread uses this crate.
pub fn handle_forks() {
    static REGISTERED: Once = Once::new();
    // The child could not wait for a table that another thread initialises.
    ucb1::initialize();
    REGISTERED.call_once(|| {
        // SAFETY: the handlers are functions of this crate, do not unwind, and live as long as the process.
        #[expect(unsafe_code, reason = "see above")]
        let failed = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) } != 0;
        assert!(!failed, "no memory for three pointers");
    });
}

extern "C" fn prepare() {
    // A thread whose thread-locals are destroyed forks without the locks.
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
        // Not dropped: the workers do not exist in the child.
        std::mem::forget(std::mem::take(&mut *held.idle_pools));
    }
}
