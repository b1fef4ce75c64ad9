//! Choosing among edges by a formula, several edges at a time, on registers that hold as many numbers.

use super::Context;
use crate::random::Random;
use crate::tree::{Edges, Statistics};

/// Edges are scored this many at a time.
pub(super) const LANES: usize = 4;

/// Up to so many edges, a word has a bit for each.
const FEW: usize = 64;
/// Up to so many edges, or where half of them have been tried, it is cheaper to score all of them than to look for the one
/// untried move worth it.
const VERY_FEW: usize = 16;

/// An edge with all that a formula may want to know.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// N.
    pub visits: f64,
    /// Leaves in flight.
    pub flying: f64,
    /// W.
    pub sum: f64,
    /// P.
    pub prior: f64,
    /// What is proven, for the chooser.
    pub proven: Option<i8>,
}

/// A formula for the score of an edge at one node.
pub trait Rule: Copy {
    /// The score of an edge of which nothing is proven and nothing is in flight.
    fn score(self, visits: f64, sum: f64, prior: f64) -> f64;

    /// The score of any edge. With `virtual_loss`, leaves in flight lower Q as if they were lost (seed 2).
    fn score_any(self, edge: Candidate, virtual_loss: bool) -> f64;
}

/// The place of the best edge where nothing is proven and nothing in flight; ties by `random`. The first `opened` were tried.
/// Untried moves share one Q and have no visits, so among many of them only the one with the highest prior can win: it alone
/// is scored. `scratch` has room for one group more than there are edges.
#[inline]
pub fn choose<R: Rule>(rule: R, edges: Statistics<'_>, opened: usize, scratch: &mut [f64], random: &mut Random) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("bmi1") && has!("popcnt") {
            #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
            // SAFETY: the processor has just been seen to have what this form is compiled for.
            return unsafe { choose_wide(rule, edges, opened, scratch, random) };
        }
    }
    choose_any(rule, edges, opened, scratch, random)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn choose_wide<R: Rule>(rule: R, edges: Statistics<'_>, opened: usize, scratch: &mut [f64], random: &mut Random) -> usize {
    choose_any(rule, edges, opened, scratch, random)
}

#[inline(always)]
fn choose_any<R: Rule>(rule: R, edges: Statistics<'_>, opened: usize, scratch: &mut [f64], random: &mut Random) -> usize {
    let count = edges.visits.len();
    if count <= VERY_FEW || (count <= FEW && 2 * opened >= count) {
        return pick(rule, edges, scratch, random);
    }
    let scores = &mut scratch[..count];
    let best = score_in_groups(rule, edges, &mut scores[..opened]);
    let untried = &edges.priors[opened..];
    let prior = highest_prior(untried);
    if opened == count || rule.score(0.0, 0.0, f64::from(prior)) < best {
        return one_of_the_highest(&scores[..opened], best, random);
    }
    // An untried move wins or draws level; small priors may round to the same score, so each has a say.
    for (score, &prior) in scores[opened..].iter_mut().zip(untried) {
        *score = rule.score(0.0, 0.0, f64::from(prior));
    }
    highest(scores, random)
}

/// The highest of priors, which are not negative.
#[inline(always)]
fn highest_prior(priors: &[f32]) -> f32 {
    let mut most = [0.0f32; 2 * LANES];
    let groups = priors.chunks_exact(2 * LANES);
    let rest = groups.remainder();
    for group in groups {
        for lane in 0..2 * LANES {
            most[lane] = if group[lane] > most[lane] { group[lane] } else { most[lane] };
        }
    }
    most.iter().chain(rest).fold(0.0, |best, &prior| if prior > best { prior } else { best })
}

/// The place of the best edge, whatever is proven or in flight; `scores` receives every score. A proven loss gets minus
/// infinity unless all are.
pub fn choose_among_any<R: Rule>(rule: R, edges: &Edges<'_>, context: Context, scores: &mut [f64], random: &mut Random) -> usize {
    let all_lost = edges.links.iter().all(|link| link.is_loss());
    let scores = &mut scores[..edges.visits.len()];
    for (place, score) in scores.iter_mut().enumerate() {
        let edge = Candidate {
            visits: f64::from(edges.visits[place]),
            flying: edges.in_flight.get(place).map_or(0.0, |&count| f64::from(count)),
            sum: edges.sums[place],
            prior: f64::from(edges.priors[place]),
            proven: edges.links[place].proven(),
        };
        *score = if edge.proven == Some(-1) && !all_lost { f64::NEG_INFINITY } else { rule.score_any(edge, context.virtual_loss) };
    }
    highest(scores, random)
}

/// The scores of the edges from `at` on, as many as a register holds.
#[inline(always)]
fn group(edges: Statistics<'_>, at: usize, rule: impl Rule) -> [f64; LANES] {
    let (visits, sums, priors) = (&edges.visits[at..at + LANES], &edges.sums[at..at + LANES], &edges.priors[at..at + LANES]);
    // Signed, because that conversion is one instruction everywhere; no edge is visited 2^31 times.
    let mut scores = [0.0; LANES];
    for lane in 0..LANES {
        scores[lane] = rule.score(f64::from(visits[lane] as i32), sums[lane], f64::from(priors[lane]));
    }
    scores
}

/// The score of one edge.
#[inline(always)]
fn alone(edges: Statistics<'_>, place: usize, rule: impl Rule) -> f64 {
    rule.score(f64::from(edges.visits[place] as i32), edges.sums[place], f64::from(edges.priors[place]))
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

/// The place of the best edge by `rule`, of at most 64; among equals, each with the same chance. Scores stay in registers
/// where they fit: writing them and reading other parts of them back costs more than the arithmetic. The last group overlaps
/// the one before it, so that every group is whole.
#[inline(always)]
fn pick(rule: impl Rule, edges: Statistics<'_>, scratch: &mut [f64], random: &mut Random) -> usize {
    let count = edges.visits.len();
    let best = if count < LANES {
        let mut scores = [f64::NEG_INFINITY; LANES];
        for (place, score) in scores.iter_mut().enumerate().take(count) {
            *score = alone(edges, place, rule);
        }
        equal_bits(scores, highest_of(scores)) & ((1 << count) - 1)
    } else {
        let last = count - LANES;
        let mut most = [f64::NEG_INFINITY; LANES];
        for (index, scores) in scratch.chunks_exact_mut(LANES).enumerate().take(count.div_ceil(LANES)) {
            let found = group(edges, (index * LANES).min(last), rule);
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
fn score_in_groups(rule: impl Rule, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    let count = scores.len();
    let mut best = [f64::NEG_INFINITY; LANES];
    let whole = count - count % LANES;
    for at in (0..whole).step_by(LANES) {
        let found = group(edges, at, rule);
        scores[at..at + LANES].copy_from_slice(&found);
        best = higher(best, found);
    }
    for (place, slot) in scores.iter_mut().enumerate().skip(whole) {
        let score = alone(edges, place, rule);
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
