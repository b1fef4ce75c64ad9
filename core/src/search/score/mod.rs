//! Scoring rules, one file each: they select an edge of a node. Opened edges come first.

mod edge_score;
pub(crate) mod gumbel;
mod log_puct;
mod puct;
mod select_edge;
pub(crate) mod ucb1;

pub use gumbel::CompletedQ;
pub use log_puct::{LogPuctParameters, Normalize};
pub use puct::{Fpu, ParentVisits};

use std::sync::Arc;

use log_puct::LogPuct;
use puct::Puct;
use ucb1::Ucb1;

use crate::runtime::random::Random;
use crate::search::backup::Bounds;
use crate::tree::{Node, NodeIndex, Statistics, Tree};

/// The rule that selects an edge of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// UCB1: every move is tried once, in random order, before any is tried twice.
    Ucb1 {
        /// Exploration constant; the formula has a factor 2 under the square root as well.
        c_param: f64,
    },
    /// PUCT with a fixed constant.
    Puct {
        /// Exploration constant.
        c_puct: f64,
        /// Value of an unvisited move.
        fpu: Fpu,
        /// What N(s) counts.
        parent_visits: ParentVisits,
        /// Opened root moves get at least sqrt(this * P * N) simulations; 0 forces none.
        forced_playouts: f64,
    },
    /// PUCT with a constant that grows with log N, on normalised values (MuZero).
    LogPuct(Arc<LogPuctParameters>),
    /// Visits follow an improved policy; sequential halving over a Gumbel-top-k sample at the root.
    Gumbel {
        /// How Q is completed.
        completed_q: CompletedQ,
        /// Upper bound of the moves considered at the root.
        max_num_considered_actions: u32,
        /// Weight of the Gumbel numbers.
        gumbel_scale: f64,
    },
}

/// `Rule::id` of rules without specialised code; as `ID`, code for every rule.
pub(crate) const ANY: u8 = 0;
/// `Rule::id` of PUCT.
pub(crate) const PUCT: u8 = 1;
/// `Rule::id` of PUCT with a logarithmic constant.
pub(crate) const LOG_PUCT: u8 = 2;

/// What a rule needs of a node beside its edges.
#[derive(Clone, Copy, Debug)]
pub struct NodeContext {
    /// N of the node plus leaves in flight.
    pub visits: u32,
    /// Whether leaves in flight count as losses (virtual loss); otherwise they only count as visits.
    pub virtual_loss: bool,
    /// Whether the score of every edge is needed, for a trace.
    pub all_scores: bool,
    /// Lowest and highest mean value of the tree.
    pub bounds: Bounds,
}

impl Rule {
    /// Returns the id of the rule, for code compiled for one rule.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u8 {
        match self {
            Self::Puct { .. } => PUCT,
            Self::LogPuct(_) => LOG_PUCT,
            _ => ANY,
        }
    }

    /// Returns the place of the edge to follow at node `index`, ties broken by `random`; a place from `opened` on is to be opened.
    /// `scores` receives the scores of the choice, of all edges if `all_scores`; its length may exceed them. `ID` is the rule's id or
    /// `ANY`: code compiled for one rule has fewer branches.
    #[inline(always)]
    pub fn choose<const ID: u8>(
        &self,
        tree: &mut Tree,
        index: NodeIndex,
        node: &Node,
        context: NodeContext,
        scores: &mut Vec<f64>,
        random: &mut Random,
    ) -> usize {
        let visits = context.visits;
        match self {
            Self::Puct { c_puct, fpu, parent_visits, .. } if ID != LOG_PUCT => {
                choose_by(Puct::at(*c_puct, *fpu, *parent_visits, tree, node, visits), tree, index, node, context, scores, random)
            }
            Self::LogPuct(rule) if ID != PUCT => {
                choose_by(LogPuct::at(rule, node, visits, context.bounds), tree, index, node, context, scores, random)
            }
            _ => self.choose_general_rule(tree, index, node, context, scores, random),
        }
    }

    fn choose_general_rule(
        &self,
        tree: &mut Tree,
        index: NodeIndex,
        node: &Node,
        context: NodeContext,
        scores: &mut Vec<f64>,
        random: &mut Random,
    ) -> usize {
        let (count, opened) = (node.num_edges as usize, node.opened as usize);
        match self {
            Self::Ucb1 { .. } if opened < count => opened + random.choose((count - opened) as u32) as usize,
            Self::Ucb1 { c_param } => choose_by(Ucb1::at(*c_param, context.visits), tree, index, node, context, scores, random),
            Self::Gumbel { completed_q, .. } => {
                select_edge::reserve_scores(scores, count);
                let highest = tree.max_untried_prior(index, node);
                gumbel::choose(completed_q, &tree.edges(node), node, tree.pruned_prior_mass(index), highest, context.all_scores, scores)
            }
            Self::Puct { .. } | Self::LogPuct(_) => unreachable!("`choose` handles these; `ID` is the rule's or `ANY`"),
        }
    }

    /// Returns the place of a root move with fewer simulations than forced playouts require.
    #[inline]
    #[must_use]
    pub fn forced_playout(&self, tree: &Tree, node: &Node, visits: u32) -> Option<usize> {
        match self {
            Self::Puct { forced_playouts, .. } if *forced_playouts > 0.0 => puct::forced_playout(*forced_playouts, tree, node, visits),
            _ => None,
        }
    }

    /// Returns the exploration weight at a node with `visits`, for rules that have one.
    #[must_use]
    pub fn exploration(&self, visits: u32) -> Option<f64> {
        match self {
            Self::LogPuct(rule) => Some(rule.weight(visits)),
            Self::Puct { c_puct, parent_visits, .. } => Some(puct::weight(*c_puct, *parent_visits, visits)),
            _ => None,
        }
    }

    /// Returns whether moves have priors: a leaf then gets its edges when it is evaluated, and the root is evaluated first.
    #[inline]
    #[must_use]
    pub fn uses_priors(&self) -> bool {
        !matches!(self, Self::Ucb1 { .. })
    }

    /// Returns whether untried moves are opened without scores.
    #[inline]
    #[must_use]
    pub fn opens_unscored(&self) -> bool {
        matches!(self, Self::Ucb1 { .. })
    }
}

#[inline(always)]
fn choose_by<R: select_edge::EdgeScore>(
    rule: R,
    tree: &mut Tree,
    index: NodeIndex,
    node: &Node,
    context: NodeContext,
    scores: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let opened = node.opened as usize;
    if !tree.counts_in_flight() && !node.has_proven_edge && !context.all_scores {
        let untried = if select_edge::needs_max_untried(node.num_edges as usize) { tree.max_untried_prior(index, node) } else { 0.0 };
        return select_edge::choose(rule, tree.statistics(node), opened, untried, scores, random);
    }
    select_edge::choose_general(rule, &tree.edges(node), opened, context, scores, random)
}

/// Returns the value of a node for the player to move: (raw value + W of its edges) / N.
#[inline]
fn node_value(raw: f64, edges: Statistics<'_>, opened: usize) -> f64 {
    let sum = edges.sums[..opened].iter().fold(0.0, |sum, value| sum + value);
    let visits: u32 = edges.visits[..opened].iter().sum();
    (raw + sum) / (1.0 + f64::from(visits))
}
