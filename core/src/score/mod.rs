//! How an edge is scored: one file per rule. A rule sees the opened edges of one node and picks the best of them.

mod ucb1;

use crate::random::Random;
use crate::tree::Edges;

/// The rule that picks among the edges of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
    /// UCB1 (seed 3): every move is tried once before any is tried twice.
    Ucb1 {
        /// Weight of exploration; the formula has a factor 2 under the root besides.
        c_param: f64,
    },
}

/// What a rule needs to know of the node beside its edges.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// N of the node, leaves in flight counted.
    pub visits: u32,
    /// Leaves in flight lower Q as if they were lost (seed 2); otherwise they only count as visits.
    pub virtual_loss: bool,
    /// Some edge is proven, so exact values and proven losses must be looked at.
    pub tagged: bool,
}

impl Score {
    /// The best edge by this rule, ties broken by `random`. `scores` receives the score of each edge.
    #[inline]
    pub fn best(&self, edges: &Edges<'_>, context: Context, scores: &mut Vec<f64>, random: &mut Random) -> usize {
        match *self {
            Self::Ucb1 { c_param } => ucb1::score(c_param, edges, context, scores),
        }
        highest(scores, random)
    }

    /// Whether untried edges are opened at once, in random order, before any score is asked for.
    #[must_use]
    pub fn opens_at_once(&self) -> bool {
        match self {
            Self::Ucb1 { .. } => true,
        }
    }
}

/// The place of the highest score; among equals, each with the same chance.
#[inline]
fn highest(scores: &[f64], random: &mut Random) -> usize {
    let mut best = f64::NEG_INFINITY;
    let mut first = 0;
    let mut ties = 0u32;
    for (index, &score) in scores.iter().enumerate() {
        if score > best {
            best = score;
            first = index;
            ties = 1;
        } else if score == best {
            ties += 1;
        }
    }
    if ties <= 1 {
        return first;
    }
    let chosen = random.choose(ties);
    scores.iter().enumerate().filter(|(_, &score)| score == best).nth(chosen as usize).map_or(first, |(index, _)| index)
}
