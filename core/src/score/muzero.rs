//! PUCT as MuZero has it (Schrittwieser et al. 2020, appendix B): the weight of exploration grows with the logarithm of N, and
//! Q, which may carry rewards of any size, is brought to [0, 1] first. A move never tried has the lowest value, 0.

use super::lanes::{Candidate, Rule};
use super::node_value;
use crate::tree::{Node, Tree};

/// Spans below this are taken for it, so that equal values do not divide by 0 (mctx has the same number).
const LEAST_SPAN: f64 = 1e-8;

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

/// The rule at one node.
#[derive(Clone, Copy, Debug)]
pub struct MuZero {
    exploration: f64,
    low: f64,
    scale: f64,
}

impl MuZero {
    /// The rule at `node`, which has `visits`, leaves in flight counted.
    #[inline]
    pub fn at(base: f64, init: f64, normalize: Normalize, tree: &Tree, node: &Node, visits: u32) -> Self {
        let visits = f64::from(visits);
        let exploration = (((visits + base + 1.0) / base).ln() + init) * visits.sqrt();
        let (low, scale) = match normalize {
            Normalize::Not => (0.0, 1.0),
            Normalize::Tree => {
                let (low, high) = tree.bounds;
                if high > low {
                    (low, 1.0 / (high - low))
                } else {
                    (0.0, 1.0)
                }
            }
            Normalize::Node => {
                let edges = tree.statistics(node);
                let own = node_value(tree, node);
                let (mut low, mut high) = (own, own);
                for (&sum, &visits) in edges.sums.iter().zip(edges.visits).take(node.opened as usize) {
                    // An edge in flight for the first time has no value yet.
                    let mean = if visits > 0 { sum / f64::from(visits as i32) } else { own };
                    low = if mean < low { mean } else { low };
                    high = if mean > high { mean } else { high };
                }
                let span = high - low;
                (low, 1.0 / if span > LEAST_SPAN { span } else { LEAST_SPAN })
            }
        };
        Self { exploration, low, scale }
    }
}

impl Rule for MuZero {
    #[inline(always)]
    fn score(self, visits: f64, sum: f64, prior: f64) -> f64 {
        let value = (sum / visits - self.low) * self.scale;
        let exploit = if visits > 0.0 { value } else { 0.0 };
        exploit + self.exploration * prior / (1.0 + visits)
    }

    fn score_any(self, edge: Candidate, _virtual_loss: bool) -> f64 {
        let exploit = if edge.visits > 0.0 { (edge.sum / edge.visits - self.low) * self.scale } else { 0.0 };
        exploit + self.exploration * edge.prior / (1.0 + (edge.visits + edge.flying))
    }
}
