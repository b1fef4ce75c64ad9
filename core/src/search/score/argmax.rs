//! What a formula for the score of an edge is, and the best of at most 64 edges by it, on registers that hold as many numbers as a
//! group has edges: the part of a choice that costs most.

use super::node_value;
use crate::tree::Statistics;

/// Edges are scored this many at a time.
pub(super) const LANES: usize = 4;

/// Up to so many edges, a word has a bit for each.
pub(super) const FEW: usize = 64;
/// An edge with all that a formula may want to know.
#[derive(Clone, Copy, Debug)]
pub struct EdgeInputs {
    /// N.
    pub visits: f64,
    /// PendingLeaves in flight.
    pub in_flight: f64,
    /// W.
    pub sum: f64,
    /// P.
    pub prior: f64,
    /// What is proven, for the chooser.
    pub proven: Option<i8>,
}

/// A formula for the score of an edge at one node.
pub trait EdgeScore: Copy {
    /// The score of an edge of which nothing is proven and nothing is in flight; `mean` is W / N, and no number where N is 0.
    fn score(self, visits: f64, mean: f64, prior: f64) -> f64;

    /// The score of any edge. With `virtual_loss`, leaves in flight lower Q as if they were lost (seed 2).
    fn score_any(self, edge: EdgeInputs, virtual_loss: bool) -> f64;

    /// The raw value of the node, where the rule brings the values of its moves to a scale that the node's own is part of.
    #[inline(always)]
    fn raw(self) -> Option<f64> {
        None
    }

    /// The same rule on the scale from the lowest to the highest of these values.
    #[must_use]
    #[inline(always)]
    fn scaled(self, _low: f64, _high: f64) -> Self {
        self
    }
}

/// The rule with its scale, where it has one.
#[inline]
pub(super) fn with_scale<R: EdgeScore>(rule: R, edges: Statistics<'_>, opened: usize) -> R {
    let Some(raw) = rule.raw() else { return rule };
    let own = node_value(raw, edges, opened);
    let (mut low, mut high) = (own, own);
    for (&sum, &visits) in edges.sums.iter().zip(edges.visits).take(opened) {
        // An edge in flight for the first time has no value yet.
        let mean = if visits > 0 { sum / f64::from(visits as i32) } else { own };
        low = if mean < low { mean } else { low };
        high = if mean > high { mean } else { high };
    }
    rule.scaled(low, high)
}

/// The score of one edge.
#[inline(always)]
pub(super) fn score_one(edges: Statistics<'_>, place: usize, rule: impl EdgeScore) -> f64 {
    let visits = f64::from(edges.visits[place] as i32);
    rule.score(visits, edges.sums[place] / visits, f64::from(edges.priors[place]))
}

#[inline(always)]
pub(super) fn higher(mut a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
    for lane in 0..LANES {
        a[lane] = if b[lane] > a[lane] { b[lane] } else { a[lane] };
    }
    a
}

#[inline(always)]
pub(super) fn highest_of(group: [f64; LANES]) -> f64 {
    let [a, b, c, d] = group;
    // Halves against each other, as registers are split.
    let (first, second) = (if c > a { c } else { a }, if d > b { d } else { b });
    if second > first {
        second
    } else {
        first
    }
}

/// W / N of the edges from `at` on. Signed, because that conversion is one instruction everywhere; no edge is visited 2^31 times.
#[inline(always)]
fn means_from(edges: Statistics<'_>, at: usize) -> [f64; LANES] {
    let (visits, sums) = (&edges.visits[at..at + LANES], &edges.sums[at..at + LANES]);
    let mut means = [0.0; LANES];
    for lane in 0..LANES {
        means[lane] = sums[lane] / f64::from(visits[lane] as i32);
    }
    means
}

