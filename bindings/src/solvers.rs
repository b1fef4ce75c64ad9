//! Python bindings of the Connect 4 solver: detached from the interpreter, interruptible by Ctrl-C.

use std::time::{Duration, Instant};

use pondertree_core::solvers::connect_four::{self, SolveOptions};
use pyo3::prelude::*;

use crate::call::{guarded, interruptible, usable_cpus};
use crate::errors::OrPython;
use crate::state::{states_of, ConnectFour};

/// (action, value, plies) of every legal action of a state, and the visited nodes.
type Solved = (Vec<(u16, i8, Option<u32>)>, u64);

/// Solves every state; None for those cut off by `max_nodes`, `seconds` or a true `stop()`.
#[pyfunction]
#[pyo3(signature = (states, weak, threads, memory, max_nodes, seconds, stop))]
#[expect(clippy::too_many_arguments, reason = "states, and the options of `connect_four.solve_many`")]
pub fn solve_connect_four(
    py: Python<'_>,
    states: Vec<Bound<'_, PyAny>>,
    weak: bool,
    threads: Option<usize>,
    memory: usize,
    max_nodes: Option<u64>,
    seconds: Option<f64>,
    stop: Option<Py<PyAny>>,
) -> PyResult<Vec<Option<Solved>>> {
    guarded(|| {
        let states = states_of::<ConnectFour>(&states, "only states of pondertree.games.ConnectFour can be solved")?;
        let states: Vec<_> = states.iter().map(|state| state.get().0).collect();
        let threads = threads.unwrap_or_else(usable_cpus);
        let options = SolveOptions { weak, threads, memory, max_nodes: max_nodes.unwrap_or(u64::MAX) };
        // Seconds beyond the clock's range are no limit.
        let deadline = seconds.and_then(|seconds| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?));
        let asked = |py: Python<'_>| {
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            Ok(is_late || stop.as_ref().map_or(Ok(false), |stop| stop.bind(py).call0()?.is_truthy())?)
        };
        let solutions = interruptible(py, asked, |stop| connect_four::solve(&states, &options, &mut || stop()))?;
        let plain = |answer: connect_four::Solution| {
            (answer.moves.into_iter().map(|(action, ending)| (action, ending.value, ending.plies)).collect(), answer.nodes)
        };
        Ok(solutions.or_python()?.into_iter().map(|answer| answer.map(plain)).collect())
    })
}
