//! PUCT (Rosin 2011; Silver et al. 2017): `Q + c_puct * P * sqrt(N) / (1 + n)`, computed as `Q + (c_puct * sqrt(N)) * P / (1 + n)`.

use super::edge_score::{EdgeInputs, EdgeScore};
use super::{node_value, scale_of, Choice, ScoringRule, ANY, NORMALIZE, PUCT};
use crate::runtime::lanes::{Lanes, Number, Portable};
use crate::search::fields::Fields;
use crate::search::terms::{terms, ChoiceTerms, RecordedChoice};
use crate::tree::{Node, Tree, ROOT};

/// What N(s) counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentVisits {
    /// Visits of the node, its evaluation included.
    Node,
    /// Visits of its edges, at least 1, so that the first choice does not ignore the priors.
    Edges,
}

/// PUCT with a fixed constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Puct {
    /// Exploration constant.
    pub c_puct: f64,
    /// First-play urgency: Q of an untried move for the chooser.
    pub fpu: f64,
    /// Whether `fpu` is a reduction of the node's value, instead of a constant.
    pub fpu_parent: bool,
    /// What N(s) counts.
    pub parent_visits: ParentVisits,
    /// Opened root moves get at least sqrt(this * P * N) simulations; 0 forces none.
    pub forced_playouts: f64,
    /// Whether Q is mapped to [0, 1] by the bounds of the tree; `fpu` is on that scale then.
    pub normalize: bool,
}

impl Puct {
    /// Returns the exploration weight at a node with `visits`: c_puct * sqrt(N).
    #[inline(always)]
    fn weight(&self, visits: u32) -> f64 {
        let counted = match self.parent_visits {
            ParentVisits::Node => visits,
            ParentVisits::Edges => visits.saturating_sub(1).max(1),
        };
        self.c_puct * f64::from(counted).sqrt()
    }

    /// Returns Q of an untried move.
    #[inline(always)]
    fn urgency(&self, tree: &Tree, node: &Node) -> f64 {
        match self.fpu_parent {
            true => node_value(tree, node) - self.fpu,
            false => self.fpu,
        }
    }

    /// Returns Q of an untried move on the scale of the tree.
    fn normalized_urgency(&self, tree: &Tree, node: &Node, low: f64, scale: f64) -> f64 {
        match self.fpu_parent {
            true => (node_value(tree, node) - low) * scale - self.fpu,
            false => self.fpu,
        }
    }

    /// `choose` on values normalised by the tree; apart, so that other searches have no instruction of it.
    #[inline(never)]
    fn choose_normalized(&self, choice: Choice<'_, Portable>) -> usize {
        let (low, scale) = scale_of(choice.bounds);
        let untried = self.normalized_urgency(choice.tree, choice.node, low, scale);
        let exploration = self.weight(choice.visits);
        choice.highest(Normalized { exploration, untried, low, scale })
    }
}

impl ScoringRule for Puct {
    const NAME: &'static str = "puct";
    const ID: u8 = PUCT;

    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
        Ok(Self {
            c_puct: fields.not_negative("c_puct")?,
            fpu: fields.finite("fpu")?,
            fpu_parent: fields.flag("fpu_parent")?,
            parent_visits: fields.one_of("parent_visits", [(Some("node"), ParentVisits::Node), (Some("edges"), ParentVisits::Edges)])?,
            forced_playouts: fields.not_negative("forced_playouts")?,
            normalize: fields.one_of("normalize", NORMALIZE)?,
        })
    }

    #[inline]
    fn id(&self) -> u8 {
        if self.normalize {
            ANY
        } else {
            PUCT
        }
    }

    #[inline(always)]
    fn choose<const ID: u8>(&self, choice: Choice<'_, impl Lanes>) -> usize {
        if ID == ANY && self.normalize {
            return self.choose_normalized(choice.portable());
        }
        let (node, tree) = (choice.node, choice.tree);
        let untried = self.urgency(tree, node);
        let exploration = self.weight(choice.visits);
        choice.highest(Formula { exploration, untried })
    }

    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
        let forced = (choice.index == ROOT && self.forced_playouts > 0.0).then_some(self.forced_playouts);
        if self.normalize {
            return self.normalized_terms(choice, how, forced);
        }
        puct_terms(choice, how, self.weight(choice.visits), self.urgency(choice.tree, choice.node), forced)
    }

    #[inline]
    fn forced_playout(&self, tree: &Tree, node: &Node, visits: u32) -> Option<usize> {
        if self.forced_playouts > 0.0 {
            forced_playout(self.forced_playouts, tree, node, visits)
        } else {
            None
        }
    }

    fn exploration(&self, visits: u32) -> Option<f64> {
        Some(self.weight(visits))
    }

    fn uses_bounds(&self) -> bool {
        self.normalize
    }
}

