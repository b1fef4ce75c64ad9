//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use std::sync::LazyLock;

use super::edge_score::{EdgeInputs, EdgeScore};
use super::{scale_of, Choice, ScoringRule, ANY, NORMALIZE, UCB1};
use crate::runtime::lanes::{Lanes, Number, Portable};
use crate::search::fields::Fields;
use crate::search::terms::{terms, ChoiceTerms, RecordedChoice};

/// `2 ln n` for small n: a logarithm costs as much as scoring two edges, and most nodes have few visits.
static TWICE_LOG: LazyLock<[f64; 2048]> = LazyLock::new(|| std::array::from_fn(|visits| 2.0 * (visits as f64).ln()));

/// Computes the table unless it exists.
#[cfg(unix)]
pub(crate) fn initialize() {
    LazyLock::force(&TWICE_LOG);
}

/// UCB1: every move is tried once, in random order, before any is tried twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ucb1 {
    /// Exploration constant; the formula has a factor 2 under the square root as well.
    pub c_param: f64,
    /// Whether Q is mapped to [0, 1] by the bounds of the tree.
    pub normalize: bool,
}

impl Ucb1 {
    /// `choose` among opened edges on values normalised by the tree; apart, so that other searches have no instruction of it.
    #[inline(never)]
    fn choose_normalized(&self, choice: Choice<'_, Portable>, twice_log: f64) -> usize {
        let (low, scale) = scale_of(choice.bounds);
        choice.highest(Normalized { c_param: self.c_param, twice_log, low, scale })
    }
}

impl ScoringRule for Ucb1 {
    const NAME: &'static str = "ucb1";
    const ID: u8 = UCB1;
    const USES_PRIORS: bool = false;

    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
        Ok(Self { c_param: fields.not_negative("c_param")?, normalize: fields.one_of("normalize", NORMALIZE)? })
    }

    #[inline]
    fn id(&self) -> u8 {
        if self.normalize {
            ANY
        } else {
            UCB1
        }
    }

    #[inline(always)]
    fn choose<const ID: u8>(&self, choice: Choice<'_, impl Lanes>) -> usize {
        let (count, opened, visits) = (choice.node.num_edges as usize, choice.node.opened as usize, choice.visits);
        if opened < count {
            return opened + choice.random.choose((count - opened) as u32) as usize;
        }
        let twice_log = TWICE_LOG.get(visits as usize).copied().unwrap_or_else(|| 2.0 * f64::from(visits).ln());
        if ID == ANY && self.normalize {
            return self.choose_normalized(choice.portable(), twice_log);
        }
        choice.highest(Formula { c_param: self.c_param, twice_log })
    }

    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
        let twice_log = 2.0 * f64::from(choice.visits).ln();
        if self.normalize {
            let (low, scale) = scale_of(choice.bounds);
            return choice.scored(how, terms! { low: low, scale: scale }, |edge| {
                let exploration = self.c_param * (twice_log / f64::from(edge.visits)).sqrt();
                let q = edge.proven.map(f64::from).or(edge.mean);
                let normalized_q = q.map_or(0.0, |q| (q - low) * scale);
                (terms! { q: q, normalized_q: normalized_q, exploration: exploration }, normalized_q + exploration)
            });
        }
        choice.scored(how, Vec::new(), |edge| {
            let exploration = self.c_param * (twice_log / f64::from(edge.visits)).sqrt();
            let terms = terms! { virtual_loss: edge.virtual_loss, q: edge.q, exploration: exploration };
            (terms, edge.q.unwrap_or(0.0) + exploration)
        })
    }

    fn uses_bounds(&self) -> bool {
        self.normalize
    }
}

/// The formula at a node without untried moves.
#[derive(Clone, Copy, Debug)]
struct Formula {
    c_param: f64,
    twice_log: f64,
}

impl EdgeScore for Formula {
    #[inline(always)]
    fn score<N: Number>(self, visits: N, mean: N, _prior: N) -> N {
        mean + mean.splat(self.c_param) * (mean.splat(self.twice_log) / visits).sqrt()
    }
}

/// The formula on values normalised by the tree. Leaves in flight count in n alone; an edge whose first visit is in flight has the
/// lowest value.
#[derive(Clone, Copy, Debug)]
struct Normalized {
    c_param: f64,
    twice_log: f64,
    low: f64,
    scale: f64,
}

impl EdgeScore for Normalized {
    #[inline(always)]
    fn score<N: Number>(self, visits: N, mean: N, _prior: N) -> N {
        let exploit = (mean - mean.splat(self.low)) * mean.splat(self.scale);
        exploit + mean.splat(self.c_param) * (mean.splat(self.twice_log) / visits).sqrt()
    }

    fn score_general(self, edge: EdgeInputs, _virtual_loss: bool) -> f64 {
        let exploit = edge.mean().map_or(0.0, |mean| (mean - self.low) * self.scale);
        exploit + self.c_param * (self.twice_log / (edge.visits + edge.in_flight)).sqrt()
    }
}
