//! Loom's replacements of the synchronisation primitives: models run under all interleavings and reorderings that the memory model
//! allows.

pub use loom::cell::UnsafeCell;
pub use loom::hint::spin_loop;
pub use loom::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
pub use loom::thread::{park, Thread};

/// Workers of a model park at once, since models have no time.
pub struct Spin;

impl Spin {
    pub fn new() -> Self {
        Self
    }

    pub fn restart(&mut self) {}

    pub fn is_over(&mut self) -> bool {
        true
    }
}

pub fn spawn(work: impl FnOnce() + Send + 'static) -> Option<Thread> {
    Some(loom::thread::spawn(work).thread().clone())
}
