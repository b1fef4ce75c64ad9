//! Python bindings of records: rows of a trace as dicts, in the form of `pondertree/trace.py`.

use pondertree_core::{ChoiceTerms, Term, TraceRow};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::IntoPyObjectExt;

use crate::errors::OrPython;
use crate::forest::any::each;
use crate::forest::Forest;

fn value(py: Python<'_>, term: Term) -> PyResult<Py<PyAny>> {
    match term {
        Term::Whole(number) => number.into_py_any(py),
        Term::Number(number) => number.into_py_any(py),
        Term::Flag(flag) => flag.into_py_any(py),
        Term::Name(name) => name.into_py_any(py),
        Term::Missing => Ok(py.None()),
    }
}

fn dict<'py>(py: Python<'py>, mut terms: impl Iterator<Item = (&'static str, Term)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    terms.try_for_each(|(name, term)| dict.set_item(PyString::intern(py, name), value(py, term)?))?;
    Ok(dict)
}

fn choice<'py>(py: Python<'py>, terms: &ChoiceTerms) -> PyResult<Bound<'py, PyDict>> {
    let choice = dict(py, terms.shared.iter().copied())?;
    let edge = |edge: &Vec<Term>| dict(py, terms.names.iter().copied().zip(edge.iter().copied()));
    choice.set_item("edges", terms.edges.iter().map(edge).collect::<PyResult<Vec<_>>>()?)?;
    Ok(choice)
}

fn row<'py>(py: Python<'py>, row: &TraceRow) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("simulation", row.simulation)?;
    dict.set_item("path", row.steps.iter().map(|step| step.action).collect::<Vec<_>>())?;
    dict.set_item("scores", row.steps.iter().map(|step| step.scores.clone()).collect::<Vec<_>>())?;
    dict.set_item("terms", row.steps.iter().map(|step| choice(py, &step.terms)).collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("values", &row.values)?;
    Ok(dict)
}

#[pymethods]
impl Forest {
    /// Returns the recorded simulations of tree `index`, in the order in which they were backed up.
    fn trace<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.call(|any| each!(any, forest => forest.tree(index).or_python()?.trace().iter().map(|recorded| row(py, recorded)).collect()))
    }

    /// Lets tree `index` alone run one simulation, which is recorded, of a search of `planned` ones.
    fn begin_step(&self, index: usize, planned: u64) -> PyResult<()> {
        self.call(|any| each!(any, forest => forest.begin_step(index, planned)).or_python())
    }

    /// Ends a step and returns its record; None if it ran no simulation. `keep` keeps it in the trace.
    fn end_step<'py>(&self, py: Python<'py>, index: usize, keep: bool) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.call(|any| each!(any, forest => forest.end_step(index, keep)).or_python()?.map(|recorded| row(py, &recorded)).transpose())
    }
}