impl Puct {
    /// `terms` on values normalised by the tree.
    fn normalized_terms(&self, choice: &RecordedChoice<'_>, how: &'static str, forced: Option<f64>) -> ChoiceTerms {
        let (weight, (low, scale)) = (self.weight(choice.visits), scale_of(choice.bounds));
        let urgency = self.normalized_urgency(choice.tree, choice.node, low, scale);
        let total = f64::from(choice.visits.saturating_sub(1));
        choice.scored(how, terms! { exploration_weight: weight, low: low, scale: scale }, |edge| {
            let q = edge.proven.map(f64::from).or(edge.mean);
            let normalized_q = q.map_or(urgency, |q| (q - low) * scale);
            let exploration = weight * edge.prior / (1.0 + f64::from(edge.visits));
            let terms = terms! {
                q: q,
                normalized_q: normalized_q,
                first_play_urgency: q.is_none(),
                exploration: exploration,
                forced_visits: forced.map(|k| (k * edge.prior * total).sqrt()),
            };
            (terms, normalized_q + exploration)
        })
    }
}

/// Forced playouts (Wu 2019, section 3.2): returns the opened, unproven move with fewer than `sqrt(k * P * N)` visits (N: visits of
/// all moves) that has the highest prior, then the lowest action.
fn forced_playout(k: f64, tree: &Tree, node: &Node, visits: u32) -> Option<usize> {
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

/// Returns what scores of Q, or `urgency` of an untried move, plus `weight` * P / (1 + n) are made of; `forced` is k of forced playouts.
pub(super) fn puct_terms(choice: &RecordedChoice<'_>, how: &'static str, weight: f64, urgency: f64, forced: Option<f64>) -> ChoiceTerms {
    let total = f64::from(choice.visits.saturating_sub(1));
    choice.scored(how, terms! { exploration_weight: weight }, |edge| {
        let q = edge.q.unwrap_or(urgency);
        let exploration = weight * edge.prior / (1.0 + f64::from(edge.visits));
        let terms = terms! {
            virtual_loss: edge.virtual_loss,
            q: q,
            first_play_urgency: edge.q.is_none(),
            exploration: exploration,
            forced_visits: forced.map(|k| (k * edge.prior * total).sqrt()),
        };
        (terms, q + exploration)
    })
}

/// The formula at one node.
#[derive(Clone, Copy, Debug)]
struct Formula {
    exploration: f64,
    untried: f64,
}

impl EdgeScore for Formula {
    #[inline(always)]
    fn score<N: Number>(self, visits: N, mean: N, prior: N) -> N {
        mean.or(self.untried) + mean.splat(self.exploration) * prior / (mean.splat(1.0) + visits)
    }
}

/// The formula on values normalised by the tree. Leaves in flight count in n alone.
#[derive(Clone, Copy, Debug)]
struct Normalized {
    exploration: f64,
    untried: f64,
    low: f64,
    scale: f64,
}

impl EdgeScore for Normalized {
    #[inline(always)]
    fn score<N: Number>(self, visits: N, mean: N, prior: N) -> N {
        let exploit = ((mean - mean.splat(self.low)) * mean.splat(self.scale)).or(self.untried);
        exploit + mean.splat(self.exploration) * prior / (mean.splat(1.0) + visits)
    }

    fn score_general(self, edge: EdgeInputs, _virtual_loss: bool) -> f64 {
        let exploit = edge.mean().map_or(self.untried, |mean| (mean - self.low) * self.scale);
        exploit + self.exploration * edge.prior / (1.0 + (edge.visits + edge.in_flight))
    }
}
