//! A thread pool for jobs of a few microseconds, far shorter than starting a thread. Workers are started once per process, spin for
//! 2 ms after each job and then park. `docs/decisions/001-thread-pool.md` has the measurements against rayon.
//!
//! **Protocol.** One 64-bit word holds whether the job is open, its width (requested threads), the number of workers inside, and
//! its generation. The caller opens a job by storing a new word; a worker joins by a compare-and-swap that increments
//! the number inside, which fails if the job was closed or replaced since the worker read its width. The caller takes part in the
//! job as rank 0, closes it, and waits until no worker is inside. It never waits for a worker that has not joined, so a worker that is
//! late or not scheduled delays no job. `models` checks this with loom.

#[cfg(all(test, loom))]
mod models;
#[cfg_attr(loom, path = "sync_loom.rs")]
mod sync;

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sync::{fence, AtomicBool, AtomicU64, Ordering, Thread, UnsafeCell};

/// Upper bound of idle pools; each concurrent search uses one.
const MAX_IDLE_POOLS: usize = 4;

/// A job, called with the rank of the thread; the caller has rank 0.
type Job = *const (dyn Fn(usize) + Sync);
type Payload = Box<dyn Any + Send>;

/// The state of a pool, packed into one word so that it changes atomically:
/// bits 0 to 15 workers inside, 16 to 31 width, 32 closed, 33 shut down, 34 to 63 generation (modulo 2^30).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const INSIDE: u64 = 0xFFFF;
    const WIDTH_SHIFT: u32 = 16;
    const CLOSED: u64 = 1 << 32;
    const SHUT_DOWN: u64 = 1 << 33;
    const GENERATION_SHIFT: u32 = 34;
    /// The largest width a word can hold.
    const MAX_WIDTH: usize = 0xFFFF;

    /// The next job, open to `width` threads, with no worker inside.
    fn next(self, width: usize) -> Self {
        Self((self.generation().wrapping_add(1) << Self::GENERATION_SHIFT) | ((width as u64) << Self::WIDTH_SHIFT))
    }

    fn generation(self) -> u64 {
        self.0 >> Self::GENERATION_SHIFT
    }

    fn width(self) -> usize {
        ((self.0 >> Self::WIDTH_SHIFT) & 0xFFFF) as usize
    }

    fn inside(self) -> u64 {
        self.0 & Self::INSIDE
    }

    fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    fn is_shut_down(self) -> bool {
        self.0 & Self::SHUT_DOWN != 0
    }

    /// Whether the worker of `rank`, which has seen the jobs up to `generation`, should join a newer one.
    fn wants(self, rank: usize, generation: u64) -> bool {
        self.generation() != generation && rank < self.width()
    }
}

/// State shared by the caller and the workers.
struct PoolState {
    word: AtomicU64,
    /// Written by the caller while the job is closed and no worker is inside; read by workers inside.
    job: UnsafeCell<Option<Job>>,
    /// The first panic of a worker in this job.
    panic: Mutex<Option<Payload>>,
    /// The workers of ranks 1, 2, ..., once all have been started.
    workers: OnceLock<Vec<Worker>>,
}

// SAFETY: `job` is guarded by `word`, as said there; what it points to is `Sync`; the other fields are `Sync` themselves.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Sync for PoolState {}
// SAFETY: as above. The pointer in `job` is used only while `ThreadPool::run` waits for the job to end.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for PoolState {}

struct Worker {
    thread: Thread,
    is_parked: Arc<AtomicBool>,
}

impl PoolState {
    fn load(&self, order: Ordering) -> Word {
        Word(self.word.load(order))
    }

    /// Wakes two workers, each of which wakes two more: waking one takes microseconds, and no thread should do it for all.
    fn wake_children(&self, rank: usize, width: usize) {
        // Pairs with the fence in `park`: either that worker reads the word of this job, or this thread reads that it is parked.
        fence(Ordering::SeqCst);
        let workers = self.workers.get().map_or(&[][..], Vec::as_slice);
        let wanted = &workers[..workers.len().min(width - 1)];
        for worker in wanted.iter().skip(2 * rank).take(2).filter(|worker| worker.is_parked.load(Ordering::Relaxed)) {
            worker.thread.unpark();
        }
    }

