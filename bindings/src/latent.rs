//! What crosses between a history_table model and its forest: rows to ask about, columns of what it response.

use std::borrow::Cow;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pondertree_core::forest::Row;
use pondertree_core::search::expand_latent::ModelResponse;
use pyo3::prelude::*;

/// The rows of a batch: slots of the positions before, actions, the first slot of the new ones, and all of their slots where
/// they do not simply follow it.
pub type LatentRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, u32, Option<Bound<'py, PyArray1<i64>>>);

/// Rows as arrays, which are new each time: a model may keep what it is given.
pub fn latent_rows<'py>(py: Python<'py>, rows: &[Row]) -> LatentRows<'py> {
    let column = |of: fn(&Row) -> i64| PyArray1::from_iter(py, rows.iter().map(of));
    let in_a_row = rows.windows(2).all(|pair| pair[0].slot + 1 == pair[1].slot);
    let slots = (!in_a_row).then(|| column(|row| i64::from(row.slot)));
    let first = rows.first().map_or(0, |row| row.slot);
    (column(|row| i64::from(row.parent_slot)), column(|row| i64::from(row.action)), first, slots)
}

/// One number a row, in either size: networks answer in 32 bits, and a conversion in Python costs more than it does here.
#[derive(FromPyObject)]
pub enum Column<'py> {
    /// 32 bits.
    Single(PyReadonlyArray1<'py, f32>),
    /// 64 bits.
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

/// A model's answer to a batch, as it came.
pub struct ModelColumns<'py> {
    pub rewards: Column<'py>,
    pub logits: PyReadonlyArray2<'py, f32>,
    pub values: Column<'py>,
    pub discounts: Option<Column<'py>>,
}

impl ModelColumns<'_> {
    /// Hands the numbers on as the engine reads them.
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
