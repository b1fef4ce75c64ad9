//! A tree to look at: it does not change while a search goes on.

mod columns;

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pondertree_core::games::World;
use pondertree_core::search::config::SearchConfig;
use pondertree_core::search::root_answer::{self, Plan};
use pondertree_core::search::tree_search::TreeSearch;
use pondertree_core::solvers::minimax::Verdict;
use pondertree_core::tree::{depths, Tree, ROOT, UNPROVEN};
use pyo3::prelude::*;

use crate::call::guarded;
use crate::errors::OrPython;

/// A snapshot of one tree.
#[pyclass(frozen, module = "pondertree._core", skip_from_py_object)]
pub struct TreeView {
    pub tree: Arc<Tree>,
    #[pyo3(get)]
    pub key: u64,
    #[pyo3(get)]
    pub simulations: u64,
    pub plan: Option<Plan>,
    /// Whether moves have categories.
    #[pyo3(get)]
    pub has_categories: bool,
}

type NodeRow = (f64, u8, bool, Option<i8>, u16, u16, u16, u8, Option<u32>, Vec<f64>);
type EdgeColumns<'py> = (
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i8>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u8>>,
);

impl TreeView {
    /// What `search` has now.
    pub fn of<W: World>(search: &TreeSearch<W>, config: &SearchConfig) -> Self {
        Self {
            tree: search.snapshot(),
            key: search.search_state.key,
            simulations: search.search_state.simulations,
            plan: search.plan(config),
            has_categories: config.knowledge.as_ref().is_some_and(|knowledge| knowledge.priority.is_some()),
        }
    }

    /// Numbers of the root's edges, by action.
    fn dense<T: Clone + Default>(&self, numbers: impl Iterator<Item = T>, num_actions: usize) -> Vec<T> {
        let mut dense = vec![T::default(); num_actions];
        for (&action, number) in self.tree.edges(self.tree.node(ROOT)).actions.iter().zip(numbers) {
            if let Some(slot) = dense.get_mut(usize::from(action)) {
                *slot = number;
            }
        }
        dense
    }

    fn check(&self, node: u32) -> PyResult<()> {
        if (node as usize) < self.tree.num_nodes() {
            return Ok(());
        }
        let text = format!("node {node} does not exist: this tree has {}", self.tree.num_nodes());
        Err(pondertree_core::error::Error::InvalidArgument(text)).or_python()
    }
}

#[pymethods]
impl TreeView {
    /// (raw value, to_play, end, proven, distance, number of edges, opened, forced_depth_left, slot, rewards) of a node.
    fn node(&self, node: u32) -> PyResult<NodeRow> {
        guarded(|| {
            self.check(node)?;
            let header = self.tree.node(node);
            let proven = (header.proven != UNPROVEN).then_some(header.proven);
            Ok((
                header.raw,
                header.to_play,
                header.end,
                proven,
                header.distance,
                header.num_edges,
                header.opened,
                header.forced_depth_left,
                self.tree.slot(node),
                self.tree.rewards(node).to_vec(),
            ))
        })
    }

    /// Columns of a node's edges: actions, visits, sums, priors, child nodes (-1: none), proven for the chooser (2: no), in flight,
    /// categories.
    fn edges<'py>(&self, py: Python<'py>, node: u32) -> PyResult<EdgeColumns<'py>> {
        guarded(|| {
            self.check(node)?;
            let edges = self.tree.edges(self.tree.node(node));
            let children: Vec<i64> = edges.links.iter().map(|link| link.child().map_or(-1, i64::from)).collect();
            let proven: Vec<i8> = edges.links.iter().map(|link| link.proven().unwrap_or(UNPROVEN)).collect();
            let categories: Vec<u8> = edges.links.iter().map(|link| link.tag()).collect();
            let in_flight = if edges.in_flight.is_empty() { vec![0; edges.actions.len()] } else { edges.in_flight.to_vec() };
            Ok((
                edges.actions.to_vec().into_pyarray(py),
                edges.visits.to_vec().into_pyarray(py),
                edges.sums.to_vec().into_pyarray(py),
                edges.priors.to_vec().into_pyarray(py),
                children.into_pyarray(py),
                proven.into_pyarray(py),
                in_flight.into_pyarray(py),
                categories.into_pyarray(py),
            ))
        })
    }

    /// The move to play, as its place among the root's edges and its action; `verdicts` (action, plies of a win or -1 of a loss)
    /// guard it.
    fn choose(&self, temperature: f64, verdicts: Vec<(u16, i64)>) -> PyResult<(usize, u16)> {
        guarded(|| {
            let verdict = |plies: i64| u32::try_from(plies).map_or(Verdict::Loss, Verdict::Win);
            let verdicts: Vec<(u16, Verdict)> = verdicts.into_iter().map(|(action, plies)| (action, verdict(plies))).collect();
            let place = root_answer::choose(&self.tree, temperature, self.key, self.simulations, &verdicts, self.plan.as_ref());
            Ok((place, self.tree.edges(self.tree.node(ROOT)).actions[place]))
        })
    }

    /// The probability of each action at a temperature; `greedy` is the place of the best.
    fn policy<'py>(&self, py: Python<'py>, temperature: f64, greedy: usize, num_actions: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        guarded(|| {
            let policy = root_answer::policy(&self.tree, temperature, greedy, self.plan.as_ref());
            Ok(self.dense(policy.into_iter(), num_actions).into_pyarray(py))
        })
    }

    /// Visits of each action at the root.
    fn visits<'py>(&self, py: Python<'py>, num_actions: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guarded(|| {
            let edges = self.tree.edges(self.tree.node(ROOT));
            Ok(self.dense(edges.visits.iter().map(|&visits| i64::from(visits)), num_actions).into_pyarray(py))
        })
    }

    /// The value of the root for the player to move there.
    #[getter]
    fn value(&self) -> PyResult<f64> {
        guarded(|| Ok(root_answer::value(&self.tree)))
    }

    /// The value of the root for each player.
    #[getter]
    fn values(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        guarded(|| Ok(py.detach(|| root_answer::values(&self.tree))))
    }

    /// What is proven of the root for the player to move there.
    #[getter]
    fn proven(&self) -> Option<i8> {
        let proven = self.tree.node(ROOT).proven;
        (proven != UNPROVEN).then_some(proven)
    }

    /// The priors of the root without noise, by action; empty where there is no noise.
    #[getter]
    fn clean_priors(&self) -> Vec<(u16, f32)> {
        self.tree.clean_priors.clone()
    }

    /// N of the root.
    #[getter]
    fn root_visits(&self) -> u32 {
        self.tree.root_visits
    }

    /// The expected line that begins with the root's edge at `place`.
    fn principal_variation(&self, place: usize) -> PyResult<Vec<u16>> {
        guarded(|| Ok(root_answer::principal_variation(&self.tree, place)))
    }

    /// The mean depth of the simulations in the tree, and the depth of its deepest position, in plies. Looks at every node.
    fn depths(&self, py: Python<'_>) -> PyResult<(f64, u32)> {
        guarded(|| Ok(py.detach(|| depths(&self.tree))))
    }

    /// Memory in use, capacity counted.
    #[getter]
    fn bytes(&self) -> usize {
        self.tree.bytes()
    }

    /// Edges stored.
    #[getter]
    fn num_edges(&self) -> usize {
        self.tree.num_edges()
    }

    /// Nodes stored.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.tree.num_nodes()
    }

    /// Positions in the tree: the root and every move tried.
    #[getter]
    fn positions(&self) -> u32 {
        self.tree.positions
    }
}
