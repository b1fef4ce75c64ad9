//! UCB1 (Auer, Cesa-Bianchi, Fischer 2002, section 2; Kocsis & Szepesvari 2006): `Q + c * sqrt(2 ln N / n)`.

use std::sync::LazyLock;

use super::select_edge::{EdgeInputs, EdgeScore};

/// `2 ln n` for small n: a logarithm costs as much as scoring two edges, and most nodes have few visits.
static TWICE_LOG: LazyLock<[f64; 2048]> = LazyLock::new(|| std::array::from_fn(|visits| 2.0 * (visits as f64).ln()));

/// Computes the table unless it exists.
#[cfg(unix)]
pub(crate) fn initialize() {
    LazyLock::force(&TWICE_LOG);
}

/// The rule at a node without untried moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ucb1 {
    c_param: f64,
    twice_log: f64,
}

impl Ucb1 {
    /// Returns the rule at a node with `visits`.
    #[inline]
    pub(crate) fn at(c_param: f64, visits: u32) -> Self {
        let twice_log = TWICE_LOG.get(visits as usize).copied().unwrap_or_else(|| 2.0 * f64::from(visits).ln());
        Self { c_param, twice_log }
    }
}

impl EdgeScore for Ucb1 {
    #[inline(always)]
    fn score(self, visits: f64, mean: f64, _prior: f64) -> f64 {
        mean + self.c_param * (self.twice_log / visits).sqrt()
    }

    fn score_general(self, edge: EdgeInputs, virtual_loss: bool) -> f64 {
        let visits = edge.visits + edge.in_flight;
        let exploit = match edge.proven {
            Some(value) => f64::from(value),
            None if virtual_loss => (edge.sum - edge.in_flight) / visits,
            None => edge.sum / visits,
        };
        exploit + self.c_param * (self.twice_log / visits).sqrt()
    }
}
