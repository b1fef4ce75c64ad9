//! Python bindings of offloaded searches: export of roots, import of results.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pondertree_core::{Error, OffloadResults};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrPython;
use crate::forest::any::{each, Any};
use crate::forest::Forest;

#[pymethods]
impl Forest {
    /// Returns whether all trees are new and want the same number of simulations.
    fn all_new(&self) -> PyResult<bool> {
        self.call(|any| Ok(each!(any, forest => forest.all_new())))
    }

    /// Returns whether the roots of trees `first` to `last` (exclusive) have been evaluated.
    fn roots_evaluated(&self, first: usize, last: usize) -> PyResult<bool> {
        self.call(|any| {
            Ok(each!(any, forest => {
                let mut trees = forest.trees().skip(first).take(last.saturating_sub(first));
                trees.all(|search| search.tree().root_visits > 0)
            }))
        })
    }

    /// Exports the roots of trees `first` to `last` (exclusive) as named columns; None unless they are new and want the same
    /// number of simulations.
    fn export_roots<'py>(&self, py: Python<'py>, first: usize, last: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.call(|any| {
            let Some(roots) = py.detach(|| each!(any, forest => forest.export_roots(first..last))) else { return Ok(None) };
            let columns = PyDict::new(py);
            columns.set_item("simulations", roots.simulations)?;
            columns.set_item("counts", roots.counts.into_pyarray(py))?;
            columns.set_item("to_play", roots.to_play.into_pyarray(py))?;
            columns.set_item("actions", roots.actions.into_pyarray(py))?;
            columns.set_item("priors", roots.priors.into_pyarray(py))?;
            columns.set_item("raw", roots.raw.into_pyarray(py))?;
            columns.set_item("keys", roots.keys.into_pyarray(py))?;
            columns.set_item("begun", roots.begun.into_pyarray(py))?;
            if let Any::ConnectFour(forest) = any {
                let boards: Vec<u64> =
                    forest.trees().skip(first).take(last - first).flat_map(|search| search.root().own_and_other()).collect();
                columns.set_item("boards", boards.into_pyarray(py))?;
            }
            columns.set_item("slots", roots.slots.into_pyarray(py))?;
            columns.set_item("draws", roots.draws.into_pyarray(py))?;
            columns.set_item("considered", roots.considered.into_pyarray(py))?;
            columns.set_item("weights", roots.weights.into_pyarray(py))?;
            Ok(Some(columns))
        })
    }

    /// Releases the slots that `export_roots` allocated for `trees` trees without results.
    fn cancel_export(&self, trees: usize, slots: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        let slots = slots.as_slice()?;
        self.call(|any| {
            each!(any, forest => forest.cancel_export(trees, slots));
            Ok(())
        })
    }

    /// Imports the results of trees from number `first` on, as columns with `nodes` nodes per tree.
    fn import_results(&self, py: Python<'_>, first: usize, nodes: usize, columns: &Bound<'_, PyDict>) -> PyResult<()> {
        let (done, made) = (column::<i32>(columns, "done")?, column::<i32>(columns, "made")?);
        let (headers, visits) = (column::<i32>(columns, "headers")?, column::<i32>(columns, "visits")?);
        let (raw, rewards) = (column::<f64>(columns, "raw")?, column::<f64>(columns, "rewards")?);
        let (discounts, sums) = (column::<f64>(columns, "discounts")?, column::<f64>(columns, "sums")?);
        let (priors, bounds) = (column::<f32>(columns, "priors")?, column::<f64>(columns, "bounds")?);
        let (actions, children) = (column::<i16>(columns, "actions")?, column::<i16>(columns, "children")?);
        let slots = column::<i64>(columns, "slots")?;
        let results = OffloadResults {
            done: done.as_slice()?,
            made: made.as_slice()?,
            nodes,
            headers: headers.as_slice()?,
            raw: raw.as_slice()?,
            rewards: rewards.as_slice()?,
            discounts: discounts.as_slice()?,
            sums: sums.as_slice()?,
            visits: visits.as_slice()?,
            priors: priors.as_slice()?,
            actions: actions.as_slice()?,
            children: children.as_slice()?,
            bounds: bounds.as_slice()?,
            slots: slots.as_slice()?,
        };
        self.call(|any| {
            if py.detach(|| each!(any, forest => forest.import_results(first, &results))) {
                return Ok(());
            }
            Err(Error::Usage("the columns of import_results do not fit the forest".into())).or_python()
        })
    }
}

fn column<'py, T: numpy::Element>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<PyReadonlyArray1<'py, T>> {
    let Some(given) = columns.get_item(name)? else {
        return Err(Error::Usage(format!("import_results needs the column {name}"))).or_python();
    };
    Ok(given.cast_into::<PyArray1<T>>()?.readonly())
}
