//! Python bindings of tree snapshots.

pub(crate) mod columns;
mod window;

use numpy::{IntoPyArray, PyArray1};
use pondertree_core::solvers::minimax::Verdict;
use pondertree_core::{edge_discount, node_sum, Error, Snapshot, WindowOptions, ROOT, UNPROVEN};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::guarded;
use crate::errors::OrPython;

/// An immutable snapshot of one tree.
#[pyclass(frozen, module = "pondertree._core", skip_from_py_object)]
pub struct TreeView(pub Snapshot);

type NodeRow = (f64, i16, bool, Option<i8>, u16, u16, u16, u8, Option<u32>, Vec<f64>);
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
    /// Scatters numbers of the root's edges by action.
    fn dense<T: Clone + Default>(&self, numbers: impl Iterator<Item = T>, num_actions: usize) -> Vec<T> {
        let mut dense = vec![T::default(); num_actions];
        for (&action, number) in self.0.tree().edges(self.0.tree().node(ROOT)).actions.iter().zip(numbers) {
            if let Some(slot) = dense.get_mut(usize::from(action)) {
                *slot = number;
            }
        }
        dense
    }

    fn check(&self, node: u32) -> PyResult<()> {
        if (node as usize) < self.0.tree().num_nodes() {
            return Ok(());
        }
        let text = format!("node {node} does not exist: this tree has {}", self.0.tree().num_nodes());
        Err(Error::InvalidArgument(text)).or_python()
    }
}

#[pymethods]
impl TreeView {
    /// Returns (raw value, to_play (-1: chance), end, proven, distance, number of edges, opened, forced_depth_left, slot, rewards) of a
    /// node.
    fn node(&self, node: u32) -> PyResult<NodeRow> {
        guarded(|| {
            self.check(node)?;
            let header = self.0.tree().node(node);
            let proven = (header.proven != UNPROVEN).then_some(header.proven);
            Ok((
                header.raw_value,
                if header.is_chance() { -1 } else { i16::from(header.to_play) },
                header.terminal,
                proven,
                header.distance,
                header.num_edges,
                header.opened,
                self.0.forced_depth_left(node),
                self.0.tree().slot(node),
                self.0.tree().rewards(node).to_vec(),
            ))
        })
    }

    /// Returns the columns of a node's edges: actions, visits, sums, priors, child nodes (-1: none), proven for the chooser (2:
    /// unproven), in flight, categories.
    fn edges<'py>(&self, py: Python<'py>, node: u32) -> PyResult<EdgeColumns<'py>> {
        guarded(|| {
            self.check(node)?;
            let edges = self.0.tree().edges(self.0.tree().node(node));
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

    /// Returns place and action of the move to play; `verdicts` (action, plies of a win or -1 for a loss) guard it.
    fn choose(&self, temperature: f64, verdicts: Vec<(u16, i64)>) -> PyResult<(usize, u16)> {
        guarded(|| {
            let verdict = |plies: i64| u32::try_from(plies).map_or(Verdict::Loss, Verdict::Win);
            let verdicts: Vec<(u16, Verdict)> = verdicts.into_iter().map(|(action, plies)| (action, verdict(plies))).collect();
            let place = self.0.choose(temperature, &verdicts);
            Ok((place, self.0.tree().edges(self.0.tree().node(ROOT)).actions[place]))
        })
    }

    /// Returns the probability of each action at a temperature; `greedy` is the place of the best.
    fn policy<'py>(&self, py: Python<'py>, temperature: f64, greedy: usize, num_actions: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        guarded(|| {
            let policy = self.0.policy(temperature, greedy);
            Ok(self.dense(policy.into_iter(), num_actions).into_pyarray(py))
        })
    }

    /// Returns the visits of each action at the root.
    fn visits<'py>(&self, py: Python<'py>, num_actions: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guarded(|| {
            let edges = self.0.tree().edges(self.0.tree().node(ROOT));
            Ok(self.dense(edges.visits.iter().map(|&visits| i64::from(visits)), num_actions).into_pyarray(py))
        })
    }

    /// The value of the root for the player to move.
    #[getter]
    fn value(&self) -> PyResult<f64> {
        guarded(|| Ok(self.0.value()))
    }

    /// The value of the root for each player.
    #[getter]
    fn values(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        guarded(|| Ok(py.detach(|| self.0.values())))
    }

    /// The proven result of the root for the player to move.
    #[getter]
    fn proven(&self) -> Option<i8> {
        let proven = self.0.tree().node(ROOT).proven;
        (proven != UNPROVEN).then_some(proven)
    }

    /// The root's priors without noise, by action; empty without noise.
    #[getter]
    fn clean_priors(&self) -> Vec<(u16, f32)> {
        self.0.clean_priors().to_vec()
    }

    /// Key of the tree's random numbers.
    #[getter]
    fn key(&self) -> u64 {
        self.0.key
    }

    /// Simulations in the life of the tree.
    #[getter]
    fn simulations(&self) -> u64 {
        self.0.simulations
    }

    /// Whether moves have categories.
    #[getter]
    fn has_categories(&self) -> bool {
        self.0.has_tags
    }

    /// Returns W of a node with `visits`, for the player to move there.
    fn node_sum(&self, node: u32, visits: u32) -> PyResult<f64> {
        guarded(|| {
            self.check(node)?;
            Ok(node_sum(self.0.tree(), self.0.tree().node(node), visits))
        })
    }

    /// Returns the discount of the edges of a node.
    fn edge_discount(&self, node: u32) -> PyResult<f64> {
        guarded(|| {
            self.check(node)?;
            Ok(edge_discount(self.0.tree().node(node), self.0.tree().shape().discount))
        })
    }

    /// N of the root.
    #[getter]
    fn root_visits(&self) -> u32 {
        self.0.tree().root_visits
    }

    /// Returns the principal variation from the root's edge at `place`, up to the first chance node or `through_chance`.
    #[pyo3(signature = (place, *, through_chance = false))]
    fn principal_variation(&self, place: usize, through_chance: bool) -> PyResult<Vec<u16>> {
        guarded(|| Ok(self.0.principal_variation(place, through_chance)))
    }

    /// Returns the columns of the most visited positions, see `window::columns`. `line` is the principal variation.
    #[expect(clippy::too_many_arguments, reason = "the fields of WindowOptions")]
    fn window<'py>(
        &self,
        py: Python<'py>,
        max_rows: usize,
        min_visits: u32,
        opened: Vec<u32>,
        closed: Vec<u32>,
        line: Vec<u16>,
        follow: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let options = WindowOptions { max_rows, min_visits, opened, closed, line, follow };
        guarded(|| window::columns(py, self.0.tree(), &options))
    }

    /// Returns the mean depth of the simulations and the depth of the deepest position, in plies. O(nodes).
    fn depths(&self, py: Python<'_>) -> PyResult<(f64, u32)> {
        guarded(|| Ok(py.detach(|| self.0.depths())))
    }

    /// The bytes in use, spare capacity included.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.tree().bytes()
    }

    /// The number of stored edges.
    #[getter]
    fn num_edges(&self) -> usize {
        self.0.tree().num_edges()
    }

    /// The number of nodes.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.0.tree().num_nodes()
    }

    /// The number of positions: the root and every opened edge.
    #[getter]
    fn positions(&self) -> u32 {
        self.0.tree().positions
    }
}