/// The highest score of the first `scored` edges, a bit for each that has it, and the rule with its scale; at most `GROUPS` groups
/// are scored. Numbers stay in registers where they fit: writing them and reading other config of them back costs more than the
/// arithmetic. A group that would reach beyond the last edge overlaps the one before it, so that every group is whole.
#[inline(always)]
pub(super) fn best_bits<R: EdgeScore, const GROUPS: usize>(rule: R, edges: Statistics<'_>, opened: usize, scored: usize) -> (f64, u64, R) {
    let count = edges.visits.len();
    if count < LANES {
        let rule = with_scale(rule, edges, opened);
        let mut scores = [f64::NEG_INFINITY; LANES];
        for (place, score) in scores.iter_mut().enumerate().take(scored) {
            *score = score_one(edges, place, rule);
        }
        let best = highest_of(scores);
        return (best, equal_bits(scores, best) & ((1 << scored) - 1), rule);
    }
    let last = count - LANES;
    let groups = scored.div_ceil(LANES).min(GROUPS);
    let mut means = [[0.0; LANES]; GROUPS];
    let rule = match rule.raw() {
        None => rule,
        Some(raw) => {
            let own = node_value(raw, edges, opened);
            let (mut low, mut high) = ([own; LANES], [own; LANES]);
            for (index, slot) in means.iter_mut().enumerate().take(opened.div_ceil(LANES)) {
                let at = (index * LANES).min(last);
                let found = means_from(edges, at);
                *slot = found;
                for lane in 0..LANES {
                    // No number where nobody was: such a lane changes nothing.
                    low[lane] = if found[lane] < low[lane] { found[lane] } else { low[lane] };
                    high[lane] = if found[lane] > high[lane] { found[lane] } else { high[lane] };
                }
            }
            rule.scaled(lowest_of(low), highest_of(high))
        }
    };
    let mut scores = [[f64::NEG_INFINITY; LANES]; GROUPS];
    let mut most = [f64::NEG_INFINITY; LANES];
    for index in 0..groups {
        let at = (index * LANES).min(last);
        let mean = if rule.raw().is_some() && index * LANES < opened { means[index] } else { means_from(edges, at) };
        let (visits, priors) = (&edges.visits[at..at + LANES], &edges.priors[at..at + LANES]);
        let mut found = [0.0; LANES];
        for lane in 0..LANES {
            let score = rule.score(f64::from(visits[lane] as i32), mean[lane], f64::from(priors[lane]));
            found[lane] = if at + lane < scored { score } else { f64::NEG_INFINITY };
        }
        scores[index] = found;
        most = higher(most, found);
    }
    let best = highest_of(most);
    let mut equal = 0;
    for (index, found) in scores.iter().enumerate().take(groups) {
        equal |= equal_bits(*found, best) << (index * LANES).min(last);
    }
    // Where all are minus infinity, lanes beyond the last edge are too.
    (best, if scored < FEW { equal & ((1 << scored) - 1) } else { equal }, rule)
}

/// The same where one group is all that was tried, which is what most nodes have: straight on, without a loop.
#[inline(always)]
pub(super) fn best_of_group<R: EdgeScore>(rule: R, edges: Statistics<'_>, opened: usize) -> (f64, u64, R) {
    let (n, sums, priors) = (&edges.visits[..LANES], &edges.sums[..LANES], &edges.priors[..LANES]);
    let (mut visits, mut means) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        visits[lane] = f64::from(n[lane] as i32);
        means[lane] = sums[lane] / visits[lane];
    }
    let rule = match rule.raw() {
        None => rule,
        Some(raw) => {
            // Edges never tried add 0 to both, which changes neither.
            let sum = sums.iter().fold(0.0, |sum, value| sum + value);
            let own = (raw + sum) / (1.0 + f64::from(n.iter().sum::<u32>()));
            let (mut low, mut high) = ([own; LANES], [own; LANES]);
            for lane in 0..LANES {
                low[lane] = if means[lane] < own { means[lane] } else { own };
                high[lane] = if means[lane] > own { means[lane] } else { own };
            }
            rule.scaled(lowest_of(low), highest_of(high))
        }
    };
    let mut scores = [f64::NEG_INFINITY; LANES];
    for lane in 0..LANES {
        let score = rule.score(visits[lane], means[lane], f64::from(priors[lane]));
        scores[lane] = if lane < opened { score } else { f64::NEG_INFINITY };
    }
    let best = highest_of(scores);
    (best, equal_bits(scores, best) & ((1 << opened) - 1), rule)
}

#[inline(always)]
fn lowest_of(group: [f64; LANES]) -> f64 {
    let [a, b, c, d] = group;
    let (first, second) = (if c < a { c } else { a }, if d < b { d } else { b });
    if second < first {
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
