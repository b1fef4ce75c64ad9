//! What all trees of a forest have found, as arrays with a row for each: batches have thousands of trees.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pondertree_core::forest::Forest as Trees;
use pondertree_core::games::World;
use pondertree_core::search::root_answer;
use pondertree_core::search::tree_search::TreeSearch;
use pondertree_core::tree::ROOT;
use pyo3::prelude::*;

use crate::forest::any::{each, Any};
use crate::forest::Forest;

#[pymethods]
impl Forest {
    /// The action to play in each tree, at a temperature for each.
    fn actions<'py>(&self, py: Python<'py>, temperatures: Vec<f64>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.call(|any| {
            let actions = py.detach(|| each!(any, forest => chosen(forest, &temperatures)));
            Ok(actions.into_pyarray(py))
        })
    }

    /// The share of visits of each action in each tree; proven results are respected.
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.call(|any| {
            let rows = py.detach(|| each!(any, forest => dense(forest, |tree| policy(forest, tree))));
            rows.into_pyarray(py).reshape(shape(any))
        })
    }

    /// The same without the actions that are not at the root: (how many there are at each root, the actions, their shares), the
    /// actions of one root after those of another, in any order.
    fn root_policies<'py>(&self, py: Python<'py>) -> PyResult<RootPolicies<'py>> {
        self.call(|any| {
            let (counts, actions, shares) = py.detach(|| each!(any, forest => sparse(forest)));
            Ok((counts.into_pyarray(py), actions.into_pyarray(py), shares.into_pyarray(py)))
        })
    }

    /// Visits of each action in each tree.
    fn visits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.call(|any| {
            let rows = py.detach(|| {
                each!(any, forest => dense(forest, |tree| {
                    tree.tree().edges(tree.tree().node(ROOT)).visits.iter().map(|&visits| i64::from(visits)).collect()
                }))
            });
            rows.into_pyarray(py).reshape(shape(any))
        })
    }

    /// The value of each root, for the player to move there.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.call(|any| {
            let values: Vec<f64> = each!(any, forest => forest.trees().map(|tree| root_answer::value(tree.tree())).collect());
            Ok(values.into_pyarray(py))
        })
    }
}

type RootPolicies<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<f64>>);

fn shape(any: &Any) -> [usize; 2] {
    each!(any, forest => [forest.len(), forest.config.num_actions])
}

/// The action to play in each tree.
fn chosen<W: World>(forest: &Trees<W>, temperatures: &[f64]) -> Vec<i64> {
    let mut actions = vec![0; forest.len()];
    forest.read_each(&mut actions, |index, tree, action| {
        let plan = tree.plan(&forest.config);
        let tau = temperatures.get(index).copied().unwrap_or(0.0);
        let place = root_answer::choose(tree.tree(), tau, tree.search_state.key, tree.search_state.simulations, &[], plan.as_ref());
        *action = i64::from(tree.tree().edges(tree.tree().node(ROOT)).actions[place]);
    });
    actions
}

/// The policy over the root's edges.
fn policy<W: World>(forest: &Trees<W>, tree: &TreeSearch<W>) -> Vec<f64> {
    let plan = tree.plan(&forest.config);
    let best = root_answer::choose(tree.tree(), 0.0, tree.search_state.key, tree.search_state.simulations, &[], plan.as_ref());
    root_answer::policy(tree.tree(), 1.0, best, plan.as_ref())
}

/// The actions at each root and the policy over them, one root after another.
fn sparse<W: World>(forest: &Trees<W>) -> (Vec<i64>, Vec<u16>, Vec<f64>) {
    let mut policies = vec![Vec::new(); forest.len()];
    forest.read_each(&mut policies, |_, tree, shares| *shares = policy(forest, tree));
    let actions = forest.trees().flat_map(|tree| tree.tree().edges(tree.tree().node(ROOT)).actions.iter().copied()).collect();
    let counts = policies.iter().map(|shares| shares.len() as i64).collect();
    (counts, actions, policies.concat())
}

/// Numbers of the root's edges of each tree, by action.
fn dense<W: World, T: Clone + Default + Send>(forest: &Trees<W>, numbers: impl Fn(&TreeSearch<W>) -> Vec<T> + Sync) -> Vec<T> {
    let actions = forest.config.num_actions;
    let mut rows = vec![T::default(); forest.len() * actions];
    let mut places: Vec<&mut [T]> = rows.chunks_exact_mut(actions).collect();
    forest.read_each(&mut places, |_, tree, row| {
        for (&action, number) in tree.tree().edges(tree.tree().node(ROOT)).actions.iter().zip(numbers(tree)) {
            row[usize::from(action)] = number;
        }
    });
    rows
}
