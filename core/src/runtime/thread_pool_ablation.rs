//! `parallel_for` on other thread pools, for the ablation in `benches/thread_pool.py`. Compiled only with the feature `rayon`.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The thread pool that runs the jobs of `parallel_for`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Backend {
    /// The pool of `thread_pool`.
    Own,
    /// `rayon::ThreadPool::in_place_scope` with one spawned task per thread.
    RayonScope,
    /// `spawn_broadcast` in such a scope: each thread keeps its rank.
    RayonBroadcast,
    /// New threads for every job.
    StdScope,
}

static BACKEND: AtomicU8 = AtomicU8::new(Backend::Own as u8);
/// Pools by number of threads, since a broadcast runs on every thread of a pool.
static POOLS: Mutex<Vec<(usize, Arc<ThreadPool>)>> = Mutex::new(Vec::new());

/// Sets the backend of all later jobs.
pub fn choose(backend: Backend) {
    BACKEND.store(backend as u8, Ordering::Relaxed);
}

fn pool(threads: usize) -> Arc<ThreadPool> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = pools.iter().find(|(count, _)| *count == threads) {
        return Arc::clone(pool);
    }
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().expect("a benchmark has threads"));
    pools.push((threads, Arc::clone(&pool)));
    pool
}

/// Runs a job on the chosen backend; returns false for the own pool.
pub(crate) fn run(threads: usize, job: &(dyn Fn(usize) + Sync)) -> bool {
    let backend = BACKEND.load(Ordering::Relaxed);
    if backend == Backend::RayonScope as u8 {
        pool(threads - 1).in_place_scope(|scope| {
            (1..threads).for_each(|rank| scope.spawn(move |_| job(rank)));
            job(0);
        });
    } else if backend == Backend::RayonBroadcast as u8 {
        pool(threads - 1).in_place_scope(|scope| {
            scope.spawn_broadcast(|_, context| job(context.index() + 1));
            job(0);
        });
    } else if backend == Backend::StdScope as u8 {
        std::thread::scope(|scope| {
            (1..threads).for_each(|rank| drop(scope.spawn(move || job(rank))));
            job(0);
        });
    } else {
        return false;
    }
    true
}
