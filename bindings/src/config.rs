//! Reads the configuration of a search: an object with an attribute, or a dict with a key, for every field.

use std::sync::Arc;

use pondertree_core::chess::ChessAnalysis;
use pondertree_core::games::analysis::Priority;
use pondertree_core::{
    search_config_fields, CompletedQ, Error, Fpu, LeafKind, LogPuctParameters, Normalize, ParentVisits, PlayoutPolicy, Rule, SearchConfig,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::Borrowed;

use crate::chess::{MoveWeights, PestoWeights};
use crate::errors::OrPython;
use crate::state::playout_policy;

/// Fields by name, of a dict or of an object with attributes.
struct Fields<'a, 'py>(Borrowed<'a, 'py, PyAny>);

impl<'py> Fields<'_, 'py> {
    fn get(&self, name: impl IntoPyObject<'py, Target = PyString>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.is_instance_of::<PyDict>() {
            return self.0.get_item(name);
        }
        self.0.getattr(name)
    }

    fn read<T: ReadField>(&self, name: &str) -> PyResult<T> {
        T::read(&self.get(name)?, name)
    }

    /// Refuses keys of a dict that are not `fields`, all of which it has.
    fn check_keys(&self, fields: &[&str]) -> PyResult<()> {
        let Ok(dict) = self.0.cast::<PyDict>() else { return Ok(()) };
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
            fn read(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
                value.extract()
            }
        })*
    };
}

plain_fields!(bool, u8, u32, i32, u64, usize, f64, String, Option<u32>, Option<usize>, Option<String>, [f64; 10]);

impl ReadField for LeafKind {
    fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        match value.extract::<String>()?.as_str() {
            "playout" => Ok(Self::Playout),
            "zero" => Ok(Self::Zero),
            "static" => Ok(Self::Static),
            "external" => Ok(Self::External),
            other => unknown(name, other, "\"playout\", \"zero\", \"static\" or \"external\""),
        }
    }
}

impl ReadField for PlayoutPolicy {
    fn read(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
        playout_policy(&value.extract::<String>()?)
    }
}

impl ReadField for Rule {
    /// Reads a rule by its `name`, with its parameters as fields.
    fn read(value: &Bound<'_, PyAny>, _name: &str) -> PyResult<Self> {
        let fields = Fields(value.as_borrowed());
        let number = |name: &str| fields.read::<f64>(name);
        let flag = |name: &str| fields.read::<bool>(name);
        Ok(match fields.read::<String>("name")?.as_str() {
            "ucb1" => Self::Ucb1 { c_param: number("c_param")? },
            "puct" => Self::Puct {
                c_puct: number("c_puct")?,
                fpu: if flag("fpu_parent")? { Fpu::Parent(number("fpu")?) } else { Fpu::Constant(number("fpu")?) },
                parent_visits: match fields.read::<String>("parent_visits")?.as_str() {
                    "node" => ParentVisits::Node,
                    "edges" => ParentVisits::Edges,
                    other => return unknown("parent_visits", other, "\"node\" or \"edges\""),
                },
                forced_playouts: number("forced_playouts")?,
            },
            "log_puct" => {
                let normalize = match fields.read::<Option<String>>("normalize")?.as_deref() {
                    Some("node") => Normalize::Node,
                    Some("tree") => Normalize::Tree,
                    None => Normalize::Not,
                    Some(other) => return unknown("normalize", other, "\"node\", \"tree\" or None"),
                };
                Self::LogPuct(Arc::new(LogPuctParameters::new(number("pb_c_base")?, number("pb_c_init")?, normalize)))
            }
            "gumbel" => Self::Gumbel {
                completed_q: CompletedQ {
                    value_scale: number("value_scale")?,
                    maxvisit_init: number("maxvisit_init")?,
                    rescale_values: flag("rescale_values")?,
                    use_mixed_value: flag("use_mixed_value")?,
                    num_actions: fields.read("num_actions")?,
                },
                max_num_considered_actions: fields.read("max_num_considered_actions")?,
                gumbel_scale: number("gumbel_scale")?,
            },
            other => return unknown("rule", other, "\"ucb1\", \"puct\", \"log_puct\" or \"gumbel\""),
        })
    }
}

fn unknown<T>(name: &str, given: &str, right: &str) -> PyResult<T> {
    Err(Error::InvalidArgument(format!("{name} {given:?} is unknown: {right}"))).or_python()
}

fn read_chess(value: &Bound<'_, PyAny>) -> PyResult<ChessAnalysis> {
    let fields = Fields(value.as_borrowed());
    let priority = match fields.read::<Option<String>>("priority")?.as_deref() {
        Some("strict") => Some(Priority::Strict),
        Some("tactical") => Some(Priority::Tactical),
        Some("prior") => Some(Priority::Prior),
        None => None,
        Some(other) => return unknown("priority", other, "\"strict\", \"tactical\", \"prior\" or None"),
    };
    let move_scores = fields.get("move_scores")?;
    Ok(ChessAnalysis {
        pesto: Arc::clone(&fields.get("pesto")?.cast::<PestoWeights>()?.get().0),
        quiescence: fields.read("quiescence")?,
        endings: fields.read("endings")?,
        mate_depth: fields.read("mate_depth")?,
        root_depth: fields.read("root_depth")?,
        mate_budget: fields.read("mate_budget")?,
        root_budget: fields.read("root_budget")?,
        see_threshold: fields.read("see_threshold")?,
        priority,
        weights: fields.read("weights")?,
        move_scores: if move_scores.is_none() { None } else { Some(Arc::clone(&move_scores.cast::<MoveWeights>()?.get().0)) },
        killer_visits: fields.read("killer_visits")?,
    })
}

macro_rules! read_fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        fn read_config(py: Python<'_>, fields: &Fields<'_, '_>) -> PyResult<SearchConfig> {
            Ok(SearchConfig { $($name: <$type>::read(&fields.get(intern!(py, stringify!($name)))?, stringify!($name))?,)* })
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
        let fields = Fields(object);
        let analysis = fields.get(intern!(object.py(), ANALYSIS))?;
        let chess = if analysis.is_none() { None } else { Some(Arc::new(read_chess(&analysis)?)) };
        let config = read_config(object.py(), &fields)?;
        fields.check_keys(&[SearchConfig::FIELDS, &[ANALYSIS]].concat())?;
        Ok(Self { config, chess })
    }
}
