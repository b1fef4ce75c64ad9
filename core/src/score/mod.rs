//! How a move is chosen at a node: one file per rule. A rule sees all edges of the node, the opened ones first.

mod puct;
mod ucb1;

pub use puct::{Fpu, ParentVisits};

use crate::random::Random;
use crate::tree::{Node, Statistics, Tree};

/// Edges are scored this many at a time, on registers that hold as many numbers.
const LANES: usize = 4;

/// Up to so many edges, a word has a bit for each, and it is cheaper to score all of them than to look for the one untried
/// move worth it.
const FEW: usize = 64;

/// Whether the processor has what the wide forms are compiled for: the same arithmetic, on wider registers.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_wide_registers() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("popcnt")
}

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
        // One group more, which a group that overlaps another may need.
        if scores.len() < count + LANES {
            scores.resize(count + LANES, f64::NEG_INFINITY);
        }
        let plain = !tree.counts_in_flight() && !node.tagged && !context.all_scores;
        match *self {
            Self::Ucb1 { .. } if opened < count => opened + random.choose((count - opened) as u32) as usize,
            Self::Ucb1 { c_param } if plain => ucb1::choose_plain(c_param, context.visits, tree.statistics(node), scores, random),
            Self::Ucb1 { c_param } => {
                ucb1::score(c_param, &tree.edges(node), context, scores);
                highest(&scores[..count], random)
            }
            Self::Puct { c_puct, fpu, parent_visits } => {
                let rule = puct::Puct::at(c_puct, fpu, parent_visits, tree, node, context.visits);
                if plain {
                    return rule.choose_plain(tree, node, scores, random);
                }
                rule.score(&tree.edges(node), context, scores);
                highest(&scores[..count], random)
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

/// A formula for the score of an edge, from its visits, sum and prior.
trait Formula: Fn(f64, f64, f64) -> f64 {}
impl<F: Fn(f64, f64, f64) -> f64> Formula for F {}

/// The scores of the edges from `at` on, as many as a register holds.
#[inline(always)]
fn group(edges: Statistics<'_>, at: usize, formula: &impl Formula) -> [f64; LANES] {
    let (visits, sums, priors) = (&edges.visits[at..at + LANES], &edges.sums[at..at + LANES], &edges.priors[at..at + LANES]);
    // Signed, because that conversion is one instruction everywhere; no edge is visited 2^31 times.
    let mut scores = [0.0; LANES];
    for lane in 0..LANES {
        scores[lane] = formula(f64::from(visits[lane] as i32), sums[lane], f64::from(priors[lane]));
    }
    scores
}

/// The score of one edge.
#[inline(always)]
fn alone(edges: Statistics<'_>, place: usize, formula: &impl Formula) -> f64 {
    formula(f64::from(edges.visits[place] as i32), edges.sums[place], f64::from(edges.priors[place]))
}

#[inline(always)]
fn higher(mut a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
    for lane in 0..LANES {
        a[lane] = if b[lane] > a[lane] { b[lane] } else { a[lane] };
    }
    a
}

#[inline(always)]
fn highest_of(group: [f64; LANES]) -> f64 {
    let [a, b, c, d] = group;
    // Halves against each other, as registers are split.
    let (first, second) = (if c > a { c } else { a }, if d > b { d } else { b });
    if second > first {
        second
    } else {
        first
    }
}

/// A bit for each score that equals `best`.
#[inline(always)]
fn equal_bits(group: [f64; LANES], best: f64) -> u64 {
    let mut bits = 0;
    for (lane, &score) in group.iter().enumerate() {
        bits |= u64::from(score == best) << lane;
    }
    bits
}

/// The place of the best edge by `formula`, of at most 64; among equals, each with the same chance. Scores stay in registers
/// where they fit: writing them and reading other parts of them back costs more than the arithmetic. The last group overlaps
/// the one before it, so that every group is whole.
#[inline(always)]
fn pick(edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random, formula: impl Formula) -> usize {
    let count = edges.visits.len();
    let best = if count < LANES {
        let mut scores = [f64::NEG_INFINITY; LANES];
        for (place, score) in scores.iter_mut().enumerate().take(count) {
            *score = alone(edges, place, &formula);
        }
        equal_bits(scores, highest_of(scores)) & ((1 << count) - 1)
    } else {
        let last = count - LANES;
        let mut most = [f64::NEG_INFINITY; LANES];
        for (index, scores) in scratch.chunks_exact_mut(LANES).enumerate().take(count.div_ceil(LANES)) {
            let found = group(edges, (index * LANES).min(last), &formula);
            scores.copy_from_slice(&found);
            most = higher(most, found);
        }
        let best = highest_of(most);
        let mut equal = 0;
        for (index, scores) in scratch.chunks_exact(LANES).enumerate().take(count.div_ceil(LANES)) {
            let mut found = [0.0; LANES];
            found.copy_from_slice(scores);
            equal |= equal_bits(found, best) << (index * LANES).min(last);
        }
        equal
    };
    one_of(best, random)
}

/// The place of a bit; among several, each with the same chance. 0 where there is none.
#[inline(always)]
fn one_of(mut bits: u64, random: &mut Random) -> usize {
    if bits & bits.wrapping_sub(1) != 0 {
        let skipped = random.below(bits.count_ones());
        // Without a branch on what is random: eight steps cost less than one wrong guess.
        for step in 0..2 * LANES as u32 {
            bits = if step < skipped { bits & (bits - 1) } else { bits };
        }
        for _ in 2 * LANES as u32..skipped {
            bits &= bits - 1;
        }
    }
    bits.trailing_zeros() as usize & 63
}

/// Scores edges in groups, as above, into `scores`, as many as it has places; the highest score.
#[inline(always)]
fn score_in_groups(edges: Statistics<'_>, scores: &mut [f64], formula: impl Formula) -> f64 {
    let count = scores.len();
    let mut best = [f64::NEG_INFINITY; LANES];
    let whole = count - count % LANES;
    for at in (0..whole).step_by(LANES) {
        let found = group(edges, at, &formula);
        scores[at..at + LANES].copy_from_slice(&found);
        best = higher(best, found);
    }
    for (place, slot) in scores.iter_mut().enumerate().skip(whole) {
        let score = alone(edges, place, &formula);
        *slot = score;
        best[0] = if score > best[0] { score } else { best[0] };
    }
    highest_of(best)
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
