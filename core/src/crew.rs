//! Threads that take jobs together, one job after another. A job of a search is often done within some microseconds, in which no
//! thread can be started, so they are started once in the life of a process and wait awake for a while after each job.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A hand waits awake for so long, and then sleeps: longer than a network on an accelerator takes for a batch. Waking it takes
/// about as long as a job.
const AWAKE: Duration = Duration::from_millis(2);
/// Looks for a job between two looks at the clock.
const LOOKS: u32 = 64;
/// So many crews are kept for later; one is needed for each search that runs at the same time.
const MOST_KEPT: usize = 4;
/// Set in `Shared::inside` while there is no job.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// What to do; it is told which hand does it, the caller being the first.
type Job = *const (dyn Fn(usize) + Sync);

struct Shared {
    /// How many hands are in the job, and whether it is closed to others.
    inside: AtomicUsize,
    /// Written only while the job is closed and nobody is inside; read only by hands that have got in.
    job: UnsafeCell<Option<Job>>,
    /// Counts jobs, so that a hand sees that there is another.
    number: AtomicUsize,
    over: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Those of rank 1 and above, once all have been started.
    hands: OnceLock<Vec<Hand>>,
    /// How many are wanted for the job, the caller included; the others leave it alone.
    wanted: AtomicUsize,
}

// SAFETY: `job` is guarded by `inside`, as said there; what it points to is `Sync`; the rest is made for threads.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Sync for Shared {}
// SAFETY: as above. A pointer to a job is used only while `Crew::all` waits for the job to end.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for Shared {}

impl Shared {
    /// Wakes two more, who wake two more each: it takes long to wake one, and nobody does it for all.
    fn wake_others(&self, rank: usize) {
        let hands = self.hands.get().map_or(&[][..], Vec::as_slice);
        let wanted = &hands[..hands.len().min(self.wanted.load(Ordering::Relaxed) - 1)];
        for hand in wanted.iter().skip(2 * rank).take(2).filter(|hand| hand.asleep.load(Ordering::Relaxed)) {
            hand.thread.unpark();
        }
    }

    /// Takes part in the job, unless it is closed.
    fn join_in(&self, rank: usize) {
        if rank >= self.wanted.load(Ordering::Relaxed) {
            return;
        }
        if self.inside.fetch_add(1, Ordering::Acquire) & CLOSED == 0 {
            // SAFETY: this hand is counted inside an open job, so that `Crew::all` does not return, and what it was given lives.
            #[expect(unsafe_code, reason = "see above")]
            let job = unsafe { (*self.job.get()).map(|job| &*job) };
            self.wake_others(rank);
            if let Some(Err(panic)) = job.map(|job| catch_unwind(AssertUnwindSafe(|| job(rank)))) {
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
        }
        self.inside.fetch_sub(1, Ordering::Release);
    }
}

struct Hand {
    thread: Thread,
    asleep: Arc<AtomicBool>,
}

/// Threads that wait for jobs.
struct Crew {
    shared: Arc<Shared>,
    /// How many were asked for, the caller included; fewer may have come.
    threads: usize,
    /// A process that was forked has the memory of its parent, but not its threads.
    process: u32,
}

static IDLE: Mutex<Vec<Crew>> = Mutex::new(Vec::new());

/// Does `work` on every piece, on `threads`, the caller's included. Each has a share of the pieces, the same in every job of as many
/// pieces, so that it finds in its cache what it worked on before; who has done with its own helps the others.
pub fn together<T: Send>(threads: usize, pieces: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    let threads = threads.min(pieces.len());
    if threads <= 1 {
        return pieces.for_each(work);
    }
    let pieces: Vec<Mutex<Option<T>>> = pieces.map(|piece| Mutex::new(Some(piece))).collect();
    let mut crew = Crew::hire(threads);
    crew.all(threads, &|rank| {
        let first = pieces.len() * rank / threads;
        for place in (first..pieces.len()).chain(0..first) {
            // Whoever holds the lock has the piece, or has had it; nobody panics while holding it.
            if let Some(piece) = pieces[place].try_lock().ok().and_then(|mut piece| piece.take()) {
                work(piece);
            }
        }
    });
    crew.dismiss();
}

impl Crew {
    /// A crew of at least `threads`: one that waits, or a new one.
    fn hire(threads: usize) -> Self {
        let process = std::process::id();
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        // One for all jobs, if it can be: those who wait awake cost something.
        let fits = |(_, crew): &(usize, &Self)| crew.threads >= threads && crew.process == process;
        let place = idle.iter().enumerate().filter(fits).max_by_key(|(_, crew)| crew.threads).map(|(place, _)| place);
        let known = place.map(|place| idle.swap_remove(place));
        drop(idle);
        known.unwrap_or_else(|| Self::new(threads))
    }

    /// It waits for the next job, or ends, where enough others wait.
    fn dismiss(self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MOST_KEPT {
            idle.remove(0);
        }
        idle.push(self);
    }

    fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            inside: AtomicUsize::new(CLOSED),
            job: UnsafeCell::new(None),
            number: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            panic: Mutex::new(None),
            hands: OnceLock::new(),
            wanted: AtomicUsize::new(threads),
        });
        let start = |rank| {
            let (shared, asleep) = (Arc::clone(&shared), Arc::new(AtomicBool::new(false)));
            let own = Arc::clone(&asleep);
            // Where the system gives no more threads, those that are there do the work.
            let started = std::thread::Builder::new().name("pondertree".into()).spawn(move || wait_for_jobs(&shared, &own, rank)).ok()?;
            Some(Hand { thread: started.thread().clone(), asleep })
        };
        let hands = (1..threads).map_while(start).collect();
        shared.hands.get_or_init(|| hands);
        Self { shared, threads, process: std::process::id() }
    }

    /// Calls `job` on this thread and on every hand, up to `wanted` in all, that comes before this thread has done with it; back when
    /// all have. It must take its share of the work from a common store, and leave when nothing is left there.
    fn all(&mut self, wanted: usize, job: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is forgotten. The job is closed again, and left by all, before this function returns or unwinds.
        #[expect(unsafe_code, reason = "see above")]
        let pointer: Job = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(job) };
        // SAFETY: the job before is closed and nobody is inside, since `all` of it has come back; `&mut self` says there is no other.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            *self.shared.job.get() = Some(pointer);
        }
        // One that was left by a job whose caller had its own.
        drop(self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.shared.wanted.store(wanted, Ordering::Relaxed);
        self.shared.inside.fetch_and(!CLOSED, Ordering::Release);
        self.shared.number.fetch_add(1, Ordering::Release);
        // A hand that falls asleep says so and then looks at the number once more: one of us sees the other.
        fence(Ordering::SeqCst);
        self.shared.wake_others(0);
        let closing = Closing(&self.shared);
        job(0);
        drop(closing);
        let panic = self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.hands.get().into_iter().flatten().for_each(|hand| hand.thread.unpark());
    }
}

/// Closes a job and waits for those inside, also when the caller's share of it panics.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_or(CLOSED, Ordering::AcqRel);
        let mut looks = 0u32;
        while self.0.inside.load(Ordering::Acquire) != CLOSED {
            looks += 1;
            // On a busy machine those inside may be waiting for this very core.
            if looks % 1024 == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

fn wait_for_jobs(shared: &Shared, asleep: &AtomicBool, rank: usize) {
    let mut seen = 0;
    loop {
        let begun = Instant::now();
        let mut looks = 0u32;
        let number = loop {
            let number = shared.number.load(Ordering::Acquire);
            if shared.over.load(Ordering::Relaxed) {
                return;
            }
            if number != seen {
                break number;
            }
            looks += 1;
            std::hint::spin_loop();
            if looks % LOOKS == 0 && begun.elapsed() > AWAKE {
                asleep.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if shared.number.load(Ordering::Relaxed) == seen && !shared.over.load(Ordering::Relaxed) {
                    std::thread::park();
                }
                asleep.store(false, Ordering::Relaxed);
            }
        };
        seen = number;
        shared.join_in(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_every_job_is_done_once() {
        for round in 0..2_000 {
            let sum = AtomicUsize::new(0);
            together(4, 0..100usize, |piece| {
                sum.fetch_add(piece, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950, "job {round}");
            if round % 500 == 0 {
                // Long enough for the hands to fall asleep.
                std::thread::sleep(2 * AWAKE);
            }
        }
    }

    #[test]
    fn a_panic_comes_out_and_the_crew_lives() {
        let mut crew = Crew::new(3);
        assert!(catch_unwind(AssertUnwindSafe(|| crew.all(3, &|_| panic!("on purpose")))).is_err());
        let done = AtomicUsize::new(0);
        crew.all(3, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert!(done.into_inner() >= 1);
    }

    #[test]
    fn those_who_sleep_are_woken_by_others() {
        let mut crew = Crew::new(8);
        std::thread::sleep(20 * AWAKE);
        let (inside, begun) = (AtomicUsize::new(0), Instant::now());
        crew.all(8, &|_| {
            inside.fetch_add(1, Ordering::Relaxed);
            while inside.load(Ordering::Relaxed) < 8 && begun.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
        });
        assert_eq!(inside.into_inner(), 8, "the caller wakes two alone");
    }

    #[test]
    fn no_more_take_part_than_are_wanted() {
        let mut crew = Crew::new(6);
        for wanted in [1, 2, 4, 6, 3] {
            let (highest, begun) = (AtomicUsize::new(0), Instant::now());
            crew.all(wanted, &|rank| {
                highest.fetch_max(rank, Ordering::Relaxed);
                while highest.load(Ordering::Relaxed) + 1 < wanted && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::yield_now();
                }
            });
            assert_eq!(highest.into_inner() + 1, wanted);
        }
    }

    #[test]
    fn crews_work_side_by_side() {
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let done = AtomicUsize::new(0);
                        together(2, 0..50, |_| {
                            done.fetch_add(1, Ordering::Relaxed);
                        });
                        assert_eq!(done.into_inner(), 50);
                    }
                });
            }
        });
    }
}
