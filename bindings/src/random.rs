//! The engine's random numbers for playouts that run in Python: the same numbers as `ponderosa/reference/random.py`, sooner.

use ponderosa_core::random::{Purpose, Random as CoreRandom};
use pyo3::prelude::*;

/// A stream of random numbers for the playout of the simulation with `key`.
#[pyclass(module = "ponderosa._core")]
pub struct PlayoutRandom(CoreRandom);

#[pymethods]
impl PlayoutRandom {
    #[new]
    fn new(key: u64) -> Self {
        Self(CoreRandom::new(key, Purpose::Playout))
    }

    /// A number from 0 to `n - 1`; a choice among one draws nothing.
    fn choose(&mut self, n: u32) -> u32 {
        self.0.choose(n)
    }

    /// A number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }
}
