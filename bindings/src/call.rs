//! Calls into the engine: a panic, which would surface as a `BaseException`, becomes `InternalError`.

use std::any::Any as Payload;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pondertree_core::parallel_for;
use pyo3::prelude::*;

use crate::errors::internal;
use crate::forest::Forest;

/// Runs `work`; a panic becomes `InternalError`.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(work).unwrap_or_else(|panic| Err(internal(&format!("the engine panicked: {panic}. Please report this defect of Pondertree"))))
}

/// Runs `work`; returns its result or the message of its panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // State that the panic left half-changed is dropped by the caller or refused from then on (`Forest::call`).
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message(&*payload).to_owned())
}

fn message(payload: &(dyn Payload + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Runs long `work` detached from the interpreter. It polls its argument, which asks whether to stop and delivers signals; an
/// exception raised there stops it and is returned.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    asked: impl Fn(Python<'_>) -> PyResult<bool> + Sync,
    work: impl FnOnce(&dyn Fn() -> bool) -> T + Send,
) -> PyResult<T> {
    let ask = |py: Python<'_>| py.check_signals().and_then(|()| asked(py));
    let (result, raised) = py.detach(|| {
        let raised = RefCell::new(None);
        let stop = || {
            Python::attach(ask).unwrap_or_else(|error| {
                *raised.borrow_mut() = Some(error);
                true
            })
        };
        let result = work(&stop);
        (result, raised.into_inner())
    });
    raised.map_or(Ok(result), Err)
}

/// Panics for tests, inside `forest` if given, on this thread or on a worker of the thread pool.
#[pyfunction]
pub fn _panic_for_tests(forest: Option<&Forest>, on_worker: bool) -> PyResult<()> {
    let fail = || {
        let (caller, begun, came) = (std::thread::current().id(), Instant::now(), AtomicBool::new(false));
        parallel_for(2, 0..2, |_| {
            if on_worker == (std::thread::current().id() != caller) {
                came.store(true, Ordering::Relaxed);
                panic!("on purpose");
            }
            while !came.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
        });
        Ok(())
    };
    match forest {
        Some(forest) => forest.call(|_| fail()),
        None => guarded(fail),
    }
}

/// Returns the number of CPUs this process may use, after its affinity mask and, on Linux, its cgroup's CPU quota.
#[pyfunction]
pub fn usable_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
