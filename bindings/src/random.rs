//! Python bindings of the random numbers: keys of trees and playouts, equal to those of `pondertree/random.py`.

use pondertree_core::{tree_key, Error, Purpose, Random as CoreRandom};
use pyo3::prelude::*;

use crate::call::guarded;

/// The keys of many trees.
#[derive(FromPyObject)]
pub enum Keys {
    /// A common seed and call; rows are numbered.
    Numbered((u64, u64)),
    /// Seed, call and row of each.
    Each(Vec<(u64, u64, u64)>),
}

impl Keys {
    /// Returns the engine's keys of `rows` trees.
    ///
    /// # Errors
    /// `Error::Usage` if the number of keys is not `rows`.
    pub fn of(self, rows: usize) -> Result<Vec<u64>, Error> {
        match self {
            Self::Numbered((seed, call)) => Ok((0..rows as u64).map(|row| tree_key(seed, call, row)).collect()),
            Self::Each(keys) if keys.len() == rows => Ok(keys.into_iter().map(|(seed, call, row)| tree_key(seed, call, row)).collect()),
            Self::Each(keys) => Err(Error::Usage(format!("{} keys were given for {rows} trees", keys.len()))),
        }
    }
}

/// A stream of random numbers for the playout of the simulation with `key`.
#[pyclass(module = "pondertree._core")]
pub struct PlayoutRandom(CoreRandom);

#[pymethods]
impl PlayoutRandom {
    #[new]
    fn new(key: u64) -> Self {
        Self(CoreRandom::new(key, Purpose::Playout))
    }

    /// Returns a number below `n`; draws nothing for n = 1.
    fn choose(&mut self, n: u32) -> PyResult<u32> {
        guarded(|| Ok(self.0.choose(n)))
    }

    /// Returns the index of a weight, drawn in proportion, as `pondertree.random.draw`.
    fn draw(&mut self, weights: Vec<f64>) -> PyResult<usize> {
        guarded(|| Ok(self.0.draw(weights.iter().copied()).unwrap_or(0)))
    }

    /// Returns a number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }
}
