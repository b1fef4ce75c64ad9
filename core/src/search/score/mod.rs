//! How a move is chosen at a node: one file per rule. A rule sees all edges of the node, the opened ones first.

mod argmax;
pub mod gumbel;
mod log_puct;
mod puct;
mod simd_score;
pub(crate) mod ucb1;

pub use gumbel::CompletedQ;
pub use log_puct::{LogPuctParameters, Normalize};
pub use puct::{Fpu, ParentVisits};

use std::sync::Arc;

use log_puct::LogPuct;
use puct::Puct;
use ucb1::Ucb1;

use crate::runtime::random::Random;
use crate::tree::{Node, NodeIndex, Statistics, Tree};

/// The rule that picks among the edges of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// UCB1 (seed 3): every move is tried once, in random order, before any is tried twice.
    Ucb1 {
        /// Weight of exploration; the formula has a factor 2 under the root besides.
        c_param: f64,
    },
    /// PUCT with a fixed constant (seeds 0 and 2): priors say where to look first.
    Puct {
        /// Weight of exploration.
        c_puct: f64,
        /// What an unvisited move is worth.
        fpu: Fpu,
        /// What N(s) counts.
        parent_visits: ParentVisits,
        /// Tried moves of the root get the square root of this times P times N simulations at least; 0 forces none.
        forced_playouts: f64,
    },
    /// PUCT with a constant that grows with log N, on values brought to a scale (seed 1).
    LogPuct(Arc<LogPuctParameters>),
    /// Visits follow an improved policy; at the root, sequential halving over moves drawn by Gumbel numbers.
    Gumbel {
        /// How Q is completed_q.
        completed_q: CompletedQ,
        /// Moves considered at the root, at most.
        max_num_considered_actions: u32,
        /// Weight of the Gumbel numbers.
        gumbel_scale: f64,
    },
}

/// Any rule, in `Rule::kind`.
pub const ANY: u8 = 0;
/// PUCT, there.
pub const PUCT: u8 = 1;
/// LogPuct's, there.
pub const LOG_PUCT: u8 = 2;

/// What a rule needs to know of the node beside its edges.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// N of the node, leaves in flight counted.
    pub visits: u32,
    /// PendingLeaves in flight lower Q as if they were lost (seed 2); otherwise they only count as visits.
    pub virtual_loss: bool,
    /// The score of every edge is wanted, for a trace.
    pub all_scores: bool,
}

impl Rule {
    /// Which of the rules it is, for code that is compiled for one.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Puct { .. } => PUCT,
            Self::LogPuct(_) => LOG_PUCT,
            _ => ANY,
        }
    }

    /// The place of the edge to follow at node `index`, ties broken by `random`; one at or beyond `opened` is to be opened.
    /// `scores` receives the scores the choice was made by (and may have more behind): of all edges where the trace wants them.
    /// `KIND` is what `kind` says, or `ANY`: a way down that knows its rule has fewer ways to go.
    #[inline(always)]
    pub fn choose<const KIND: u8>(
        &self,
        tree: &mut Tree,
        index: NodeIndex,
        node: &Node,
        context: Context,
        scores: &mut Vec<f64>,
        random: &mut Random,
    ) -> usize {
        let visits = context.visits;
        match self {
            Self::Puct { c_puct, fpu, parent_visits, .. } if KIND != LOG_PUCT => {
                choose_by(Puct::at(*c_puct, *fpu, *parent_visits, tree, node, visits), tree, index, node, context, scores, random)
            }
            Self::LogPuct(rule) if KIND != PUCT => {
                choose_by(LogPuct::at(rule, tree, node, visits), tree, index, node, context, scores, random)
            }
            _ => self.choose_general_rule(tree, index, node, context, scores, random),
        }
    }

    fn choose_general_rule(
        &self,
        tree: &mut Tree,
        index: NodeIndex,
        node: &Node,
        context: Context,
        scores: &mut Vec<f64>,
        random: &mut Random,
    ) -> usize {
        let (count, opened) = (node.num_edges as usize, node.opened as usize);
        match self {
            Self::Ucb1 { .. } if opened < count => opened + random.choose((count - opened) as u32) as usize,
            Self::Ucb1 { c_param } => choose_by(Ucb1::at(*c_param, context.visits), tree, index, node, context, scores, random),
            Self::Gumbel { completed_q, .. } => {
                simd_score::make_room(scores, count);
                let highest = tree.max_untried_prior(index, node);
                gumbel::choose(completed_q, &tree.edges(node), node, tree.pruned_prior_mass(index), highest, context.all_scores, scores)
            }
            Self::Puct { .. } | Self::LogPuct(_) => unreachable!("`choose` knows these, and `KIND` is that of the rule or any"),
        }
    }

    /// The place of a move of the root that has fewer simulations than it must have, whatever its score.
    #[inline]
    #[must_use]
    pub fn forced(&self, tree: &Tree, node: &Node, visits: u32) -> Option<usize> {
        match self {
            Self::Puct { forced_playouts, .. } if *forced_playouts > 0.0 => puct::forced(*forced_playouts, tree, node, visits),
            _ => None,
        }
    }

    /// The weight of exploration at a node with so many visits, by rules that have one.
    #[must_use]
    pub fn exploration(&self, visits: u32) -> Option<f64> {
        match self {
            Self::LogPuct(rule) => Some(rule.weight(visits)),
            Self::Puct { c_puct, parent_visits, .. } => Some(puct::weight(*c_puct, *parent_visits, visits)),
            _ => None,
        }
    }

    /// Whether moves have priors, so that a leaf gets its edges when it is evaluated, and the root is evaluated first.
    #[inline]
    #[must_use]
    pub fn uses_priors(&self) -> bool {
        !matches!(self, Self::Ucb1 { .. })
    }

    /// Whether untried moves are opened without being scored.
    #[inline]
    #[must_use]
    pub fn opens_unscored(&self) -> bool {
        matches!(self, Self::Ucb1 { .. })
    }
}

#[inline(always)]
fn choose_by<R: simd_score::EdgeScore>(
    rule: R,
    tree: &mut Tree,
    index: NodeIndex,
    node: &Node,
    context: Context,
    scores: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let opened = node.opened as usize;
    if !tree.counts_in_flight() && !node.has_proven_edge && !context.all_scores {
        let untried = if simd_score::needs_max_untried(node.num_edges as usize) { tree.max_untried_prior(index, node) } else { 0.0 };
        return simd_score::choose(rule, tree.statistics(node), opened, untried, scores, random);
    }
    simd_score::choose_general(rule, &tree.edges(node), opened, context, scores, random)
}

/// The value of a node for the player to move there: (its raw value + W of its edges) / N.
#[inline]
fn node_value(raw: f64, edges: Statistics<'_>, opened: usize) -> f64 {
    let sum = edges.sums[..opened].iter().fold(0.0, |sum, value| sum + value);
    let visits: u32 = edges.visits[..opened].iter().sum();
    (raw + sum) / (1.0 + f64::from(visits))
}