    /// Enters the job of `word`, unless it is closed or replaced.
    fn try_join(&self, mut word: Word, rank: usize) -> bool {
        let generation = word.generation();
        while word.generation() == generation && rank < word.width() && !word.is_closed() {
            // Acquire pairs with the Release store of `open`: the worker sees the job. Joins and leaves of other workers in between
            // are read-modify-writes and continue its release sequence.
            match self.word.compare_exchange_weak(word.0, word.0 + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = Word(now),
            }
        }
        false
    }

    /// Runs the job entered by `try_join`, and leaves it.
    fn work(&self, rank: usize, width: usize) {
        // SAFETY: this worker is counted inside an open job, so that `ThreadPool::run` does not return, and the job lives.
        #[expect(unsafe_code, reason = "see above")]
        let job = self.job.with(|job| unsafe { (*job).map(|job| &*job) });
        self.wake_children(rank, width);
        if let Some(Err(payload)) = job.map(|job| catch_unwind(AssertUnwindSafe(|| job(rank)))) {
            self.panic_slot().get_or_insert(payload);
        }
        // Release pairs with the Acquire load of `close`: what this worker wrote is seen when the caller returns, and its read of
        // `job` comes before the next write.
        self.word.fetch_sub(1, Ordering::Release);
    }

    /// Opens a job to `width` threads. The previous word is closed and empty, and no worker changes such a word, so a plain store
    /// loses no update.
    fn open(&self, job: Job, width: usize) {
        // SAFETY: the previous job is closed and no worker is inside, since its `close` has returned; `run` has the pool to itself.
        #[expect(unsafe_code, reason = "see above")]
        self.job.with_mut(|place| unsafe { *place = Some(job) });
        // Relaxed: this thread, or the one it got the pool from through a lock, was the last to write the word.
        let next = self.load(Ordering::Relaxed).next(width);
        self.word.store(next.0, Ordering::Release);
    }

    /// Closes the job to workers that have not joined and waits for those inside.
    fn close(&self) {
        // Relaxed: it publishes nothing, and the loop below acquires.
        self.word.fetch_or(Word::CLOSED, Ordering::Relaxed);
        let mut polls = 0u32;
        // Acquire pairs with the Release of every worker that has left: all are part of one release sequence.
        while self.load(Ordering::Acquire).inside() != 0 {
            polls += 1;
            // On a busy machine a worker inside may be waiting for this very core.
            if polls.is_multiple_of(1024) {
                std::thread::yield_now();
            }
            sync::spin_loop();
        }
    }

    fn panic_slot(&self) -> MutexGuard<'_, Option<Payload>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks a worker unless it is wanted for a job it has not seen, or the pool is shut down.
    fn park(&self, is_parked: &AtomicBool, rank: usize, seen: u64) {
        is_parked.store(true, Ordering::Relaxed);
        // Pairs with the fences in `wake_children` and in `Drop`.
        fence(Ordering::SeqCst);
        let word = self.load(Ordering::Relaxed);
        if !word.wants(rank, seen) && !word.is_shut_down() {
            sync::park();
        }
        is_parked.store(false, Ordering::Relaxed);
    }

    /// Runs jobs until the pool is shut down: spins, then parks.
    fn worker_loop(&self, is_parked: &AtomicBool, rank: usize) {
        let mut seen = 0;
        let mut spin = sync::Spin::new();
        loop {
            // Relaxed: `try_join` acquires.
            let word = self.load(Ordering::Relaxed);
            if word.is_shut_down() {
                return;
            }
            if word.wants(rank, seen) {
                if self.try_join(word, rank) {
                    self.work(rank, word.width());
                }
                // Only jobs within whose width this worker ranks keep it spinning, even if it joined too late.
                spin.restart();
            } else if spin.is_over() {
                self.park(is_parked, rank, word.generation());
            }
            seen = word.generation();
            sync::spin_loop();
        }
    }
}

