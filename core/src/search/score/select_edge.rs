//! Selection of an edge by a formula, with SIMD.

use super::edge_score::{
    argmax_mask, argmax_mask_of_few, argmax_mask_of_group, argmax_mask_of_two, score_group, score_one, with_scale, EdgeInputs, EdgeScore,
    MASK_BITS,
};
use crate::runtime::lanes::{Group, Lanes, Portable, LANES};
use crate::runtime::random::Random;
use crate::tree::{Edges, Statistics};

/// Up to this number of edges all are scored, untried ones included.
const SCORE_ALL: usize = LANES - 1;

/// Returns whether `choose` among `count` edges needs the maximum prior of the untried ones.
#[inline]
pub(super) fn needs_max_untried(count: usize) -> bool {
    !matches!(count, 0..=SCORE_ALL | 5..=8) || cfg!(feature = "ablate-masks")
}

/// Grows `scores` to at least `count` entries.
#[inline]
pub(super) fn reserve_scores(scores: &mut Vec<f64>, count: usize) {
    if scores.len() < count {
        scores.resize(count, f64::NEG_INFINITY);
    }
}

/// Returns the place of the best edge if nothing is proven or in flight; ties by `random`. The first `opened` edges are tried. The
/// untried ones share one Q and N = 0, so that only the highest prior among them, `untried`, can win; the others are scored only
/// if it does.
#[inline(always)]
pub(super) fn choose<R: EdgeScore>(
    lanes: impl Lanes,
    rule: R,
    edges: Statistics<'_>,
    opened: usize,
    untried: f32,
    scores: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let count = edges.visits.len();
    if cfg!(feature = "ablate-masks") {
        return choose_among_many(rule, edges, opened, untried, scores, random);
    }
    if count <= SCORE_ALL {
        let (_, bits, _) = argmax_mask_of_few(rule, edges, opened, count);
        return sample_bit(bits, random);
    }
    if !needs_max_untried(count) {
        return sample_bit_of_few(argmax_mask_of_two(lanes, rule, edges), random);
    }
    let (best, bits, rule) = match opened {
        0..=MASK_BITS if cfg!(feature = "ablate-ladder") => argmax_mask::<_, R, 16>(lanes, rule, edges, opened),
        0..=LANES => argmax_mask_of_group(lanes, rule, edges, opened),
        5..=8 => argmax_mask::<_, R, 2>(lanes, rule, edges, opened),
        9..=16 => argmax_mask::<_, R, 4>(lanes, rule, edges, opened),
        17..=MASK_BITS => argmax_mask::<_, R, 16>(lanes, rule, edges, opened),
        _ => return choose_among_many(rule, edges, opened, untried, scores, random),
    };
    if opened == count {
        return sample_bit(bits, random);
    }
    let score = rule.score(0.0, f64::NAN, f64::from(untried));
    if score < best {
        return sample_bit(bits, random);
    }
    // An untried move wins or ties.
    let bits = if score > best { 0 } else { bits };
    one_of_untried(rule, &edges.priors[opened..], score, bits, opened, random)
}

/// Draws one of the tried edges of `bits` and the untried ones with `score`, to which smaller priors may round as well.
#[inline(always)]
fn one_of_untried(rule: impl EdgeScore, priors: &[f32], score: f64, bits: u64, opened: usize, random: &mut Random) -> usize {
    let level = |prior: f32| rule.score(0.0, f64::NAN, f64::from(prior)) == score;
    let tried = bits.count_ones();
    let ties = priors.iter().map(|&prior| u32::from(level(prior))).sum::<u32>() + tried;
    let skipped = if ties > 1 { random.below(ties) } else { 0 };
    if skipped < tried {
        return nth_bit(bits, skipped);
    }
    let mut left = skipped - tried;
    for (place, &prior) in priors.iter().enumerate() {
        if level(prior) {
            if left == 0 {
                return opened + place;
            }
            left -= 1;
        }
    }
    0
}

