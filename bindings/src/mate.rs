//! Mate search and tables of endings as Python calls it: without the interpreter lock, and open to Ctrl-C.

use std::cell::RefCell;

use pondertree_core::chess::endings::{self, Ending};
use pondertree_core::chess::mate::{self, Verdict};
use pyo3::prelude::*;

use crate::call::guarded;
use crate::errors::OrPython;
use crate::states::Chess;

/// (moves, the line's actions, positions looked at): the moves to the mate for the side to move are positive, those to the mate
/// against it negative, and 0 says that nothing is proven. `stop()` is asked now and then whether to leave it.
#[pyfunction]
#[pyo3(signature = (state, depth, budget, stop = None))]
pub fn mate_search(
    py: Python<'_>,
    state: &Chess,
    depth: u32,
    budget: Option<u64>,
    stop: Option<Py<PyAny>>,
) -> PyResult<(i64, Vec<u16>, u64)> {
    guarded(|| {
        let asked = |py: Python<'_>| {
            py.check_signals()?;
            stop.as_ref().map_or(Ok(false), |stop| stop.call0(py)?.is_truthy(py))
        };
        let (answer, raised) = py.detach(|| {
            let raised = RefCell::new(None);
            let stop = || {
                Python::attach(asked).unwrap_or_else(|error| {
                    *raised.borrow_mut() = Some(error);
                    true
                })
            };
            let answer = mate::mate_search(&state.0, depth, budget, &stop);
            (answer, raised.into_inner())
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let answer = answer.or_python()?;
        let moves = match answer.verdict {
            Verdict::MateIn(n) => i64::from(n),
            Verdict::MatedIn(n) => -i64::from(n),
            Verdict::Unknown => 0,
        };
        Ok((moves, answer.line, answer.nodes))
    })
}

/// A mate by checks alone, at most `depth` moves long: (moves, first action), or None, which says nothing.
#[pyfunction]
#[pyo3(signature = (state, depth, budget))]
pub fn checks_first(py: Python<'_>, state: &Chess, depth: u32, budget: u64) -> PyResult<Option<(u32, u16)>> {
    guarded(|| Ok(py.detach(|| mate::checks_first(&state.0, depth, budget))))
}

/// What the table of an elementary ending says of a position that is not over: (1, 0 or -1 for the side to move, plies to the mate);
/// None where there is none, or where a draw by rule may come between.
#[pyfunction]
pub fn ending(py: Python<'_>, state: &Chess) -> PyResult<Option<(i8, u16)>> {
    guarded(|| {
        let known = py.detach(|| endings::ending(&state.0));
        Ok(known.map(|known| match known {
            Ending::Wins(plies) => (1, plies),
            Ending::Loses(plies) => (-1, plies),
            Ending::Drawn => (0, 0),
        }))
    })
}

/// The actions up to the mate by the table, with the best play of both sides; empty where it knows of none.
#[pyfunction]
pub fn ending_line(py: Python<'_>, state: &Chess) -> PyResult<Vec<u16>> {
    guarded(|| Ok(py.detach(|| endings::line(&state.0))))
}