/// A pool of worker threads.
pub(crate) struct ThreadPool {
    shared: Arc<PoolState>,
    /// Number of requested threads, the caller included; the system may have started fewer.
    threads: usize,
}

static IDLE: Mutex<Vec<ThreadPool>> = Mutex::new(Vec::new());

/// The idle pools.
pub(crate) fn idle_pools() -> MutexGuard<'static, Vec<ThreadPool>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` on every item, on up to `threads` threads including the caller's. For cache affinity thread `rank` starts at the
/// same item in every job of the same size; afterwards it steals the remaining items.
///
/// # Panics
/// Propagates a panic of `work` after all threads have left the job. Any subset of the items may then be done.
pub fn parallel_for<T: Send>(threads: usize, items: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    let threads = threads.min(items.len()).min(Word::MAX_WIDTH);
    if threads <= 1 {
        return items.for_each(work);
    }
    let items: Vec<Mutex<Option<T>>> = items.map(|item| Mutex::new(Some(item))).collect();
    let job = |rank: usize| {
        let first = items.len() * rank / threads;
        for place in (first..items.len()).chain(0..first) {
            // A held lock means that the item is taken; no thread panics while holding it.
            if let Some(item) = items[place].try_lock().ok().and_then(|mut item| item.take()) {
                work(item);
            }
        }
    };
    #[cfg(feature = "rayon")]
    if crate::runtime::thread_pool_ablation::run(threads, &job) {
        return;
    }
    let mut pool = ThreadPool::acquire(threads);
    pool.run(threads, &job);
    pool.release();
}

impl ThreadPool {
    /// Returns an idle pool of at least `threads` threads, or a new one.
    fn acquire(threads: usize) -> Self {
        let mut idle = idle_pools();
        // The widest, so that one pool runs all jobs if possible: spinning workers cost CPU time.
        let fitting = idle.iter().enumerate().filter(|(_, pool)| pool.threads >= threads);
        let known = fitting.max_by_key(|(_, pool)| pool.threads).map(|(place, _)| place).map(|place| idle.swap_remove(place));
        drop(idle);
        known.unwrap_or_else(|| Self::new(threads))
    }

    /// Returns the pool to the idle ones; above `MAX_IDLE_POOLS` the one released first is shut down.
    fn release(self) {
        let mut idle = idle_pools();
        if idle.len() >= MAX_IDLE_POOLS {
            idle.remove(0);
        }
        idle.push(self);
    }

    fn new(threads: usize) -> Self {
        let shared = Arc::new(PoolState {
            word: AtomicU64::new(Word::CLOSED),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
            workers: OnceLock::new(),
        });
        let start = |rank| {
            let (shared, is_parked) = (Arc::clone(&shared), Arc::new(AtomicBool::new(false)));
            let own = Arc::clone(&is_parked);
            // If the system starts no more threads, the started ones do the work.
            let started = sync::spawn(move || shared.worker_loop(&own, rank))?;
            Some(Worker { thread: started, is_parked })
        };
        let workers = (1..threads).map_while(start).collect();
        shared.workers.get_or_init(|| workers);
        Self { shared, threads }
    }

