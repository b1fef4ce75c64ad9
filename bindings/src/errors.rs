//! The one table from the engine's errors to Python's. The classes live in `pondertree/errors.py`.

use pondertree_core::Error;
use pyo3::prelude::*;

/// Turns an error of the engine into its Python exception.
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

/// The exception for a defect of the engine.
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

/// Lets `?` carry errors of the engine out of the bindings.
pub trait OrPython<T> {
    /// The value, or the Python exception.
    fn or_python(self) -> PyResult<T>;
}

impl<T> OrPython<T> for Result<T, Error> {
    fn or_python(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}
