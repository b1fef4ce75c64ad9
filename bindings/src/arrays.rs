//! NumPy arrays that cross the boundary: observations, and the columns of learned models.

use std::borrow::Cow;

use numpy::{PyArray1, PyArray2, PyArray4, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pondertree_core::games::{unpack_observation, Dimensions, Game};
use pondertree_core::{Error, ModelResponse, Row};
use pyo3::prelude::*;

use crate::errors::OrPython;
use crate::state::{legal_action, Number};

/// Returns the dimensions of states of a search; there is at least one.
fn dimensions_of<G: Game>(states: &[&G]) -> PyResult<Dimensions> {
    let first = states.first().ok_or_else(|| Error::Usage("no leaves wait for values: there is nothing to observe".into()));
    Ok(first.or_python()?.dimensions())
}

/// Returns the observations of states of a search, float32 [rows, planes, height, width].
pub fn observations<'py, G: Game>(py: Python<'py>, states: &[&G]) -> PyResult<Bound<'py, PyArray4<f32>>> {
    let dimensions = dimensions_of(states)?;
    let Dimensions { planes, scalars, height, width, .. } = dimensions;
    let array = PyArray4::zeros(py, [states.len(), planes + scalars, height, width], false);
    let (mut words, mut constants) = (vec![0; dimensions.words()], vec![0.0; scalars]);
    let size = (planes + scalars) * dimensions.cells();
    for (state, out) in states.iter().zip(array.readwrite().as_slice_mut()?.chunks_exact_mut(size)) {
        state.pack_observation(&mut words, &mut constants);
        // The sizes of most games are constants, known in this loop.
        unpack_observation(state.dimensions(), &words, &constants, out);
    }
    Ok(array)
}

/// Bit planes uint64 [rows, words], and the constants of scalar planes float32 [rows, scalars].
pub type Packed<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<f32>>);

/// Returns `rows` packed observations; `write` packs each in turn.
fn packed<'py>(
    py: Python<'py>,
    dimensions: Dimensions,
    rows: usize,
    mut write: impl FnMut(usize, &mut [u64], &mut [f32]) -> PyResult<()>,
) -> PyResult<Packed<'py>> {
    let planes = PyArray2::zeros(py, [rows, dimensions.words()], false);
    let scalars = PyArray2::zeros(py, [rows, dimensions.scalars], false);
    {
        let (mut planes, mut scalars) = (planes.readwrite(), scalars.readwrite());
        let plane_rows = planes.as_slice_mut()?.chunks_exact_mut(dimensions.words());
        let scalar_rows = scalars.as_slice_mut()?.chunks_exact_mut(dimensions.scalars);
        for (row, (planes, scalars)) in plane_rows.zip(scalar_rows).enumerate() {
            write(row, planes, scalars)?;
        }
    }
    Ok((planes, scalars))
}

/// Returns the packed observations of states of a search.
pub fn packed_observations<'py, G: Game>(py: Python<'py>, states: &[&G]) -> PyResult<Packed<'py>> {
    let dimensions = dimensions_of(states)?;
    packed(py, dimensions, states.len(), |row, planes, scalars| {
        states[row].pack_observation(planes, scalars);
        Ok(())
    })
}

/// The packed observation before each move of a line, and the player to move.
pub type PackedLine<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<u8>>);

/// Plays `actions` in turn and observes the position before each.
pub fn compiled_line<'py, G: Game>(py: Python<'py>, start: &G, actions: &[u16]) -> PyResult<PackedLine<'py>> {
    let (mut state, mut players) = (start.clone(), Vec::with_capacity(actions.len()));
    let (planes, scalars) = packed(py, start.dimensions(), actions.len(), |row, planes, scalars| {
        state.pack_observation(planes, scalars);
        players.push(state.to_play());
        state.play(legal_action(&state, Number(actions[row].into())).or_python()?);
        Ok(())
    })?;
    Ok((planes, scalars, PyArray1::from_vec(py, players)))
}

/// The rows of a batch: parent slots, actions, the first new slot, and all new slots unless they are consecutive.
pub type LatentRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, u32, Option<Bound<'py, PyArray1<i64>>>);

/// Returns rows as new arrays: a model may keep them.
pub fn latent_rows<'py>(py: Python<'py>, rows: &[Row]) -> LatentRows<'py> {
    let column = |of: fn(&Row) -> i64| PyArray1::from_iter(py, rows.iter().map(of));
    let in_a_row = rows.windows(2).all(|pair| pair[0].slot + 1 == pair[1].slot);
    let slots = (!in_a_row).then(|| column(|row| i64::from(row.slot)));
    let first = rows.first().map_or(0, |row| row.slot);
    (column(|row| i64::from(row.parent_slot)), column(|row| i64::from(row.action)), first, slots)
}

/// One number per row in 32 or 64 bits: converting here is cheaper than in Python.
#[derive(FromPyObject)]
pub enum Column<'py> {
    /// float32.
    Single(PyReadonlyArray1<'py, f32>),
    /// float64.
    Double(PyReadonlyArray1<'py, f64>),
}

impl Column<'_> {
    fn numbers(&self) -> Cow<'_, [f64]> {
        match self {
            Self::Single(array) => Cow::Owned(array.as_array().iter().map(|&number| f64::from(number)).collect()),
            Self::Double(array) => match array.as_slice() {
                Ok(numbers) => Cow::Borrowed(numbers),
                Err(_) => Cow::Owned(array.as_array().iter().copied().collect()),
            },
        }
    }
}

/// The columns of a model's response.
pub struct ModelColumns<'py> {
    pub rewards: Column<'py>,
    pub logits: PyReadonlyArray2<'py, f32>,
    pub values: Column<'py>,
    pub discounts: Option<Column<'py>>,
}

impl ModelColumns<'_> {
    /// Passes the columns to the engine as slices.
    pub fn read<T>(&self, take: impl FnOnce(ModelResponse<'_>) -> T) -> T {
        let (rewards, values) = (self.rewards.numbers(), self.values.numbers());
        let discounts = self.discounts.as_ref().map(Column::numbers);
        let logits = match self.logits.as_slice() {
            Ok(logits) => Cow::Borrowed(logits),
            Err(_) => Cow::Owned(self.logits.as_array().iter().copied().collect()),
        };
        take(ModelResponse { rewards: &rewards, discounts: discounts.as_deref(), logits: &logits, values: &values })
    }
}
