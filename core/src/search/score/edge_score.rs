//! The formula of an edge's score, and the argmax over at most 64 edges by SIMD groups: the most expensive part of selection.

use super::mean_with;
use crate::tree::Statistics;

/// Edges per group.
pub(super) const LANES: usize = 4;

/// Number of edges that fit a 64-bit mask.
pub(super) const MASK_BITS: usize = 64;

/// Everything a formula may need of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeInputs {
    /// N.
    pub visits: f64,
    /// Leaves in flight.
    pub in_flight: f64,
    /// W.
    pub sum: f64,
    /// P.
    pub prior: f64,
    /// The proven result for the chooser.
    pub proven: Option<i8>,
}

impl EdgeInputs {
    /// Returns the proven result, else W / N without leaves in flight; None without visits.
    pub(super) fn mean(self) -> Option<f64> {
        self.proven.map(f64::from).or_else(|| (self.visits > 0.0).then(|| self.sum / self.visits))
    }
}

/// A formula for the score of an edge at one node.
pub(super) trait EdgeScore: Copy {
    /// Returns the score of an edge with N, W / N (NaN if N = 0) and P. It must not fall as P rises where N = 0: of the
    /// untried edges only the one with the highest prior is compared.
    fn score(self, visits: f64, mean: f64, prior: f64) -> f64;

    /// Returns the score of an edge that may be proven, or have leaves in flight: they count as visits, as losses too with
    /// `virtual_loss`.
    fn score_general(self, edge: EdgeInputs, virtual_loss: bool) -> f64 {
        let visits = edge.visits + edge.in_flight;
        let mean = match edge.proven {
            Some(value) => f64::from(value),
            None if virtual_loss => (edge.sum - edge.in_flight) / visits,
            None => edge.sum / visits,
        };
        self.score(visits, mean, edge.prior)
    }

    /// Returns the node's raw value, if the rule normalises values per node.
    #[inline(always)]
    fn normalization_value(self) -> Option<f64> {
        None
    }

    /// Returns the rule normalised to the span from `low` to `high`.
    #[must_use]
    #[inline(always)]
    fn scaled(self, _low: f64, _high: f64) -> Self {
        self
    }
}

/// Normalises the rule by the values of the node, if it has a `normalization_value`.
#[inline]
pub(super) fn with_scale<R: EdgeScore>(rule: R, edges: Statistics<'_>, opened: usize) -> R {
    let Some(raw) = rule.normalization_value() else { return rule };
    let own = mean_with(raw, edges, opened);
    let (mut low, mut high) = (own, own);
    for (&sum, &visits) in edges.sums.iter().zip(edges.visits).take(opened) {
        // An edge whose first visit is in flight has no value.
        let mean = if visits > 0 { sum / f64::from(visits as i32) } else { own };
        low = if mean < low { mean } else { low };
        high = if mean > high { mean } else { high };
    }
    rule.scaled(low, high)
}

/// Returns the score of one edge.
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
pub(super) fn horizontal_max(group: [f64; LANES]) -> f64 {
    let [a, b, c, d] = group;
    // In halves, as AVX2 reduces registers.
    let (first, second) = (if c > a { c } else { a }, if d > b { d } else { b });
    if second > first {
        second
    } else {
        first
    }
}

/// Returns W / N of a group from `at` on. The conversion is signed: one instruction on every CPU, and N < 2^31.
#[inline(always)]
fn means_from(edges: Statistics<'_>, at: usize) -> [f64; LANES] {
    let (visits, sums) = (&edges.visits[at..at + LANES], &edges.sums[at..at + LANES]);
    let mut means = [0.0; LANES];
    for lane in 0..LANES {
        means[lane] = sums[lane] / f64::from(visits[lane] as i32);
    }
    means
}

