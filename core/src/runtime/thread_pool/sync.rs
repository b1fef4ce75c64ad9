//! The synchronisation primitives of the pool. `sync_loom` has the same interface for loom models.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
pub(super) use std::thread::{park, Thread};
use std::time::{Duration, Instant};

/// Duration of spinning before a worker parks: longer than a network evaluation of a batch on an accelerator. Waking a parked
/// worker takes about as long as a job.
pub(super) const SPIN: Duration = Duration::from_millis(2);
/// Polls of the word between two yields.
const POLLS: u32 = 64;

/// Measures how long a worker has spun.
pub(super) struct Spin {
    start: Instant,
    polls: u32,
}

impl Spin {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), polls: 0 }
    }

    pub(super) fn restart(&mut self) {
        *self = Self::new();
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        if !self.polls.is_multiple_of(POLLS) {
            return false;
        }
        // Returns at once on an idle machine. On a busy one other threads, the caller among them, need the core: without the
        // yield searches took twice as long.
        std::thread::yield_now();
        self.start.elapsed() > SPIN
    }
}

/// `std::cell::UnsafeCell` with the interface of `loom::cell::UnsafeCell`.
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub(super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Starts a worker; None if the system starts no more threads.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Option<Thread> {
    Some(std::thread::Builder::new().name("pondertree".into()).spawn(work).ok()?.thread().clone())
}