/// `choose` with more opened edges than a mask has bits; compiled without AVX2.
#[inline(never)]
fn choose_among_many<R: EdgeScore>(
    rule: R,
    edges: Statistics<'_>,
    opened: usize,
    untried: f32,
    scores: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let rule = with_scale(rule, edges, opened);
    let count = edges.visits.len();
    reserve_scores(scores, count);
    let scores = &mut scores[..count];
    let best = score_in_groups(rule, edges, &mut scores[..opened]);
    if opened == count || rule.score(0.0, f64::NAN, f64::from(untried)) < best {
        return one_of_the_highest(&scores[..opened], best, random);
    }
    for (score, &prior) in scores[opened..].iter_mut().zip(&edges.priors[opened..]) {
        *score = rule.score(0.0, f64::NAN, f64::from(prior));
    }
    argmax_random_tie(scores, random)
}

/// Returns the place of the best edge in the general case, with proven results and leaves in flight. `scores` receives every score;
/// proven losses get -inf unless all are lost.
#[cold]
#[inline(never)]
pub(super) fn choose_general<R: EdgeScore>(
    rule: R,
    edges: &Edges<'_>,
    opened: usize,
    virtual_loss: bool,
    scores: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let rule = with_scale(rule, edges.statistics(), opened);
    reserve_scores(scores, edges.visits.len());
    let all_lost = edges.links.iter().all(|link| link.is_loss());
    let scores = &mut scores[..edges.visits.len()];
    for (place, score) in scores.iter_mut().enumerate() {
        let edge = EdgeInputs {
            visits: f64::from(edges.visits[place]),
            in_flight: edges.in_flight.get(place).map_or(0.0, |&count| f64::from(count)),
            sum: edges.sums[place],
            prior: f64::from(edges.priors[place]),
            proven: edges.links[place].proven(),
        };
        *score = if edge.proven == Some(-1) && !all_lost { f64::NEG_INFINITY } else { rule.score_general(edge, virtual_loss) };
    }
    argmax_random_tie(scores, random)
}

/// Draws the place of a bit uniformly; 0 without any.
#[inline(always)]
fn sample_bit(bits: u64, random: &mut Random) -> usize {
    if bits & bits.wrapping_sub(1) != 0 {
        let skipped = random.below(bits.count_ones());
        return nth_bit(bits, skipped);
    }
    bits.trailing_zeros() as usize & 63
}

/// Index of the n-th set bit of a byte.
static NTH_BIT: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut found, mut place) = (0, 0);
        while place < 8 {
            if bits >> place & 1 == 1 {
                table[bits][found] = place;
                found += 1;
            }
            place += 1;
        }
        bits += 1;
    }
    table
};

/// `sample_bit` of at most 8 bits.
#[inline(always)]
fn sample_bit_of_few(bits: u64, random: &mut Random) -> usize {
    if bits & bits.wrapping_sub(1) != 0 {
        let skipped = random.below(bits.count_ones());
        return usize::from(NTH_BIT[bits as usize & 255][skipped as usize & 7]);
    }
    bits.trailing_zeros() as usize & 63
}

