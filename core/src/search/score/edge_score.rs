//! The formula of an edge's score, and the argmax over at most 64 edges by SIMD groups: the most expensive part of selection.

use super::mean_with;
use crate::runtime::lanes::{Group, Lanes, Number, Portable, LANES};
use crate::tree::Statistics;

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
    fn score<N: Number>(self, visits: N, mean: N, prior: N) -> N;

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

/// N, W / N and P of a group of edges.
#[derive(Clone, Copy)]
struct GroupInputs<G> {
    visits: G,
    mean: G,
    prior: G,
}

/// Returns four numbers from `at` on.
#[inline(always)]
fn four<T>(numbers: &[T], at: usize) -> &[T; LANES] {
    numbers[at..].first_chunk().expect("four numbers from here on")
}

impl<G: Group> GroupInputs<G> {
    /// Loads the group from `at` on.
    #[inline(always)]
    fn load(lanes: impl Lanes<Group = G>, edges: Statistics<'_>, at: usize) -> Self {
        let visits = lanes.convert(four(edges.visits, at));
        Self { visits, mean: lanes.load(four(edges.sums, at)) / visits, prior: lanes.widen(four(edges.priors, at)) }
    }

    #[inline(always)]
    fn score(self, rule: impl EdgeScore) -> G {
        rule.score(self.visits, self.mean, self.prior)
    }
}

/// Normalises the rule by `own`, the value of the node, and the means of groups of its edges, NaN where N = 0.
#[inline(always)]
fn scaled_by<R: EdgeScore, G: Group>(rule: R, own: G, groups: &[GroupInputs<G>]) -> R {
    let (mut low, mut high) = (own, own);
    for group in groups {
        (low, high) = (low.lower(group.mean), high.higher(group.mean));
    }
    rule.scaled(low.horizontal_min(), high.horizontal_max())
}

/// Returns the score of the group from `at` on.
#[inline(always)]
pub(super) fn score_group<L: Lanes>(lanes: L, rule: impl EdgeScore, edges: Statistics<'_>, at: usize) -> L::Group {
    GroupInputs::load(lanes, edges, at).score(rule)
}

/// Returns the highest score of the first `scored` edges of less than a group, and a mask of the edges that have it.
#[inline(always)]
pub(super) fn argmax_mask_of_few<R: EdgeScore>(rule: R, edges: Statistics<'_>, opened: usize, scored: usize) -> (f64, u64, R) {
    let rule = with_scale(rule, edges, opened);
    let mut scores = [f64::NEG_INFINITY; LANES];
    for (place, score) in scores.iter_mut().enumerate().take(scored) {
        *score = score_one(edges, place, rule);
    }
    let scores = Portable.load(&scores);
    let best = scores.horizontal_max();
    (best, scores.equal(best) & ((1 << scored) - 1), rule)
}

/// Returns the highest score of the `opened` edges, a mask of the edges that have it, and the normalised rule. Scores at most
/// `GROUPS` groups, in registers where they fit: storing and reloading them in other widths would cost more than the arithmetic.
/// The last group overlaps the one before it instead of reaching beyond the last edge.
#[inline(always)]
pub(super) fn argmax_mask<L: Lanes, R: EdgeScore, const GROUPS: usize>(
    lanes: L,
    rule: R,
    edges: Statistics<'_>,
    opened: usize,
) -> (f64, u64, R) {
    let last = edges.visits.len() - LANES;
    let groups = opened.div_ceil(LANES).min(GROUPS);
    let at = |group: usize| (group * LANES).min(last);
    let rule = match rule.normalization_value() {
        None => rule,
        Some(raw) => {
            let own = lanes.splat(mean_with(raw, edges, opened));
            let (mut low, mut high) = (own, own);
            for group in 0..groups {
                let mean = GroupInputs::load(lanes, edges, at(group)).mean;
                (low, high) = (low.lower(mean), high.higher(mean));
            }
            rule.scaled(low.horizontal_min(), high.horizontal_max())
        }
    };
    let mut scores = [lanes.splat(f64::NEG_INFINITY); GROUPS];
    let mut most = lanes.splat(f64::NEG_INFINITY);
    for (group, slot) in scores.iter_mut().enumerate().take(groups) {
        *slot = score_group(lanes, rule, edges, at(group)).first(opened - at(group));
        most = most.higher(*slot);
    }
    let best = most.horizontal_max();
    let mut equal = 0;
    for (group, found) in scores.iter().enumerate().take(groups) {
        equal |= found.equal(best) << at(group);
    }
    // If all scores are -inf, lanes beyond the last edge match too.
    (best, if opened < MASK_BITS { equal & ((1 << opened) - 1) } else { equal }, rule)
}

/// `argmax_mask` for at most one group of opened edges, which most nodes have: without a loop.
#[inline(always)]
pub(super) fn argmax_mask_of_group<R: EdgeScore>(lanes: impl Lanes, rule: R, edges: Statistics<'_>, opened: usize) -> (f64, u64, R) {
    let group = GroupInputs::load(lanes, edges, 0);
    let rule = match rule.normalization_value() {
        None => rule,
        // Untried edges add 0 to both sums.
        Some(raw) => scaled_by(rule, lanes.splat(mean_with(raw, edges, LANES)), &[group]),
    };
    let scores = group.score(rule).first(opened);
    let best = scores.horizontal_max();
    (best, scores.equal(best) & ((1 << opened) - 1), rule)
}

/// `argmax_mask` of all edges where they fill two groups, tried or not: without a loop, and without a branch on how many are tried.
/// The second group overlaps the first one.
#[inline(always)]
pub(super) fn argmax_mask_of_two(lanes: impl Lanes, rule: impl EdgeScore, edges: Statistics<'_>) -> u64 {
    let count = edges.visits.len();
    // Without closures, which are compiled without AVX2.
    let groups = [GroupInputs::load(lanes, edges, 0), GroupInputs::load(lanes, edges, count - LANES)];
    let rule = match rule.normalization_value() {
        None => rule,
        // Untried edges add 0 to both sums.
        Some(raw) => scaled_by(rule, lanes.splat(mean_with(raw, edges, count)), &groups),
    };
    let (first, second) = (groups[0].score(rule), groups[1].score(rule));
    let best = first.higher(second).horizontal_max();
    first.equal(best) | second.equal(best) << (count - LANES)
}
