//! Python bindings of the forest of a learned model.

use std::sync::atomic::Ordering;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pondertree_core::{tree_key, Error, LatentRoot};
use pyo3::prelude::*;

use crate::arrays::{latent_rows, Column, LatentRows, ModelColumns};
use crate::errors::OrPython;
use crate::forest::any::latent;
use crate::forest::Forest;
use crate::random::Keys;

#[pymethods]
impl Forest {
    /// Plants a tree of a learned model per row; returns the slots of the roots. Without `to_play` player 0 moves; `legal` None
    /// (all rows or one) allows all actions.
    fn plant_latent<'py>(
        &self,
        py: Python<'py>,
        to_play: Option<Vec<u8>>,
        legal: Option<Vec<Option<Vec<u16>>>>,
        logits: PyReadonlyArray2<'_, f32>,
        values: PyReadonlyArray1<'_, f64>,
        keys: Keys,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.call(|any| {
            let forest = latent(any)?;
            let (actions, logits, values) = (forest.config().num_actions, logits.as_slice()?, values.as_slice()?);
            let rows = values.len();
            let keys = keys.of(rows).or_python()?;
            let per_row = [to_play.as_ref().map_or(rows, Vec::len), legal.as_ref().map_or(rows, Vec::len)];
            if per_row != [rows; 2] || logits.len() != rows * actions {
                return Err(Error::Usage("the columns of plant_latent do not have one entry a row".into())).or_python();
            }
            let all: Vec<u16> = (0..actions as u16).collect();
            let root = |(row, key): (usize, u64)| {
                let logits = &logits[row * actions..(row + 1) * actions];
                let legal = legal.as_ref().and_then(|legal| legal[row].as_deref()).unwrap_or(&all);
                let to_play = to_play.as_ref().map_or(0, |to_play| to_play[row]);
                (LatentRoot { to_play, legal, logits, value: values[row] }, key)
            };
            let roots: Vec<_> = keys.into_iter().enumerate().map(root).collect();
            let slots = py.detach(|| forest.plant_all(&roots)).or_python()?;
            Ok(slots.into_iter().map(i64::from).collect::<Vec<_>>().into_pyarray(py))
        })
    }

    /// Replaces tree `index` by one of another root; returns its slot and the released slots.
    #[expect(clippy::too_many_arguments, reason = "a root, and the key of its numbers")]
    fn reset_latent(
        &self,
        index: usize,
        to_play: u8,
        legal: Vec<u16>,
        logits: PyReadonlyArray1<'_, f32>,
        value: f64,
        seed: u64,
        call: u64,
        row: u64,
    ) -> PyResult<(u32, Vec<u32>)> {
        let root = LatentRoot { to_play, legal: &legal, logits: logits.as_slice()?, value };
        self.call(|any| latent(any)?.reset(index, root, tree_key(seed, call, row)).or_python())
    }

    /// Plays `action` at the root of tree `index` and sets the new root; returns its slot and the released slots.
    fn advance_latent(
        &self,
        index: usize,
        action: u16,
        to_play: u8,
        legal: Vec<u16>,
        logits: PyReadonlyArray1<'_, f32>,
        value: f64,
    ) -> PyResult<(u32, Vec<u32>)> {
        let root = LatentRoot { to_play, legal: &legal, logits: logits.as_slice()?, value };
        self.call(|any| latent(any)?.advance(index, action, root).or_python())
    }

    /// Returns the player to move after `action` at the root of tree `index`, if the tree has its node.
    fn turn_after(&self, index: usize, action: u16) -> PyResult<Option<u8>> {
        self.call(|any| latent(any)?.turn_after(index, action).or_python())
    }

    /// Gathers the leaves to evaluate: parent slots, actions, the first new slot, and all new slots unless they are
    /// consecutive.
    fn gather_latent<'py>(&self, py: Python<'py>) -> PyResult<LatentRows<'py>> {
        self.call(|any| {
            let forest = latent(any)?;
            let rows = py.detach(|| forest.gather_leaves()).or_python()?;
            Ok(latent_rows(py, &rows))
        })
    }

    /// Applies the model's response to the gathered rows and closes the batch. With `gather`, gathers the next rows; None if no tree
    /// wants more or `stop` was called.
    #[pyo3(signature = (rewards, logits, values, discounts, gather = true))]
    fn step_latent<'py>(
        &self,
        py: Python<'py>,
        rewards: Column<'py>,
        logits: PyReadonlyArray2<'py, f32>,
        values: Column<'py>,
        discounts: Option<Column<'py>>,
        gather: bool,
    ) -> PyResult<Option<LatentRows<'py>>> {
        self.call(|any| {
            let forest = latent(any)?;
            let gather = gather && !self.stop.load(Ordering::Relaxed);
            let columns = ModelColumns { rewards, logits, values, discounts };
            let rows = columns.read(|response| py.detach(|| forest.step_model(response, gather))).or_python()?;
            Ok((!rows.is_empty() || forest.has_batch()).then(|| latent_rows(py, &rows)))
        })
    }
}
