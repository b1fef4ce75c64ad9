//! Python bindings of offloaded searches: export of roots, import of results.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pondertree_core::{Error, OffloadResults};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrPython;
use crate::forest::any::{each, Any};
use crate::forest::Forest;

/// Writes the named fields of the exported roots to a dict.
macro_rules! write_columns {
    ($columns:ident, $roots:ident: $($name:ident),*) => {
        $($columns.set_item(stringify!($name), $roots.$name.into_pyarray($columns.py()))?;)*
    };
}

/// Reads the named columns of a dict.
macro_rules! read_columns {
    ($results:ident = $columns:ident, $nodes:ident: $($type:ty [$($name:ident),*]),*) => {
        $($(let $name = column::<$type>($columns, stringify!($name))?;)*)*
        let $results = OffloadResults { $nodes, $($($name: $name.as_slice()?,)*)* };
    };
}

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
            write_columns!(columns, roots: counts, to_play, actions, priors, raw, keys, begun, slots, draws, considered, weights);
            if let Any::ConnectFour(forest) = any {
                let boards: Vec<u64> =
                    forest.trees().skip(first).take(last - first).flat_map(|search| search.root().own_and_other()).collect();
                columns.set_item("boards", boards.into_pyarray(py))?;
            }
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
        read_columns!(results = columns, nodes:
            i32 [done, made, headers, visits],
            f64 [raw, rewards, discounts, sums, bounds],
            f32 [priors],
            i16 [actions, children],
            i64 [slots]);
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
