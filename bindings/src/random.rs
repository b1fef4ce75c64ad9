//! What random numbers of trees come from, and those of playouts that run in Python: the same numbers as
//! `ponderosa/reference/random.py`, sooner.

use ponderosa_core::random::{tree_key, Purpose, Random as CoreRandom};
use pyo3::prelude::*;

/// The keys of many trees.
#[derive(FromPyObject)]
pub enum Keys {
    /// A seed and a call, which all have in common; they are numbered.
    Numbered((u64, u64)),
    /// A seed, a call and a number for each.
    Each(Vec<(u64, u64, u64)>),
}

impl Keys {
    /// The engine's keys; of numbered trees there are `rows`.
    pub fn of(self, rows: usize) -> Vec<u64> {
        match self {
            Self::Numbered((seed, call)) => (0..rows as u64).map(|row| tree_key(seed, call, row)).collect(),
            Self::Each(keys) => keys.into_iter().map(|(seed, call, row)| tree_key(seed, call, row)).collect(),
        }
    }
}

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
