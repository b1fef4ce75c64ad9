//! Python bindings of the thread-pool comparison, for `benches/thread_pool.py`. Compiled only with the feature `rayon`.

use std::time::{Duration, Instant};

use pondertree_core::{choose_thread_pool, parallel_for, Error, ThreadPoolBackend as Backend};
use pyo3::prelude::*;

use crate::errors::OrPython;

/// Selects the backend of parallel jobs: "own", "rayon scope", "rayon broadcast" or "std scope".
#[pyfunction]
pub fn _choose_thread_pool(name: &str) -> PyResult<()> {
    choose_thread_pool(match name {
        "own" => Backend::Own,
        "rayon scope" => Backend::RayonScope,
        "rayon broadcast" => Backend::RayonBroadcast,
        "std scope" => Backend::StdScope,
        _ => return Err(Error::InvalidArgument(format!("there is no thread pool {name:?}"))).or_python(),
    });
    Ok(())
}

/// Runs `jobs` jobs of `pieces` pieces that compute for `piece_ns` nanoseconds each, with gaps of `gap_us` microseconds in
/// which this thread sleeps. Returns the nanoseconds per job.
#[pyfunction]
pub fn _time_jobs(py: Python<'_>, threads: usize, pieces: usize, piece_ns: u64, gap_us: u64, jobs: usize) -> Vec<u64> {
    let piece = |_| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_nanos(piece_ns) {
            std::hint::spin_loop();
        }
    };
    let job = |_| {
        if gap_us > 0 {
            std::thread::sleep(Duration::from_micros(gap_us));
        }
        let begun = Instant::now();
        parallel_for(threads, 0..pieces, piece);
        begun.elapsed().as_nanos() as u64
    };
    py.detach(|| (0..jobs).map(job).collect())
}
