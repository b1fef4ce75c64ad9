//! How a move is chosen at a node: one file per rule. A rule sees all edges of the node, the opened ones first.

mod puct;
mod ucb1;

pub use puct::{Fpu, ParentVisits};

use crate::random::Random;
use crate::tree::{Node, Statistics, Tree};

/// Edges are scored this many at a time, on registers that hold as many numbers.
const LANES: usize = 4;

/// The rule that picks among the edges of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
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
    },
}

/// What a rule needs to know of the node beside its edges.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// N of the node, leaves in flight counted.
    pub visits: u32,
    /// Leaves in flight lower Q as if they were lost (seed 2); otherwise they only count as visits.
    pub virtual_loss: bool,
    /// The score of every edge is wanted, for a trace.
    pub all_scores: bool,
}

impl Score {
    /// The place of the edge to follow, ties broken by `random`; one at or beyond `opened` is to be opened.
    /// `scores` receives the scores the choice was made by (and may have more behind): of all edges where the trace wants them.
    #[inline]
    pub fn choose(&self, tree: &Tree, node: &Node, context: Context, scores: &mut Vec<f64>, random: &mut Random) -> usize {
        let count = node.num_edges as usize;
        let opened = node.opened as usize;
        if scores.len() < count {
            scores.resize(count, f64::NEG_INFINITY);
        }
        let scores = &mut scores[..count];
        let plain = !tree.counts_in_flight() && !node.tagged;
        match *self {
            Self::Ucb1 { .. } if opened < count => opened + random.choose((count - opened) as u32) as usize,
            Self::Ucb1 { c_param } if plain => {
                let best = ucb1::score_plain(c_param, context.visits, tree.statistics(node), scores);
                one_of_the_highest(scores, best, random)
            }
            Self::Ucb1 { c_param } => {
                ucb1::score(c_param, &tree.edges(node), context, scores);
                highest(scores, random)
            }
            Self::Puct { c_puct, fpu, parent_visits } => {
                let rule = puct::Puct::at(c_puct, fpu, parent_visits, tree, node, context.visits);
                if plain && !context.all_scores {
                    return rule.choose_plain(tree, node, scores, random);
                }
                rule.score(&tree.edges(node), context, scores);
                highest(scores, random)
            }
        }
    }

    /// Whether moves have priors, so that a leaf gets its edges when it is evaluated, and the root is evaluated first.
    #[inline]
    #[must_use]
    pub fn uses_priors(&self) -> bool {
        matches!(self, Self::Puct { .. })
    }

    /// Whether untried moves are opened without being scored.
    #[inline]
    #[must_use]
    pub fn opens_unscored(&self) -> bool {
        matches!(self, Self::Ucb1 { .. })
    }
}

/// Scores edges in groups, by a formula of (visits, sum, prior); the highest score. The last group overlaps the one before it,
/// so that every group is whole.
#[inline(always)]
fn score_in_groups(edges: Statistics<'_>, scores: &mut [f64], formula: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let count = scores.len();
    let mut best = [f64::NEG_INFINITY; LANES];
    let mut at = 0;
    while at + LANES <= count {
        let (visits, sums, priors) = (&edges.visits[at..at + LANES], &edges.sums[at..at + LANES], &edges.priors[at..at + LANES]);
        let scores = &mut scores[at..at + LANES];
        for lane in 0..LANES {
            // Signed, because that conversion is one instruction everywhere; no edge is visited 2^31 times.
            let score = formula(f64::from(visits[lane] as i32), sums[lane], f64::from(priors[lane]));
            scores[lane] = score;
            best[lane] = if score > best[lane] { score } else { best[lane] };
        }
        at = if at + LANES == count { count } else { (at + LANES).min(count - LANES) };
    }
    for (place, slot) in scores.iter_mut().enumerate().skip(at) {
        let score = formula(f64::from(edges.visits[place] as i32), edges.sums[place], f64::from(edges.priors[place]));
        *slot = score;
        best[0] = if score > best[0] { score } else { best[0] };
    }
    best.into_iter().fold(f64::NEG_INFINITY, |best, score| if score > best { score } else { best })
}

/// The place of the highest score; among equals, each with the same chance.
fn highest(scores: &[f64], random: &mut Random) -> usize {
    let best = scores.iter().fold(f64::NEG_INFINITY, |best, &score| if score > best { score } else { best });
    one_of_the_highest(scores, best, random)
}

/// The place of a score equal to `best`; among several, each with the same chance.
#[inline]
fn one_of_the_highest(scores: &[f64], best: f64, random: &mut Random) -> usize {
    let ties = scores.iter().map(|&score| u32::from(score == best)).sum::<u32>();
    let mut left = if ties > 1 { random.choose(ties) } else { 0 };
    for (place, &score) in scores.iter().enumerate() {
        if score == best {
            if left == 0 {
                return place;
            }
            left -= 1;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn the_highest_wins_and_ties_are_shared() {
        let mut random = Random::new(3, Purpose::Select);
        assert_eq!(highest(&[0.1, 0.7, 0.3], &mut random), 1);
        for size in [3usize, 64, 65, 300] {
            let mut scores = vec![0.0; size];
            scores[1] = 1.0;
            scores[size - 1] = 1.0;
            let mut seen = [0; 2];
            for _ in 0..400 {
                let place = highest(&scores, &mut random);
                assert!(place == 1 || place == size - 1);
                seen[usize::from(place == 1)] += 1;
            }
            assert!(seen.iter().all(|&count| count > 130), "{seen:?}");
        }
    }

    #[test]
    fn a_single_best_draws_nothing() {
        let mut random = Random::new(3, Purpose::Select);
        let before = random.clone().next_u64();
        let _ = highest(&[0.0, 1.0], &mut random);
        assert_eq!(random.next_u64(), before);
    }

    #[test]
    fn all_lost_still_answers() {
        let mut random = Random::new(3, Purpose::Select);
        assert!(highest(&[f64::NEG_INFINITY; 3], &mut random) < 3);
    }
}
