//! Python bindings of the random numbers: keys of trees and playouts, equal to those of `pondertree/random.py`.

use pondertree_core::{tree_key, Error, Purpose, Random as CoreRandom};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::call::guarded;

pyo3::create_exception!(pondertree._core, PlayoutPause, pyo3::exceptions::PyException);

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
pub struct PlayoutRandom {
    random: CoreRandom,
    /// Picks since the stream began.
    #[pyo3(get)]
    picks: u64,
    /// Picks of a stream before its first pause.
    #[pyo3(get, set)]
    first_pause: u64,
    /// The number of picks before the next pause.
    next_pause: u64,
}

impl Default for PlayoutRandom {
    fn default() -> Self {
        Self::new(0)
    }
}

impl PlayoutRandom {
    /// Begins the stream of the simulation with `key`.
    pub fn begin(&mut self, key: u64) {
        self.random = CoreRandom::new(key, Purpose::Playout);
        (self.picks, self.next_pause) = (0, self.first_pause);
    }
}

#[pymethods]
impl PlayoutRandom {
    #[new]
    fn new(key: u64) -> Self {
        Self { random: CoreRandom::new(key, Purpose::Playout), picks: 0, first_pause: u64::MAX, next_pause: u64::MAX }
    }

    /// Returns a number below `n`; draws nothing for n = 1.
    fn choose(&mut self, n: u32) -> PyResult<u32> {
        guarded(|| Ok(self.random.choose(n)))
    }

    /// Returns an element of a list or another sequence, as by `choose` of its length; raises `IndexError` if it is empty, and
    /// `PlayoutPause` instead of the pick after `first_pause` others, until `resume` is called.
    fn pick<'py>(&mut self, sequence: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.picks >= self.next_pause {
            return Err(PlayoutPause::new_err(self.picks));
        }
        self.picks += 1;
        if let Ok(list) = sequence.cast_exact::<PyList>() {
            return list.get_item(self.random.choose(list.len() as u32) as usize);
        }
        let length = u32::try_from(sequence.len()?)?;
        sequence.get_item(self.random.choose(length))
    }

    /// Goes on with `picks` more until the next pause.
    fn resume(&mut self, picks: u64) {
        self.next_pause = self.picks.saturating_add(picks);
    }

    /// Returns the index of a weight, drawn in proportion, as `pondertree.random.draw`.
    fn draw(&mut self, weights: Vec<f64>) -> PyResult<usize> {
        guarded(|| Ok(self.random.draw(weights.iter().copied()).unwrap_or(0)))
    }

    /// Returns a number in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.random.uniform()
    }
}
