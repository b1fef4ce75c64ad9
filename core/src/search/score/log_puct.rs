//! PUCT as LogPuct has it (Schrittwieser et al. 2020, appendix B): the weight of exploration grows with the logarithm of N, and
//! Q, which may carry rewards of any size, is brought to [0, 1] first. A move never tried has the lowest value, 0.

use super::simd_score::{EdgeInputs, EdgeScore};
use crate::tree::{Node, Tree};

/// Spans below this are taken for it, so that equal values do not divide by 0 (mctx has the same number).
const LEAST_SPAN: f64 = 1e-8;
/// The weights of exploration for fewer visits than this are tabulated.
const TABULATED: u32 = 128;

/// How Q is brought to a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// By the values of the node and of its moves (mctx).
    Node,
    /// By all values met in the tree (the paper's pseudocode).
    Tree,
    /// Not at all (seed 1 to the letter).
    Not,
}

/// What a search fixes of the rule.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPuctParameters {
    /// How slowly the constant grows.
    pub pb_c_base: f64,
    /// The constant at the start.
    pub pb_c_init: f64,
    /// How values are brought to a scale.
    pub normalize: Normalize,
    /// The weight of exploration for small N: most nodes are visited seldom, and a logarithm costs as much as scoring two edges.
    weights: Box<[f64]>,
}

impl LogPuctParameters {
    /// The rule with these settings.
    #[must_use]
    pub fn new(pb_c_base: f64, pb_c_init: f64, normalize: Normalize) -> Self {
        let mut rule = Self { pb_c_base, pb_c_init, normalize, weights: Box::default() };
        rule.weights = (0..TABULATED).map(|visits| rule.weight(visits)).collect();
        rule
    }

    /// c * sqrt(N), c growing with the logarithm of N.
    pub(crate) fn weight(&self, visits: u32) -> f64 {
        let visits = f64::from(visits);
        (((visits + self.pb_c_base + 1.0) / self.pb_c_base).ln() + self.pb_c_init) * visits.sqrt()
    }
}

/// The rule at one node.
#[derive(Clone, Copy, Debug)]
pub struct LogPuct {
    exploration: f64,
    low: f64,
    scale: f64,
    /// The node's raw value, where values are brought to the scale of the node.
    raw: Option<f64>,
}

impl LogPuct {
    /// The rule at `node`, which has `visits`, leaves in flight counted.
    #[inline(always)]
    pub fn at(rule: &LogPuctParameters, tree: &Tree, node: &Node, visits: u32) -> Self {
        let exploration = rule.weights.get(visits as usize).copied().unwrap_or_else(|| rule.weight(visits));
        let plain = Self { exploration, low: 0.0, scale: 1.0, raw: None };
        match rule.normalize {
            Normalize::Not => plain,
            Normalize::Tree => {
                let (low, high) = tree.bounds;
                if high > low {
                    Self { low, scale: 1.0 / (high - low), ..plain }
                } else {
                    plain
                }
            }
            Normalize::Node => Self { raw: Some(node.raw), ..plain },
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

    fn score_any(self, edge: EdgeInputs, _virtual_loss: bool) -> f64 {
        let exploit = if edge.visits > 0.0 { (edge.sum / edge.visits - self.low) * self.scale } else { 0.0 };
        exploit + self.exploration * edge.prior / (1.0 + (edge.visits + edge.in_flight))
    }

    #[inline(always)]
    fn raw(self) -> Option<f64> {
        self.raw
    }

    #[inline(always)]
    fn scaled(self, low: f64, high: f64) -> Self {
        let span = high - low;
        Self { low, scale: 1.0 / if span > LEAST_SPAN { span } else { LEAST_SPAN }, ..self }
    }
}