/// Returns the place of the bit after `skipped` others.
#[inline(always)]
fn nth_bit(mut bits: u64, skipped: u32) -> usize {
    // Branch-free: eight steps cost less than one branch misprediction.
    for step in 0..2 * LANES as u32 {
        bits = if step < skipped { bits & bits.wrapping_sub(1) } else { bits };
    }
    for _ in 2 * LANES as u32..skipped {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros() as usize & 63
}

/// Scores the first `scores.len()` edges by groups; returns the highest score.
#[inline(always)]
fn score_in_groups(rule: impl EdgeScore, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    let whole = scores.len() - scores.len() % LANES;
    let mut most = Portable.splat(f64::NEG_INFINITY);
    for at in (0..whole).step_by(LANES) {
        let found = score_group(Portable, rule, edges, at);
        scores[at..at + LANES].copy_from_slice(&found.to_array());
        most = most.higher(found);
    }
    let mut best = most.horizontal_max();
    for (place, slot) in scores.iter_mut().enumerate().skip(whole) {
        let score = score_one(edges, place, rule);
        *slot = score;
        best = if score > best { score } else { best };
    }
    best
}

/// Returns the place of the highest score; ties are drawn uniformly.
fn argmax_random_tie(scores: &[f64], random: &mut Random) -> usize {
    let best = scores.iter().fold(f64::NEG_INFINITY, |best, &score| if score > best { score } else { best });
    one_of_the_highest(scores, best, random)
}

/// Returns the place of a score equal to `best`; ties are drawn uniformly.
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
    use crate::runtime::lanes::Number;
    use crate::runtime::random::Purpose;

    #[test]
    fn highest_score_wins_and_ties_are_uniform() {
        let mut random = Random::new(3, Purpose::Select);
        assert_eq!(argmax_random_tie(&[0.1, 0.7, 0.3], &mut random), 1);
        for size in [3usize, 64, 65, 300] {
            let mut scores = vec![0.0; size];
            scores[1] = 1.0;
            scores[size - 1] = 1.0;
            let mut seen = [0; 2];
            for _ in 0..400 {
                let place = argmax_random_tie(&scores, &mut random);
                assert!(place == 1 || place == size - 1);
                seen[usize::from(place == 1)] += 1;
            }
            assert!(seen.iter().all(|&count| count > 130), "{seen:?}");
        }
    }

    #[test]
    fn unique_maximum_draws_no_random_number() {
        let mut random = Random::new(3, Purpose::Select);
        let before = random.clone().next_u64();
        let _ = argmax_random_tie(&[0.0, 1.0], &mut random);
        assert_eq!(random.next_u64(), before);
    }

    #[test]
    fn choice_among_lost_edges_is_valid() {
        let mut random = Random::new(3, Purpose::Select);
        assert!(argmax_random_tie(&[f64::NEG_INFINITY; 3], &mut random) < 3);
    }

    /// Normalised Q plus prior; the prior alone for untried edges.
    #[derive(Clone, Copy)]
    struct Plain(Option<f64>, f64, f64);

    impl EdgeScore for Plain {
        fn score<N: Number>(self, visits: N, mean: N, prior: N) -> N {
            ((mean - mean.splat(self.1)) / mean.splat(self.2)).or(0.0) + prior / (mean.splat(1.0) + visits)
        }

        fn normalization_value(self) -> Option<f64> {
            self.0
        }

        fn scaled(self, low: f64, high: f64) -> Self {
            Self(self.0, low, (high - low).max(1e-8))
        }
    }

    #[test]
    fn simd_choice_matches_scoring_every_edge() {
        let mut random = Random::new(11, Purpose::Select);
        for round in 0..20_000u32 {
            let count = 1 + random.below(if round % 4 == 0 { 150 } else { 20 }) as usize;
            let opened = random.below(count as u32 + 1) as usize;
            // Few different values, for many ties.
            let visits: Vec<u32> = (0..count).map(|place| if place < opened { 1 + random.below(3) } else { 0 }).collect();
            let sums: Vec<f64> = visits.iter().map(|&n| f64::from(n) * (f64::from(random.below(5)) / 4.0)).collect();
            let priors: Vec<f32> = (0..count).map(|_| random.below(4) as f32 / 4.0).collect();
            let edges = Statistics { sums: &sums, visits: &visits, priors: &priors };
            let untried = priors[opened..].iter().fold(0.0f32, |most, &prior| most.max(prior));
            let rule = Plain((round % 2 == 0).then_some(0.25), 0.0, 1.0);
            let scaled = with_scale(rule, edges, opened);
            let scores: Vec<f64> = (0..count).map(|place| score_one(edges, place, scaled)).collect();
            let (mut short, mut long) = (random.clone(), random.clone());
            let place = choose(Portable, rule, edges, opened, untried, &mut Vec::new(), &mut short);
            assert_eq!(place, argmax_random_tie(&scores, &mut long), "{opened} of {count} tried: {scores:?}");
            assert_eq!(short.next_u64(), long.next_u64(), "and draws as many numbers");
            random.next_u64();
        }
    }
}
