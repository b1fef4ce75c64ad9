//! PUCT (Rosin 2011; Silver et al. 2017): `Q + c_puct * P * sqrt(N) / (1 + n)`, computed as `Q + (c_puct * sqrt(N)) * P / (1 + n)`.

use super::node_value;
use super::select_edge::{EdgeInputs, EdgeScore};
use crate::tree::{Node, Tree};

/// First-play urgency: Q of an untried move for the chooser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fpu {
    /// A constant.
    Constant(f64),
    /// The value of the node minus a reduction.
    Parent(f64),
}

/// What N(s) counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentVisits {
    /// Visits of the node, its evaluation included.
    Node,
    /// Visits of its edges, at least 1, so that the first choice does not ignore the priors.
    Edges,
}

/// The rule at one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Puct {
    exploration: f64,
    untried: f64,
}

impl Puct {
    /// Returns the rule at `node` with `visits`, leaves in flight included.
    #[inline(always)]
    pub(super) fn at(c_puct: f64, fpu: Fpu, parent_visits: ParentVisits, tree: &Tree, node: &Node, visits: u32) -> Self {
        let untried = match fpu {
            Fpu::Constant(value) => value,
            Fpu::Parent(reduction) => node_value(node.raw_value, tree.statistics(node), node.opened as usize) - reduction,
        };
        Self { exploration: weight(c_puct, parent_visits, visits), untried }
    }
}

/// Returns the exploration weight at a node with `visits`: c_puct * sqrt(N).
#[inline(always)]
pub(super) fn weight(c_puct: f64, parent_visits: ParentVisits, visits: u32) -> f64 {
    let counted = match parent_visits {
        ParentVisits::Node => visits,
        ParentVisits::Edges => visits.saturating_sub(1).max(1),
    };
    c_puct * f64::from(counted).sqrt()
}

/// Forced playouts (Wu 2019, section 3.2): returns the opened, unproven move with fewer than `sqrt(k * P * N)` visits (N: visits of
/// all moves) that has the highest prior, then the lowest action.
pub(super) fn forced_playout(k: f64, tree: &Tree, node: &Node, visits: u32) -> Option<usize> {
    let edges = tree.edges(node);
    let total = f64::from(visits.saturating_sub(1));
    let mut chosen: Option<usize> = None;
    for place in 0..node.opened as usize {
        let tried = f64::from(edges.visits[place]) + edges.in_flight.get(place).map_or(0.0, |&count| f64::from(count));
        let prior = f64::from(edges.priors[place]);
        if tried == 0.0 || edges.links[place].proven().is_some() || tried >= (k * prior * total).sqrt() {
            continue;
        }
        let is_before = |best: usize| {
            (edges.priors[place], std::cmp::Reverse(edges.actions[place])) > (edges.priors[best], std::cmp::Reverse(edges.actions[best]))
        };
        if chosen.is_none_or(is_before) {
            chosen = Some(place);
        }
    }
    chosen
}

impl EdgeScore for Puct {
    #[inline(always)]
    fn score(self, visits: f64, mean: f64, prior: f64) -> f64 {
        let exploit = if visits > 0.0 { mean } else { self.untried };
        exploit + self.exploration * prior / (1.0 + visits)
    }

    fn score_general(self, edge: EdgeInputs, virtual_loss: bool) -> f64 {
        let visits = edge.visits + edge.in_flight;
        let exploit = match edge.proven {
            Some(value) => f64::from(value),
            None if visits == 0.0 => self.untried,
            None if virtual_loss => (edge.sum - edge.in_flight) / visits,
            None => edge.sum / visits,
        };
        exploit + self.exploration * edge.prior / (1.0 + visits)
    }
}
