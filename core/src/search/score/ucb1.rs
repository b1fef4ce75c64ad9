//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use std::sync::LazyLock;

use super::edge_score::EdgeScore;
use super::{Choice, ScoringRule};
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
}

impl ScoringRule for Ucb1 {
    const NAME: &'static str = "ucb1";
    const USES_PRIORS: bool = false;

    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
        Ok(Self { c_param: fields.not_negative("c_param")? })
    }

    #[inline(always)]
    fn choose(&self, choice: Choice<'_>) -> usize {
        let (count, opened, visits) = (choice.node.num_edges as usize, choice.node.opened as usize, choice.visits);
        if opened < count {
            return opened + choice.random.choose((count - opened) as u32) as usize;
        }
        let twice_log = TWICE_LOG.get(visits as usize).copied().unwrap_or_else(|| 2.0 * f64::from(visits).ln());
        choice.highest(Formula { c_param: self.c_param, twice_log })
    }

    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
        let twice_log = 2.0 * f64::from(choice.visits).ln();
        choice.scored(how, Vec::new(), |edge| {
            let exploration = self.c_param * (twice_log / f64::from(edge.visits)).sqrt();
            let terms = terms! { virtual_loss: edge.virtual_loss, q: edge.q, exploration: exploration };
            (terms, edge.q.unwrap_or(0.0) + exploration)
        })
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
    fn score(self, visits: f64, mean: f64, _prior: f64) -> f64 {
        mean + self.c_param * (self.twice_log / visits).sqrt()
    }
}
