//! Format of pickles and files of trees: dicts of named NumPy arrays. `docs/trees.md` lists the columns.

use std::sync::Arc;

use numpy::{Element, IntoPyArray, PyReadonlyArray1};
use pondertree_core::{
    tree_columns, Backup, CompletedQ, Error, GumbelPolicy, RootState, Schedule, Shape, Snapshot, SnapshotColumns, TreeColumns,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::guarded;
use crate::errors::OrPython;
use crate::tree_view::TreeView;

/// Version of the columns and their meaning.
const VERSION: u32 = 1;

/// The `__reduce__` value of a snapshot.
type Reduced<'py> = (Bound<'py, PyAny>, (u32, Bound<'py, PyDict>));

/// Returns the error of an invalid dict of columns.
fn refused<T>(text: String) -> PyResult<T> {
    Err(Error::InvalidArgument(text)).or_python()
}

/// Reads a column of exactly this type.
pub(crate) fn column<T: Element + Copy>(columns: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let Some(array) = columns.get_item(name)? else { return refused(format!("the columns of a tree lack {name}")) };
    let Ok(array) = array.extract::<PyReadonlyArray1<'_, T>>() else {
        let wanted = numpy::dtype::<T>(columns.py());
        return refused(format!("the column {name} of a tree must be an array with one axis, of {wanted}"));
    };
    Ok(array.as_array().to_vec())
}

/// Reads a column of exactly `N` entries.
fn fixed<T: Element + Copy, const N: usize>(columns: &Bound<'_, PyDict>, name: &str) -> PyResult<[T; N]> {
    let entries: Vec<T> = column(columns, name)?;
    let count = entries.len();
    entries.try_into().or_else(|_| refused(format!("the column {name} of a tree has {count} entries: there must be {N}")))
}

/// Converts a 64-bit number of a column.
fn small<T: TryFrom<u64>>(number: u64, name: &str) -> PyResult<T> {
    T::try_from(number).or_else(|_| refused(format!("the column {name} of a tree has {number}, which is too large")))
}

fn read_shape(columns: &Bound<'_, PyDict>) -> PyResult<Shape> {
    let [max_edges, players, count_in_flight, slots, rewards, discounts, returns] = fixed::<u64, 7>(columns, "shape")?;
    // Files from before it have neither discount nor maxima.
    let [discount, maxima] = if columns.contains("planning")? { fixed::<f64, 2>(columns, "planning")? } else { [1.0, 0.0] };
    Ok(Shape {
        max_edges: small(max_edges, "shape")?,
        players: small(players, "shape")?,
        count_in_flight: count_in_flight != 0,
        slots: slots != 0,
        reward_width: small(rewards, "shape")?,
        model_columns: discounts != 0,
        player_values: returns != 0,
        discount,
        backup: if maxima == 0.0 { Backup::Mean } else { Backup::Max },
    })
}

macro_rules! read_and_write {
    ($($kind:ident { $($(#[$doc:meta])* $field:ident $name:literal: $type:ty = $width:expr,)* })*) => {
        fn read_tree(columns: &Bound<'_, PyDict>) -> PyResult<TreeColumns> {
            let [root_visits, positions] = fixed::<u64, 2>(columns, "counts")?;
            let (root_visits, positions) = (small(root_visits, "counts")?, small(positions, "counts")?);
            Ok(TreeColumns { shape: read_shape(columns)?, root_visits, positions, $($($field: column(columns, $name)?,)*)* })
        }

        fn write_tree(columns: &Bound<'_, PyDict>, tree: TreeColumns) -> PyResult<()> {
            $($(columns.set_item($name, tree.$field.into_pyarray(columns.py()))?;)*)*
            Ok(())
        }
    };
}

tree_columns!(read_and_write);

/// Reads the policy data of Gumbel search; None if the column `gumbel` is empty.
fn read_gumbel_policy(columns: &Bound<'_, PyDict>) -> PyResult<Option<GumbelPolicy>> {
    if column::<f64>(columns, "gumbel")?.is_empty() {
        return Ok(None);
    }
    let [value_scale, maxvisit_init, rescale_values, use_mixed_value, num_actions] = fixed::<f64, 5>(columns, "gumbel")?;
    let completed_q = CompletedQ {
        value_scale,
        maxvisit_init,
        rescale_values: rescale_values != 0.0,
        use_mixed_value: use_mixed_value != 0.0,
        num_actions: num_actions as usize,
    };
    let (actions, bases) = (column::<u16>(columns, "drawn_action")?, column::<u32>(columns, "drawn_visits")?);
    let draws: Vec<f64> = column(columns, "drawn_score")?;
    Ok(Some(GumbelPolicy { completed_q, schedule: Arc::new(Schedule::from_columns(&actions, &bases, &draws).or_python()?) }))
}

/// Reads the columns of a snapshot; others are ignored.
pub(crate) fn read_snapshot(columns: &Bound<'_, PyDict>) -> PyResult<SnapshotColumns> {
    let [key, simulations, has_categories] = fixed::<u64, 3>(columns, "search")?;
    let [low, high] = fixed(columns, "bounds")?;
    let clean: Vec<u16> = column(columns, "clean_action")?;
    let clean_priors: Vec<f32> = column(columns, "clean_prior")?;
    if clean.len() != clean_priors.len() {
        return refused("columns of a tree that belong together differ in length".into());
    }
    Ok(SnapshotColumns {
        tree: read_tree(columns)?,
        key,
        simulations,
        gumbel_policy: read_gumbel_policy(columns)?,
        root_state: RootState { proof_line: column(columns, "mating_line")?, clean_priors: clean.into_iter().zip(clean_priors).collect() },
        bounds: (low, high),
        node_forced_depth: column(columns, "node_forced_depth")?,
        has_tags: has_categories != 0,
    })
}

/// Returns the columns of a snapshot as named arrays.
pub(crate) fn write_snapshot(py: Python<'_>, all: SnapshotColumns) -> PyResult<Bound<'_, PyDict>> {
    let tree = all.tree;
    let (shape, flag) = (tree.shape, u64::from);
    let dict = PyDict::new(py);
    dict.set_item("search", vec![all.key, all.simulations, flag(all.has_tags)].into_pyarray(py))?;
    let shape = [
        shape.max_edges as u64,
        shape.players as u64,
        flag(shape.count_in_flight),
        flag(shape.slots),
        shape.reward_width as u64,
        flag(shape.model_columns),
        flag(shape.player_values),
    ];
    dict.set_item("shape", shape.to_vec().into_pyarray(py))?;
    let maxima = if tree.shape.backup == Backup::Max { 1.0 } else { 0.0 };
    dict.set_item("planning", vec![tree.shape.discount, maxima].into_pyarray(py))?;
    dict.set_item("counts", vec![u64::from(tree.root_visits), u64::from(tree.positions)].into_pyarray(py))?;
    dict.set_item("bounds", vec![all.bounds.0, all.bounds.1].into_pyarray(py))?;
    dict.set_item("mating_line", all.root_state.proof_line.into_pyarray(py))?;
    let (clean, clean_priors): (Vec<u16>, Vec<f32>) = all.root_state.clean_priors.into_iter().unzip();
    dict.set_item("clean_action", clean.into_pyarray(py))?;
    dict.set_item("clean_prior", clean_priors.into_pyarray(py))?;
    dict.set_item("node_forced_depth", all.node_forced_depth.into_pyarray(py))?;
    write_tree(&dict, tree)?;
    let (mut gumbel, mut drawn) = (Vec::new(), (Vec::new(), Vec::new(), Vec::new()));
    if let Some(gumbel_policy) = &all.gumbel_policy {
        let completed_q = gumbel_policy.completed_q;
        let switch = |on: bool| f64::from(u8::from(on));
        let (rescale, mixed) = (switch(completed_q.rescale_values), switch(completed_q.use_mixed_value));
        gumbel = vec![completed_q.value_scale, completed_q.maxvisit_init, rescale, mixed, completed_q.num_actions as f64];
        drawn = gumbel_policy.schedule.to_columns();
    }
    dict.set_item("gumbel", gumbel.into_pyarray(py))?;
    dict.set_item("drawn_action", drawn.0.into_pyarray(py))?;
    dict.set_item("drawn_visits", drawn.1.into_pyarray(py))?;
    dict.set_item("drawn_score", drawn.2.into_pyarray(py))?;
    Ok(dict)
}

#[pymethods]
impl TreeView {
    /// Creates a snapshot from its `columns()`.
    #[new]
    fn new(version: u32, columns: &Bound<'_, PyDict>) -> PyResult<Self> {
        guarded(|| {
            if version != VERSION {
                return refused(format!("the columns of a tree are of version {version}: this release reads version {VERSION}"));
            }
            let exported = read_snapshot(columns)?;
            columns.py().detach(|| Snapshot::from_columns(exported)).map(Self).or_python()
        })
    }

    /// Returns the snapshot as named arrays.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| write_snapshot(py, py.detach(|| self.0.to_columns())))
    }

    /// Returns the class, the version and the columns, for pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        Ok((py.get_type::<Self>().into_any(), (VERSION, self.columns(py)?)))
    }

    /// Snapshots are immutable: returns itself.
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Snapshots are immutable: returns itself.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }
}
