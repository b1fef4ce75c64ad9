//! Python exceptions of the engine's errors; their classes are in `pondertree/errors.py`.

use pondertree_core::Error;
use pyo3::prelude::*;

/// Converts an error of the engine to its Python exception.
pub fn to_python(error: Error) -> PyErr {
    let name = match error {
        Error::InvalidAction(_) => "InvalidActionError",
        Error::InvalidPosition(_) => "InvalidPositionError",
        Error::GameOver(_) => "GameOverError",
        Error::InvalidArgument(_) => "InvalidArgumentError",
        Error::GameContract(_) => "GameContractError",
        Error::Evaluation(_) => "EvaluationError",
        Error::Usage(_) => "UsageError",
    };
    exception(name, &error.to_string())
}

/// Returns the exception for a defect of the engine.
pub fn internal(text: &str) -> PyErr {
    exception("InternalError", text)
}

fn exception(name: &str, text: &str) -> PyErr {
    Python::attach(|py| {
        match py.import("pondertree.errors").and_then(|module| module.getattr(name)).and_then(|class| class.call1((text,))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(broken) => broken,
        }
    })
}

/// Conversion of engine errors for `?`.
pub trait OrPython<T> {
    /// Returns the value or the Python exception.
    fn or_python(self) -> PyResult<T>;
}

impl<T> OrPython<T> for Result<T, Error> {
    fn or_python(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}
