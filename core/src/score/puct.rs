//! PUCT (Rosin 2011; Silver et al. 2017): `Q + c_puct * P * sqrt(N) / (1 + n)`, computed as `Q + (c_puct * sqrt(N)) * P / (1 + n)`.
//!
//! Untried moves share one Q and have n = 0, so among them only the one with the highest prior can win: it alone is scored.

use super::{highest, one_of_the_highest, pick, score_in_groups, Context, FEW};
use crate::random::Random;
use crate::tree::{Edges, Node, Statistics, Tree};

/// First-play urgency: the Q of a move that was never tried, for the player who chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fpu {
    /// A number; seed 0 has 0.
    Constant(f64),
    /// The value of the node, less so much.
    Parent(f64),
}

/// What N(s) counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentVisits {
    /// Visits of the node, its own evaluation included (seed 0).
    Node,
    /// Visits of its edges, at least 1 (seed 2, guarded: with 0 the prior would be ignored).
    Edges,
}

/// The rule at one node.
#[derive(Clone, Copy, Debug)]
pub struct Puct {
    exploration: f64,
    untried: f64,
}

impl Puct {
    /// The rule at `node`, which has `visits`, leaves in flight counted.
    #[inline]
    pub fn at(c_puct: f64, fpu: Fpu, parent_visits: ParentVisits, tree: &Tree, node: &Node, visits: u32) -> Self {
        let counted = match parent_visits {
            ParentVisits::Node => visits,
            ParentVisits::Edges => visits.saturating_sub(1).max(1),
        };
        let untried = match fpu {
            Fpu::Constant(value) => value,
            Fpu::Parent(reduction) => node_value(tree, node) - reduction,
        };
        Self { exploration: c_puct * f64::from(counted).sqrt(), untried }
    }

    /// Chooses where nothing is proven and nothing is in flight.
    #[inline]
    pub fn choose_plain(&self, tree: &Tree, node: &Node, scores: &mut [f64], random: &mut Random) -> usize {
        let (count, opened) = (node.num_edges as usize, node.opened as usize);
        let edges = tree.statistics(node);
        if count <= FEW {
            return self.pick(edges, scores, random);
        }
        let scores = &mut scores[..count];
        let best = self.score_first(edges, &mut scores[..opened]);
        if opened == count {
            return one_of_the_highest(scores, best, random);
        }
        let untried = &edges.priors[opened..];
        let prior = untried.iter().fold(0.0f32, |best, &prior| if prior > best { prior } else { best });
        let candidate = self.untried + self.exploration * f64::from(prior);
        if candidate < best {
            return one_of_the_highest(&scores[..opened], best, random);
        }
        // An untried move wins or draws level; small priors may round to the same score, so each has a say.
        for (score, &prior) in scores[opened..].iter_mut().zip(untried) {
            *score = self.untried + self.exploration * f64::from(prior);
        }
        highest(scores, random)
    }

    /// Chooses among a few edges.
    #[inline]
    fn pick(&self, edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random) -> usize {
        #[cfg(target_arch = "x86_64")]
        if super::has_wide_registers() {
            #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
            // SAFETY: the processor has just been seen to have them.
            return unsafe { pick_wide(*self, edges, scratch, random) };
        }
        pick(edges, scratch, random, self.formula())
    }

    /// Scores the first edges, as many as `scores` has places; the highest score.
    #[inline]
    fn score_first(&self, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
        #[cfg(target_arch = "x86_64")]
        if super::has_wide_registers() {
            #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
            // SAFETY: the processor has just been seen to have them.
            return unsafe { score_wide(*self, edges, scores) };
        }
        score_in_groups(edges, scores, self.formula())
    }

    /// The score of an edge from its visits, sum and prior.
    #[inline(always)]
    fn formula(self) -> impl Fn(f64, f64, f64) -> f64 {
        move |visits, sum, prior| {
            let mean = sum / visits;
            let exploit = if visits > 0.0 { mean } else { self.untried };
            exploit + self.exploration * prior / (1.0 + visits)
        }
    }

    /// Scores all edges; a proven loss gets minus infinity unless all are.
    pub fn score(&self, edges: &Edges<'_>, context: Context, scores: &mut [f64]) {
        let all_lost = edges.links.iter().all(|link| link.is_loss());
        for (index, score) in scores.iter_mut().enumerate().take(edges.visits.len()) {
            let flying = edges.in_flight.get(index).map_or(0.0, |&count| f64::from(count));
            let visits = f64::from(edges.visits[index]) + flying;
            let exploit = match edges.links[index].proven() {
                Some(-1) if !all_lost => {
                    *score = f64::NEG_INFINITY;
                    continue;
                }
                Some(value) => f64::from(value),
                None if visits == 0.0 => self.untried,
                None if context.virtual_loss => (edges.sums[index] - flying) / visits,
                None => edges.sums[index] / visits,
            };
            *score = exploit + self.exploration * f64::from(edges.priors[index]) / (1.0 + visits);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn pick_wide(rule: Puct, edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random) -> usize {
    pick(edges, scratch, random, rule.formula())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn score_wide(rule: Puct, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    score_in_groups(edges, scores, rule.formula())
}

/// The value of a node for the player to move there: (its raw value + W of its edges) / N.
fn node_value(tree: &Tree, node: &Node) -> f64 {
    let edges = tree.edges(node);
    let opened = node.opened as usize;
    let sum = edges.sums[..opened].iter().fold(0.0, |sum, value| sum + value);
    let visits: u32 = edges.visits[..opened].iter().sum();
    (node.raw + sum) / (1.0 + f64::from(visits))
}
