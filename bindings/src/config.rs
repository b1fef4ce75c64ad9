//! Reads the configuration of a search: an object with an attribute, or a dict with a key, for every field.

use std::cell::RefCell;
use std::sync::Arc;

use pondertree_core::chess::ChessAnalysis;
use pondertree_core::games::analysis::Priority;
use pondertree_core::{named, search_config_fields, Backup, ChanceMode, Error, Fields, LeafKind, PlayoutPolicy, Rule, SearchConfig};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::Borrowed;

use crate::chess::{MoveWeights, PestoWeights};
use crate::errors::{to_python, OrPython};

/// Fields by name, of a dict or of an object with attributes.
struct PyFields<'a, 'py> {
    object: Borrowed<'a, 'py, PyAny>,
    /// The names given to `read` so far.
    names: RefCell<Vec<&'static str>>,
}

impl<'a, 'py> PyFields<'a, 'py> {
    fn of(object: Borrowed<'a, 'py, PyAny>) -> Self {
        Self { object, names: RefCell::new(Vec::with_capacity(24)) }
    }

    fn get(&self, name: impl IntoPyObject<'py, Target = PyString>) -> PyResult<Bound<'py, PyAny>> {
        if self.object.is_instance_of::<PyDict>() {
            return self.object.get_item(name);
        }
        self.object.getattr(name)
    }

    fn read<T: ReadField>(&self, name: &'static str) -> PyResult<T> {
        self.names.borrow_mut().push(name);
        T::read(&self.get(name)?, name)
    }

    /// Refuses keys of a dict that are not `fields`, all of which it has.
    fn check_keys(&self, fields: &[&str]) -> PyResult<()> {
        let Ok(dict) = self.object.cast::<PyDict>() else { return Ok(()) };
        if dict.len() == fields.len() {
            return Ok(());
        }
        for key in dict.keys() {
            let key: String = key.extract()?;
            if !fields.contains(&key.as_str()) {
                return Err(Error::InvalidArgument(format!("the field {key:?} is unknown: one of {}", fields.join(", ")))).or_python();
            }
        }
        Ok(())
    }
}

/// The value of one field.
trait ReadField: Sized {
    fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self>;
}

macro_rules! plain_fields {
    ($($type:ty),*) => {
        $(impl ReadField for $type {
            fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
                value.extract().map_err(|error: PyErr| {
                    to_python(Error::InvalidArgument(format!("{name} cannot be {value}: {}", error.value(value.py()))))
                })
            }
        })*
    };
}

plain_fields!(bool, u8, u32, i32, u64, usize, f64, String, Option<u32>, Option<usize>, Option<String>, [f64; 10]);

macro_rules! named_fields {
    ($($type:ty),*) => {
        $(impl ReadField for $type {
            fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
                named(name, value.extract()?, Self::NAMES).or_python()
            }
        })*
    };
}

named_fields!(Backup, ChanceMode, LeafKind, PlayoutPolicy);

impl ReadField for Rule {
    fn read(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
        let fields = PyFields::of(value.as_borrowed());
        let rule = Self::read(&fields)?;
        fields.check_keys(&fields.names.borrow())?;
        Ok(rule)
    }
}

impl Fields for PyFields<'_, '_> {
    type Error = PyErr;

    fn refuse(error: Error) -> PyErr {
        to_python(error)
    }

    fn number(&self, name: &'static str) -> PyResult<f64> {
        self.read(name)
    }

    fn whole(&self, name: &'static str) -> PyResult<u32> {
        self.read(name)
    }

    fn flag(&self, name: &'static str) -> PyResult<bool> {
        self.read(name)
    }

    fn text(&self, name: &'static str) -> PyResult<Option<String>> {
        self.read(name)
    }
}

fn read_chess(value: &Bound<'_, PyAny>) -> PyResult<ChessAnalysis> {
    let fields = PyFields::of(value.as_borrowed());
    let priorities = [
        (Some("strict"), Some(Priority::Strict)),
        (Some("tactical"), Some(Priority::Tactical)),
        (Some("prior"), Some(Priority::Prior)),
        (None, None),
    ];
    let move_scores = fields.get("move_scores")?;
    let analysis = ChessAnalysis {
        pesto: Arc::clone(&fields.get("pesto")?.cast::<PestoWeights>()?.get().0),
        quiescence: fields.read("quiescence")?,
        endings: fields.read("endings")?,
        mate_depth: fields.read("mate_depth")?,
        root_depth: fields.read("root_depth")?,
        mate_budget: fields.read("mate_budget")?,
        root_budget: fields.read("root_budget")?,
        see_threshold: fields.read("see_threshold")?,
        priority: fields.one_of("priority", priorities)?,
        weights: fields.read("weights")?,
        move_scores: if move_scores.is_none() { None } else { Some(Arc::clone(&move_scores.cast::<MoveWeights>()?.get().0)) },
        killer_visits: fields.read("killer_visits")?,
    };
    fields.check_keys(&[&["pesto", "move_scores"], fields.names.borrow().as_slice()].concat())?;
    Ok(analysis)
}

macro_rules! read_fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty $(= $range:expr)?,)*) => {
        fn read_config(py: Python<'_>, fields: &PyFields<'_, '_>) -> PyResult<SearchConfig> {
            Ok(SearchConfig { $($name: ReadField::read(&fields.get(intern!(py, stringify!($name)))?, stringify!($name))?,)* })
        }
    };
}

search_config_fields!(read_fields);

/// The field of the game's analysis, beside those of `SearchConfig`.
pub const ANALYSIS: &str = "analysis";

/// A configuration, and the analysis of chess if it has one.
pub struct ConfigArguments {
    pub config: SearchConfig,
    pub chess: Option<Arc<ChessAnalysis>>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for ConfigArguments {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let fields = PyFields::of(object);
        let analysis = fields.get(intern!(object.py(), ANALYSIS))?;
        let chess = if analysis.is_none() { None } else { Some(Arc::new(read_chess(&analysis)?)) };
        let config = read_config(object.py(), &fields)?;
        fields.check_keys(&[SearchConfig::FIELDS, &[ANALYSIS]].concat())?;
        Ok(Self { config, chess })
    }
}
