//! Games written in Python: their states are stored outside under slots, and stepped row by row.

use std::sync::atomic::Ordering;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pondertree_core::games::{PythonGame, CHANCE};
use pondertree_core::{tree_key, Error, Forest as EngineForest, Policy, Row, StepResult, ROOT};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::Forest;
use crate::errors::OrPython;
use crate::forest::any::{each, external};
use crate::random::PlayoutRandom;

/// Slot, parent slot and action of a row to step.
type RowToStep = Option<(u32, u32, u16)>;
/// Columns of them.
type RowsToStep<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);
/// Slots of waiting leaves, and keys of their simulations.
type WaitingRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);

/// Returns the engine's number of a player, or of chance for -1; a number that no player has otherwise.
fn player(number: i32) -> u8 {
    u8::try_from(number).unwrap_or(CHANCE)
}

/// Returns the elements of a list or tuple of numbers.
fn numbers<T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>>(given: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    if let Ok(list) = given.cast_exact::<PyList>() {
        let mut found = Vec::with_capacity(list.len());
        for number in list.iter() {
            found.push(number.extract()?);
        }
        return Ok(found);
    }
    let tuple = given.cast_exact::<PyTuple>().map_err(|_| PyTypeError::new_err("a list or a tuple is right"))?;
    let mut found = Vec::with_capacity(tuple.len());
    for number in tuple.iter_borrowed() {
        found.push(number.extract()?);
    }
    Ok(found)
}

/// Returns the next row to step. A batch whose leaves all have values is applied; `goes_on` says whether another one follows it.
/// Detached from the interpreter if there are several trees.
fn next_row(py: Python<'_>, forest: &mut EngineForest<PythonGame>, goes_on: impl Fn() -> bool + Sync) -> Result<Option<Row>, Error> {
    let is_short = forest.len() == 1;
    let mut advance = || {
        // At most two batches, since only the caller handles signals: the next one may have no row.
        for _ in 0..2 {
            let row = forest.next_row()?;
            if row.is_some() || forest.num_waiting(forest.all()) > 0 {
                return Ok(row);
            }
            forest.apply(forest.all(), Policy::Uniform, &[])?;
            if !goes_on() || !forest.wants_more() {
                break;
            }
        }
        Ok(None)
    };
    // Detaching takes longer than a descent of one tree.
    if is_short {
        advance()
    } else {
        py.detach(advance)
    }
}

#[pymethods]
impl Forest {
    /// Plants a tree for an external state; returns its slot.
    fn plant_external(&self, to_play: u8, legal: Vec<u16>, seed: u64, call: u64, row: u64) -> PyResult<u32> {
        self.call(|any| external(any)?.plant(to_play, &legal, tree_key(seed, call, row)).or_python())
    }

    /// Replaces tree `index` by one of another external state; returns its slot and the released slots.
    fn reset_external(
        &self,
        index: usize,
        to_play: i32,
        legal: Vec<u16>,
        probabilities: Vec<f64>,
        key: (u64, u64, u64),
    ) -> PyResult<(u32, Vec<u32>)> {
        let key = tree_key(key.0, key.1, key.2);
        self.call(|any| external(any)?.reset(index, player(to_play), &legal, &probabilities, key).or_python())
    }

    /// Advances a tree of external states, to a chance node with `probabilities`; returns the slot of the new root and the released
    /// slots.
    fn advance_external(
        &self,
        index: usize,
        action: u16,
        to_play: i32,
        legal: Vec<u16>,
        probabilities: Vec<f64>,
    ) -> PyResult<(u32, Vec<u32>)> {
        self.call(|any| external(any)?.advance(index, action, player(to_play), &legal, &probabilities).or_python())
    }

    /// Returns the slot of the root of tree `index` (external states).
    fn root_slot(&self, index: usize) -> PyResult<u32> {
        self.call(|any| each!(any, forest => Ok(forest.tree(index).or_python()?.tree().slot(ROOT).unwrap_or(u32::MAX))))
    }

    /// The random numbers of playouts: those of the row returned last.
    #[getter]
    fn playout_random(&self, py: Python<'_>) -> Py<PlayoutRandom> {
        self.playout_random.clone_ref(py)
    }

    /// Returns (slot, parent slot, action) of the next row to step, gathering leaves if none is left. None ends a batch: leaves wait
    /// for `apply`, or all of them had values and it is closed. `continuous` goes on with further batches in the second case.
    fn next_row(&self, py: Python<'_>, continuous: bool) -> PyResult<RowToStep> {
        self.continuous.store(continuous, Ordering::Relaxed);
        self.call(|any| self.next(py, external(any)?))
    }

