//! The keys that random numbers of trees come from; and the numbers of playouts that run in Python, which are those of
//! `pondertree/random.py`, sooner.

use pondertree_core::{tree_key, Error, Purpose, Random as CoreRandom};
use pyo3::prelude::*;

use crate::call::guarded;

/// The keys of many trees.
#[derive(FromPyObject)]
pub enum Keys {
    /// A seed and a call, which all have in common; they are numbered.
    Numbered((u64, u64)),
    /// A seed, a call and a number for each.
    Each(Vec<(u64, u64, u64)>),
}

impl Keys {
    /// The engine's keys of `rows` trees.
    ///
    /// # Errors
    /// `Error::Usage` if there is not one for each.
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

    /// A number from 0 to `n - 1`; a choice among one draws nothing.
    fn choose(&mut self, n: u32) -> PyResult<u32> {
        guarded(|| Ok(self.0.choose(n)))
    }

    /// A number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }
}
