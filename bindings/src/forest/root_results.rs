//! Python bindings of the root results of all trees: arrays with one row per tree.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::forest::any::{each, Any};
use crate::forest::Forest;

type RootPolicies<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl Forest {
    /// Returns the action to play in each tree, at a temperature for each.
    fn actions<'py>(&self, py: Python<'py>, temperatures: Vec<f64>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.call(|any| Ok(py.detach(|| each!(any, forest => forest.actions(&temperatures))).into_pyarray(py)))
    }

    /// Returns the policy of each tree over all actions, float64 [trees, num_actions]; proven results are respected.
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.call(|any| py.detach(|| each!(any, forest => forest.policies())).into_pyarray(py).reshape(shape(any)))
    }

    /// Returns the policies without the actions that are not at the root: (number of actions per root, the actions, their
    /// probabilities), the latter two concatenated over the roots.
    fn root_policies<'py>(&self, py: Python<'py>) -> PyResult<RootPolicies<'py>> {
        self.call(|any| {
            let (counts, actions, policies) = py.detach(|| each!(any, forest => forest.root_policies()));
            Ok((counts.into_pyarray(py), actions.into_pyarray(py), policies.into_pyarray(py)))
        })
    }

    /// Returns the visits of each action in each tree, int64 [trees, num_actions].
    fn visits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.call(|any| py.detach(|| each!(any, forest => forest.visits())).into_pyarray(py).reshape(shape(any)))
    }

    /// Returns the value of each root for its player to move.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.call(|any| Ok(each!(any, forest => forest.values()).into_pyarray(py)))
    }
}

fn shape(any: &Any) -> [usize; 2] {
    each!(any, forest => [forest.len(), forest.config().num_actions])
}