    /// Stores the step of the row returned last; returns the next one as `next_row`. `values` are the returns if `legal` is None,
    /// which is the end of the game, and else the result of a playout, None if the leaf is to wait for an evaluator.
    #[pyo3(signature = (to_play, legal, values, rewards = None, probabilities = None))]
    fn step(
        &self,
        py: Python<'_>,
        to_play: i32,
        legal: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
        rewards: Option<&Bound<'_, PyAny>>,
        probabilities: Option<Vec<f64>>,
    ) -> PyResult<RowToStep> {
        let values = values.map_or(Ok(Vec::new()), numbers)?;
        let rewards = rewards.map_or(Ok(Vec::new()), numbers)?;
        let actions = legal.map_or(Ok(Vec::new()), numbers)?;
        self.call(|any| {
            let forest = external(any)?;
            let mut result = StepResult {
                to_play: player(to_play),
                returns: None,
                rewards: &rewards,
                legal: &actions,
                probabilities: probabilities.as_deref().unwrap_or(&[]),
                values: &values,
            };
            if legal.is_none() {
                // `to_play` is arbitrary at an end; its value is stored for some valid player.
                let is_valid = usize::from(result.to_play) < forest.config().num_players;
                result = StepResult { to_play: if is_valid { result.to_play } else { 0 }, returns: Some(&values), values: &[], ..result };
            }
            forest.step(&result).or_python()?;
            self.next(py, forest)
        })
    }

    /// Returns (slot, player who chose the last move, key of the simulation) of the waiting leaves.
    fn waiting(&self) -> PyResult<Vec<(u32, u8, u64)>> {
        self.call(|any| Ok(each!(any, forest => forest.waiting().iter().map(|row| (row.slot, row.chooser, row.key)).collect())))
    }

    /// Returns (slots, parent slots, actions) of the next rows to step, gathering leaves if none is left; None ends a batch.
    fn next_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<RowsToStep<'py>>> {
        self.call(|any| {
            let forest = external(any)?;
            let rows = py.detach(|| forest.next_rows()).or_python()?;
            let column = |number: fn(&Row) -> i64| rows.iter().map(number).collect::<Vec<_>>().into_pyarray(py);
            let columns = || (column(|row| row.slot.into()), column(|row| row.parent_slot.into()), column(|row| row.action.into()));
            Ok((!rows.is_empty()).then(columns))
        })
    }

    /// Stores the steps of the rows that `next_rows` returned: the player to move, whether the game is over, the returns [rows,
    /// players] and the mask of legal actions [rows, actions], which counts unless the game is over, and the returns only then.
    fn step_rows(
        &self,
        py: Python<'_>,
        to_play: PyReadonlyArray1<'_, i64>,
        terminal: PyReadonlyArray1<'_, bool>,
        returns: PyReadonlyArray2<'_, f64>,
        legal: PyReadonlyArray2<'_, bool>,
    ) -> PyResult<()> {
        let (to_play, terminal, returns, legal) = (to_play.as_slice()?, terminal.as_slice()?, returns.as_slice()?, legal.as_slice()?);
        self.call(|any| {
            let forest = external(any)?;
            let (players, actions) = (forest.config().num_players, forest.config().num_actions);
            let rows = to_play.len();
            if terminal.len() != rows || returns.len() != rows * players || legal.len() != rows * actions {
                return Err(Error::Usage("the columns of step_rows do not have one entry a row".into())).or_python();
            }
            let store = || {
                let mut listed = Vec::with_capacity(actions);
                for (row, (&to_play, &is_over)) in to_play.iter().zip(terminal).enumerate() {
                    listed.clear();
                    let mask = &legal[row * actions..(row + 1) * actions];
                    listed.extend((0..actions as u16).zip(mask).filter(|&(_, &is_legal)| is_legal && !is_over).map(|(action, _)| action));
                    let returns = &returns[row * players..(row + 1) * players];
                    let to_play = u8::try_from(to_play).unwrap_or(CHANCE);
                    forest.step(&StepResult {
                        to_play,
                        returns: is_over.then_some(returns),
                        rewards: &[],
                        legal: &listed,
                        probabilities: &[],
                        values: &[],
                    })?;
                }
                Ok(())
            };
            py.detach(store).or_python()
        })
    }

    /// Returns (slots, keys of the simulations) of the waiting leaves.
    fn waiting_rows<'py>(&self, py: Python<'py>) -> PyResult<WaitingRows<'py>> {
        self.call(|any| {
            let rows = external(any)?.waiting();
            let slots: Vec<i64> = rows.iter().map(|row| row.slot.into()).collect();
            let keys: Vec<u64> = rows.iter().map(|row| row.key).collect();
            Ok((slots.into_pyarray(py), keys.into_pyarray(py)))
        })
    }
}

impl Forest {
    /// `next_row` of a borrowed forest.
    fn next(&self, py: Python<'_>, forest: &mut EngineForest<PythonGame>) -> PyResult<RowToStep> {
        let goes_on = || self.continuous.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed);
        let row = next_row(py, forest, goes_on).or_python()?;
        Ok(row.map(|row| {
            self.playout_random.borrow_mut(py).begin(row.key);
            (row.slot, row.parent_slot, row.action)
        }))
    }
}
