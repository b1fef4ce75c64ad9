//! MuZero's PUCT (Schrittwieser et al. 2020, appendix B): the exploration constant grows with the logarithm of N, and Q, which
//! may include rewards of any size, is normalised to [0, 1]. An untried move has the lowest value, 0.

use super::select_edge::{EdgeInputs, EdgeScore};
use crate::search::backup::Bounds;
use crate::tree::Node;

/// Lower bound of a span of values, against division by 0 (as in mctx).
const MIN_SPAN: f64 = 1e-8;
/// Exploration weights below this number of visits are tabulated.
const TABULATED: u32 = 128;

/// How Q is normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// By the values of the node and its moves (mctx).
    Node,
    /// By the lowest and highest mean value of the tree (the paper's pseudocode).
    Tree,
    /// Not at all, as in the text of the MuZero specification.
    Not,
}

/// The parameters of the rule.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPuctParameters {
    /// Scale of the logarithm.
    pub pb_c_base: f64,
    /// Initial constant.
    pub pb_c_init: f64,
    /// How values are normalised.
    pub normalize: Normalize,
    /// Exploration weight by N: a logarithm costs as much as scoring two edges, and most nodes have few visits.
    weights: Box<[f64]>,
}

impl LogPuctParameters {
    /// Tabulates the rule.
    #[must_use]
    pub fn new(pb_c_base: f64, pb_c_init: f64, normalize: Normalize) -> Self {
        let mut rule = Self { pb_c_base, pb_c_init, normalize, weights: Box::default() };
        rule.weights = (0..TABULATED).map(|visits| rule.weight(visits)).collect();
        rule
    }

    /// Returns c * sqrt(N), where c grows with the logarithm of N.
    pub(crate) fn weight(&self, visits: u32) -> f64 {
        let visits = f64::from(visits);
        (((visits + self.pb_c_base + 1.0) / self.pb_c_base).ln() + self.pb_c_init) * visits.sqrt()
    }
}

/// The rule at one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogPuct {
    exploration: f64,
    low: f64,
    scale: f64,
    /// The node's raw value, if values are normalised per node.
    raw: Option<f64>,
}

impl LogPuct {
    /// Returns the rule at `node` with `visits`, leaves in flight included.
    #[inline(always)]
    pub(super) fn at(rule: &LogPuctParameters, node: &Node, visits: u32, bounds: Bounds) -> Self {
        let exploration = rule.weights.get(visits as usize).copied().unwrap_or_else(|| rule.weight(visits));
        let plain = Self { exploration, low: 0.0, scale: 1.0, raw: None };
        match rule.normalize {
            Normalize::Not => plain,
            Normalize::Tree => {
                let (low, high) = bounds;
                if high > low {
                    Self { low, scale: 1.0 / (high - low), ..plain }
                } else {
                    plain
                }
            }
            Normalize::Node => Self { raw: Some(node.raw_value), ..plain },
        }
    }
}

impl EdgeScore for LogPuct {
    #[inline(always)]
    fn score(self, visits: f64, mean: f64, prior: f64) -> f64 {
        let value = (mean - self.low) * self.scale;
        let exploit = if visits > 0.0 { value } else { 0.0 };
        exploit + self.exploration * prior / (1.0 + visits)
    }

    fn score_general(self, edge: EdgeInputs, _virtual_loss: bool) -> f64 {
        let exploit = if edge.visits > 0.0 { (edge.sum / edge.visits - self.low) * self.scale } else { 0.0 };
        exploit + self.exploration * edge.prior / (1.0 + (edge.visits + edge.in_flight))
    }

    #[inline(always)]
    fn normalization_value(self) -> Option<f64> {
        self.raw
    }

    #[inline(always)]
    fn scaled(self, low: f64, high: f64) -> Self {
        let span = high - low;
        Self { low, scale: 1.0 / if span > MIN_SPAN { span } else { MIN_SPAN }, ..self }
    }
}
