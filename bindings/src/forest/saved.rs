//! Python bindings of live trees as columns: those of their snapshots, and the state of the search.

use numpy::IntoPyArray;
use pondertree_core::{search_columns, Error, SearchColumns};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::OrPython;
use crate::forest::any::{copy_of, each, each_compiled, Any};
use crate::forest::Forest;
use crate::tree_view::columns::{column, read_snapshot, write_snapshot};

macro_rules! read_and_write {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        fn read_search(columns: &Bound<'_, PyDict>) -> PyResult<SearchColumns> {
            Ok(SearchColumns { $($name: column(columns, stringify!($name))?,)* })
        }

        fn write_search(columns: &Bound<'_, PyDict>, search: SearchColumns) -> PyResult<()> {
            $(columns.set_item(stringify!($name), search.$name.into_pyarray(columns.py()))?;)*
            Ok(())
        }
    };
}

search_columns!(read_and_write);

#[pymethods]
impl Forest {
    /// Returns the only tree as named arrays, from which `restore` continues the search.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.call(|any| {
            let (snapshot, search) = py.detach(|| each!(any, forest => forest.columns(0))).or_python()?;
            let columns = write_snapshot(py, snapshot)?;
            write_search(&columns, search)?;
            Ok(columns)
        })
    }

    /// Restores the tree of `columns` in this empty forest; `state` is its root in a compiled game, and None otherwise.
    fn restore(&self, py: Python<'_>, state: &Bound<'_, PyAny>, columns: &Bound<'_, PyDict>) -> PyResult<()> {
        let (snapshot, search) = (read_snapshot(columns)?, read_search(columns)?);
        self.call(|any| match any {
            Any::External(forest) => py.detach(|| forest.restore(snapshot, &search)).or_python(),
            Any::Latent(forest) => py.detach(|| forest.restore(snapshot, &search)).or_python(),
            _ => each_compiled!(any, forest, Class => {
                let root = copy_of(&state.cast::<Class>()?.get().0);
                py.detach(|| forest.restore(snapshot, &search, root)).or_python()
            }),
        })
    }
}