    /// Calls `job(0)` on this thread and `job(rank)`, for ranks below `width`, on every worker that joins before this thread
    /// finishes; returns when all have left. A job must take its work from a shared queue and return when that is empty.
    fn run(&mut self, width: usize, job: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is erased. The job is closed, and left by all, before this function returns or unwinds.
        #[expect(unsafe_code, reason = "see above")]
        let pointer: Job = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(job) };
        self.shared.open(pointer, width);
        self.shared.wake_children(0, width);
        let own = catch_unwind(AssertUnwindSafe(|| job(0)));
        self.shared.close();
        let other = self.shared.panic_slot().take();
        if let Some(payload) = own.err().or(other) {
            resume_unwind(payload);
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // Relaxed: nothing is published. The fence pairs with the one in `park`.
        self.shared.word.fetch_or(Word::SHUT_DOWN, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        for worker in self.shared.workers.get().into_iter().flatten().filter(|worker| worker.is_parked.load(Ordering::Relaxed)) {
            worker.thread.unpark();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    #[test]
    fn parallel_for_visits_every_item_once() {
        for round in 0..2_000 {
            let sum = AtomicUsize::new(0);
            parallel_for(4, 0..100usize, |item| {
                sum.fetch_add(item, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950, "job {round}");
            if round % 500 == 0 {
                // Long enough for the workers to park.
                std::thread::sleep(2 * sync::SPIN);
            }
        }
    }

    #[test]
    fn run_propagates_panics_and_leaves_the_pool_usable() {
        for panicking in [0, 1] {
            let mut pool = ThreadPool::new(3);
            let (start, entered) = (Instant::now(), AtomicBool::new(false));
            let job = |rank: usize| {
                if rank == panicking {
                    entered.store(true, Ordering::Relaxed);
                    panic!("on purpose, rank {rank}");
                }
                while !entered.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
            };
            let payload = catch_unwind(AssertUnwindSafe(|| pool.run(3, &job))).expect_err("a panic");
            assert_eq!(payload.downcast_ref::<String>(), Some(&format!("on purpose, rank {panicking}")));
            let done = AtomicUsize::new(0);
            pool.run(3, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.into_inner() >= 1);
        }
    }

    #[test]
    fn parked_workers_wake_each_other() {
        let mut pool = ThreadPool::new(8);
        std::thread::sleep(20 * sync::SPIN);
        let (inside, start) = (AtomicUsize::new(0), Instant::now());
        pool.run(8, &|_| {
            inside.fetch_add(1, Ordering::Relaxed);
            while inside.load(Ordering::Relaxed) < 8 && start.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
        });
        assert_eq!(inside.into_inner(), 8, "the caller wakes only two");
    }

    #[test]
    fn every_worker_within_the_width_joins_and_no_other() {
        let mut pool = ThreadPool::new(6);
        for width in [1, 2, 4, 6, 3] {
            let (highest, start) = (AtomicUsize::new(0), Instant::now());
            pool.run(width, &|rank| {
                highest.fetch_max(rank, Ordering::Relaxed);
                while highest.load(Ordering::Relaxed) + 1 < width && start.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
            });
            assert_eq!(highest.into_inner() + 1, width);
        }
    }

    #[test]
    fn workers_park_while_only_narrower_jobs_run() {
        let mut pool = ThreadPool::new(4);
        pool.run(4, &|_| {});
        let start = Instant::now();
        let parked = |pool: &ThreadPool| {
            let workers = pool.shared.workers.get().expect("started");
            workers.iter().skip(1).filter(|worker| worker.is_parked.load(Ordering::Relaxed)).count()
        };
        while parked(&pool) < 2 && start.elapsed() < Duration::from_secs(20) {
            pool.run(2, &|_| std::thread::yield_now());
        }
        assert_eq!(parked(&pool), 2, "the workers of ranks 2 and 3 are outside the width");
    }

    #[test]
    fn concurrent_jobs_use_separate_pools() {
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let done = AtomicUsize::new(0);
                        parallel_for(2, 0..50, |_| {
                            done.fetch_add(1, Ordering::Relaxed);
                        });
                        assert_eq!(done.into_inner(), 50);
                    }
                });
            }
        });
    }

    /// Fails within 20 s if a worker reads the width before it joins. `PONDERTREE_STRESS_SECONDS` sets its duration.
    #[test]
    fn ranks_stay_below_the_width_when_wide_and_narrow_jobs_alternate() {
        let seconds = std::env::var("PONDERTREE_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
        let (start, jobs, outside) = (Instant::now(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut pool = ThreadPool::new(4);
                    while start.elapsed().as_secs_f64() < seconds {
                        for width in [4, 2, 4, 2, 4, 2] {
                            pool.run(width, &|rank| {
                                if rank >= width {
                                    outside.fetch_add(1, Ordering::Relaxed);
                                }
                            });
                        }
                        jobs.fetch_add(6, Ordering::Relaxed);
                    }
                });
            }
        });
        let (jobs, outside) = (jobs.into_inner(), outside.into_inner());
        println!("{jobs} jobs, {outside} entries by a worker of a rank beyond the width");
        assert_eq!(outside, 0, "{jobs} jobs");
    }
}
