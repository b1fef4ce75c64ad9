//! The config of a search as Python names them: a dict with a value for every part.

use std::sync::Arc;

use pondertree_core::error::Error;
use pondertree_core::games::analysis::{Knowledge, Priority};
use pondertree_core::games::{chess, connect_four, othello, tic_tac_toe, Game};
use pondertree_core::search::config::SearchConfig;
use pondertree_core::search::evaluate::LeafEvaluator;
use pondertree_core::search::score::{CompletedQ, Fpu, LogPuctParameters, Normalize, ParentVisits, Rule};
use pyo3::prelude::*;

use crate::chess::{MoveWeights, PestoWeights};
use crate::errors::OrPython;
use crate::state::playout_policy;

/// The rule that chooses among moves, a dict that tells its `rule` by name.
struct RuleArgument(Rule);

impl<'a, 'py> FromPyObject<'a, 'py> for RuleArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let number = |name: &str| object.get_item(name)?.extract::<f64>();
        let flag = |name: &str| object.get_item(name)?.extract::<bool>();
        let text = |name: &str| object.get_item(name)?.extract::<String>();
        let rule = text("rule")?;
        Ok(Self(match rule.as_str() {
            "ucb1" => Rule::Ucb1 { c_param: number("c_param")? },
            "puct" => Rule::Puct {
                c_puct: number("c_puct")?,
                fpu: if flag("fpu_parent")? { Fpu::Parent(number("fpu")?) } else { Fpu::Constant(number("fpu")?) },
                parent_visits: match text("parent_visits")?.as_str() {
                    "node" => ParentVisits::Node,
                    "edges" => ParentVisits::Edges,
                    other => return unknown("parent_visits", other, "\"node\" or \"edges\""),
                },
                forced_playouts: number("forced_playouts")?,
            },
            "muzero" => {
                let normalize = match object.get_item("normalize")?.extract::<Option<String>>()?.as_deref() {
                    Some("node") => Normalize::Node,
                    Some("tree") => Normalize::Tree,
                    None => Normalize::Not,
                    Some(other) => return unknown("normalize", other, "\"node\", \"tree\" or None"),
                };
                Rule::LogPuct(Arc::new(LogPuctParameters::new(number("pb_c_base")?, number("pb_c_init")?, normalize)))
            }
            "gumbel" => Rule::Gumbel {
                completed_q: CompletedQ {
                    value_scale: number("value_scale")?,
                    maxvisit_init: number("maxvisit_init")?,
                    rescale_values: flag("rescale_values")?,
                    use_mixed_value: flag("use_mixed_value")?,
                    num_actions: object.get_item("num_actions")?.extract()?,
                },
                max_num_considered_actions: object.get_item("max_num_considered_actions")?.extract()?,
                gumbel_scale: number("gumbel_scale")?,
            },
            other => return unknown("rule", other, "\"ucb1\", \"puct\", \"muzero\" or \"gumbel\""),
        }))
    }
}

fn unknown<T>(name: &str, given: &str, right: &str) -> PyResult<T> {
    Err(Error::InvalidArgument(format!("{name} {given:?} is unknown: {right}"))).or_python()
}

/// What is known of chess, a dict with a value for every setting.
struct Known(Arc<Knowledge>);

impl<'a, 'py> FromPyObject<'a, 'py> for Known {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let number = |name: &str| object.get_item(name)?.extract::<u32>();
        let priority = match object.get_item("priority")?.extract::<Option<String>>()?.as_deref() {
            Some("strict") => Some(Priority::Strict),
            Some("tactical") => Some(Priority::Tactical),
            Some("prior") => Some(Priority::Prior),
            None => None,
            Some(other) => return unknown("priority", other, "\"strict\", \"tactical\", \"prior\" or None"),
        };
        Ok(Self(Arc::new(Knowledge {
            pesto: Arc::clone(&object.get_item("pesto")?.cast::<PestoWeights>()?.get().0),
            quiescence: object.get_item("quiescence")?.extract()?,
            endings: object.get_item("endings")?.extract()?,
            mate_depth: number("mate_depth")?,
            root_depth: number("root_depth")?,
            mate_budget: object.get_item("mate_budget")?.extract()?,
            root_budget: object.get_item("root_budget")?.extract()?,
            see_threshold: object.get_item("see_threshold")?.extract()?,
            priority,
            weights: object.get_item("weights")?.extract()?,
            move_scores: match object.get_item("move_scores")? {
                none if none.is_none() => None,
                given => Some(Arc::clone(&given.cast::<MoveWeights>()?.get().0)),
            },
            killer_visits: number("killer_visits")?,
        })))
    }
}

/// Every part by its name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ConfigArguments {
    score: RuleArgument,
    leaf: String,
    playout_policy: String,
    max_depth: Option<u32>,
    knowledge: Option<Known>,
    solve: bool,
    in_flight: u32,
    forced_depth: u8,
    early_stop: bool,
    trace: bool,
    num_players: usize,
    zero_sum: bool,
    has_rewards: bool,
    discount: f64,
    num_actions: usize,
    max_nodes: Option<usize>,
    max_bytes: Option<usize>,
    pub threads: usize,
}

impl ConfigArguments {
    /// The config for a game: the name of a compiled one, "external" or "latent".
    pub fn config(&self, game: &str) -> PyResult<SearchConfig> {
        let policy = playout_policy(&self.playout_policy)?;
        let leaf = match self.leaf.as_str() {
            "playout" => LeafEvaluator::Playout { policy, max_depth: self.max_depth },
            "zero" => LeafEvaluator::Zero,
            "classical" if game == "chess" && self.knowledge.is_some() => LeafEvaluator::Static,
            "outside" => LeafEvaluator::External { policy, max_depth: self.max_depth.unwrap_or(0) },
            other => return unknown("leaf", other, "\"playout\", \"zero\", \"outside\", or \"classical\" on chess"),
        };
        Ok(SearchConfig {
            rule: self.score.0.clone(),
            leaf,
            knowledge: self.knowledge.as_ref().map(|known| Arc::clone(&known.0)),
            solve: self.solve,
            in_flight: self.in_flight,
            forced_depth: self.forced_depth,
            early_stop: self.early_stop,
            trace: self.trace,
            players: self.num_players,
            zero_sum: self.zero_sum,
            has_rewards: self.has_rewards,
            discount: self.discount,
            num_actions: self.num_actions,
            max_legal: match game {
                "tic_tac_toe" => tic_tac_toe::TicTacToe::MAX_LEGAL,
                "connect_four" => connect_four::ConnectFour::MAX_LEGAL,
                "othello" => othello::Othello::MAX_LEGAL,
                "chess" => chess::Chess::MAX_LEGAL,
                _ => self.num_actions,
            },
            external: matches!(game, "external" | "latent"),
            latent: game == "latent",
            max_nodes: self.max_nodes.unwrap_or(usize::MAX),
            max_bytes: self.max_bytes.unwrap_or(usize::MAX),
        })
    }
}
