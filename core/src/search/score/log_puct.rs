//! MuZero's PUCT (Schrittwieser et al. 2020, appendix B): the exploration constant grows with the logarithm of N, and Q, which
//! may include rewards of any size, is normalised to [0, 1]. An untried move has the lowest value, 0.

use super::edge_score::{with_scale, EdgeInputs, EdgeScore};
use super::{Choice, ScoringRule, LOG_PUCT};
use crate::runtime::lanes::{Lanes, Number};
use crate::search::backup::Bounds;
use crate::search::fields::Fields;
use crate::search::terms::{terms, ChoiceTerms, RecordedChoice};

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

/// PUCT with a constant that grows with log N, on normalised values (MuZero).
#[derive(Clone, Debug, PartialEq)]
pub struct LogPuct {
    /// Scale of the logarithm.
    pub pb_c_base: f64,
    /// Initial constant.
    pub pb_c_init: f64,
    /// How values are normalised.
    pub normalize: Normalize,
    /// Exploration weight by N: a logarithm costs as much as scoring two edges, and most nodes have few visits.
    weights: Box<[f64]>,
}

impl LogPuct {
    /// Returns c * sqrt(N), where c grows with the logarithm of N.
    fn weight(&self, visits: u32) -> f64 {
        let visits = f64::from(visits);
        (((visits + self.pb_c_base + 1.0) / self.pb_c_base).ln() + self.pb_c_init) * visits.sqrt()
    }

    /// Returns the formula at a node; `with_scale` completes it.
    #[inline(always)]
    fn formula(&self, exploration: f64, (low, high): Bounds, raw: f64) -> Formula {
        let plain = Formula { exploration, low: 0.0, scale: 1.0, raw: None };
        match self.normalize {
            Normalize::Tree if high > low => Formula { low, scale: 1.0 / (high - low), ..plain },
            Normalize::Tree | Normalize::Not => plain,
            Normalize::Node => Formula { raw: Some(raw), ..plain },
        }
    }
}

impl ScoringRule for LogPuct {
    const NAME: &'static str = "log_puct";
    const ID: u8 = LOG_PUCT;

    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
        let kinds = [(Some("node"), Normalize::Node), (Some("tree"), Normalize::Tree), (None, Normalize::Not)];
        let mut rule = Self {
            pb_c_base: fields.positive("pb_c_base")?,
            pb_c_init: fields.not_negative("pb_c_init")?,
            normalize: fields.one_of("normalize", kinds)?,
            weights: Box::default(),
        };
        rule.weights = (0..TABULATED).map(|visits| rule.weight(visits)).collect();
        Ok(rule)
    }

    #[inline(always)]
    fn choose<const ID: u8>(&self, choice: Choice<'_, impl Lanes>) -> usize {
        let exploration = self.weights.get(choice.visits as usize).copied().unwrap_or_else(|| self.weight(choice.visits));
        let formula = self.formula(exploration, choice.bounds, choice.node.raw_value);
        choice.highest(formula)
    }

    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
        let weight = self.weight(choice.visits);
        let plain = self.formula(weight, choice.bounds, choice.node.raw_value);
        let Formula { low, scale, .. } = with_scale(plain, choice.edges().statistics(), choice.node.opened as usize);
        choice.scored(how, terms! { exploration_weight: weight, low: low, scale: scale }, |edge| {
            let normalized_q = edge.mean.map_or(0.0, |mean| (mean - low) * scale);
            let exploration = weight * edge.prior / (1.0 + f64::from(edge.visits));
            (terms! { q: edge.mean, normalized_q: normalized_q, exploration: exploration }, normalized_q + exploration)
        })
    }

    fn exploration(&self, visits: u32) -> Option<f64> {
        Some(self.weight(visits))
    }

    fn uses_bounds(&self) -> bool {
        self.normalize == Normalize::Tree
    }
}

/// The formula at one node.
#[derive(Clone, Copy, Debug)]
struct Formula {
    exploration: f64,
    low: f64,
    scale: f64,
    /// The node's raw value, if values are normalised per node.
    raw: Option<f64>,
}

impl EdgeScore for Formula {
    #[inline(always)]
    fn score<N: Number>(self, visits: N, mean: N, prior: N) -> N {
        // Without visits the mean is NaN.
        let exploit = ((mean - mean.splat(self.low)) * mean.splat(self.scale)).or(0.0);
        exploit + mean.splat(self.exploration) * prior / (mean.splat(1.0) + visits)
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