/// Returns the highest score of the first `scored` edges, a mask of the edges that have it, and the normalised rule. Scores at most
/// `GROUPS` groups, in registers where they fit: storing and reloading them in other widths would cost more than the arithmetic.
/// The last group overlaps the one before it instead of reaching beyond the last edge.
#[inline(always)]
pub(super) fn argmax_mask<R: EdgeScore, const GROUPS: usize>(
    rule: R,
    edges: Statistics<'_>,
    opened: usize,
    scored: usize,
) -> (f64, u64, R) {
    let count = edges.visits.len();
    if count < LANES {
        let rule = with_scale(rule, edges, opened);
        let mut scores = [f64::NEG_INFINITY; LANES];
        for (place, score) in scores.iter_mut().enumerate().take(scored) {
            *score = score_one(edges, place, rule);
        }
        let best = horizontal_max(scores);
        return (best, equal_bits(scores, best) & ((1 << scored) - 1), rule);
    }
    let last = count - LANES;
    let groups = scored.div_ceil(LANES).min(GROUPS);
    let mut means = [[0.0; LANES]; GROUPS];
    let rule = match rule.normalization_value() {
        None => rule,
        Some(raw) => {
            let own = mean_with(raw, edges, opened);
            let (mut low, mut high) = ([own; LANES], [own; LANES]);
            for (index, slot) in means.iter_mut().enumerate().take(opened.div_ceil(LANES)) {
                let at = (index * LANES).min(last);
                let found = means_from(edges, at);
                *slot = found;
                for lane in 0..LANES {
                    // NaN where N = 0: the comparison leaves the bounds unchanged.
                    low[lane] = if found[lane] < low[lane] { found[lane] } else { low[lane] };
                    high[lane] = if found[lane] > high[lane] { found[lane] } else { high[lane] };
                }
            }
            rule.scaled(horizontal_min(low), horizontal_max(high))
        }
    };
    let mut scores = [[f64::NEG_INFINITY; LANES]; GROUPS];
    let mut most = [f64::NEG_INFINITY; LANES];
    for index in 0..groups {
        let at = (index * LANES).min(last);
        let mean = if rule.normalization_value().is_some() && index * LANES < opened { means[index] } else { means_from(edges, at) };
        let (visits, priors) = (&edges.visits[at..at + LANES], &edges.priors[at..at + LANES]);
        let mut found = [0.0; LANES];
        for lane in 0..LANES {
            let score = rule.score(f64::from(visits[lane] as i32), mean[lane], f64::from(priors[lane]));
            found[lane] = if at + lane < scored { score } else { f64::NEG_INFINITY };
        }
        scores[index] = found;
        most = higher(most, found);
    }
    let best = horizontal_max(most);
    let mut equal = 0;
    for (index, found) in scores.iter().enumerate().take(groups) {
        equal |= equal_bits(*found, best) << (index * LANES).min(last);
    }
    // If all scores are -inf, lanes beyond the last edge match too.
    (best, if scored < MASK_BITS { equal & ((1 << scored) - 1) } else { equal }, rule)
}

/// `argmax_mask` for at most one group of opened edges, which most nodes have: without a loop.
#[inline(always)]
pub(super) fn argmax_mask_of_group<R: EdgeScore>(rule: R, edges: Statistics<'_>, opened: usize) -> (f64, u64, R) {
    let (n, sums, priors) = (&edges.visits[..LANES], &edges.sums[..LANES], &edges.priors[..LANES]);
    let (mut visits, mut means) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        visits[lane] = f64::from(n[lane] as i32);
        means[lane] = sums[lane] / visits[lane];
    }
    let rule = match rule.normalization_value() {
        None => rule,
        Some(raw) => {
            // Untried edges add 0 to both.
            let sum = sums.iter().fold(0.0, |sum, value| sum + value);
            let own = (raw + sum) / (1.0 + f64::from(n.iter().sum::<u32>()));
            let (mut low, mut high) = ([own; LANES], [own; LANES]);
            for lane in 0..LANES {
                low[lane] = if means[lane] < own { means[lane] } else { own };
                high[lane] = if means[lane] > own { means[lane] } else { own };
            }
            rule.scaled(horizontal_min(low), horizontal_max(high))
        }
    };
    let mut scores = [f64::NEG_INFINITY; LANES];
    for lane in 0..LANES {
        let score = rule.score(visits[lane], means[lane], f64::from(priors[lane]));
        scores[lane] = if lane < opened { score } else { f64::NEG_INFINITY };
    }
    let best = horizontal_max(scores);
    (best, equal_bits(scores, best) & ((1 << opened) - 1), rule)
}

#[inline(always)]
fn horizontal_min(group: [f64; LANES]) -> f64 {
    let [a, b, c, d] = group;
    let (first, second) = (if c < a { c } else { a }, if d < b { d } else { b });
    if second < first {
        second
    } else {
        first
    }
}

/// Returns the mask of scores equal to `best`.
#[inline(always)]
fn equal_bits(group: [f64; LANES], best: f64) -> u64 {
    let mut bits = 0;
    for (lane, &score) in group.iter().enumerate() {
        bits |= u64::from(score == best) << lane;
    }
    bits
}
