//! Choosing among edges by a formula, several edges at a time, on registers that hold as many numbers.

use super::argmax::{best_bits, best_of_group, higher, highest_of, score_one, with_scale, FEW, LANES};
pub use super::argmax::{EdgeInputs, EdgeScore};
use super::Context;
use crate::runtime::random::Random;
use crate::tree::{Edges, Statistics};

/// Up to so many edges all are scored, tried or not.
const VERY_FEW: usize = LANES - 1;

/// Whether a choice among so many edges wants to know the highest prior of an untried one.
#[inline]
pub fn needs_max_untried(count: usize) -> bool {
    count > VERY_FEW
}

/// Room for the scores of so many edges.
#[inline]
pub fn make_room(scores: &mut Vec<f64>, count: usize) {
    if scores.len() < count {
        scores.resize(count, f64::NEG_INFINITY);
    }
}

/// The place of the best edge where nothing is proven and nothing in flight; ties by `random`. The first `opened` were tried.
/// Untried moves share one Q and have no visits, so among many of them only the one with the highest prior, `untried`, can win; only
/// if it does are the others looked at.
#[inline(always)]
pub fn choose<R: EdgeScore>(
    rule: R,
    edges: Statistics<'_>,
    opened: usize,
    untried: f32,
    scratch: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let count = edges.visits.len();
    if count <= VERY_FEW {
        let (_, bits, _) = best_bits::<R, 2>(rule, edges, opened, count);
        return one_of(bits, random);
    }
    let (best, bits, rule) = match opened {
        0..=LANES => best_of_group(rule, edges, opened),
        5..=8 => best_bits::<R, 2>(rule, edges, opened, opened),
        9..=16 => best_bits::<R, 4>(rule, edges, opened, opened),
        17..=FEW => best_bits::<R, 16>(rule, edges, opened, opened),
        _ => return choose_among_many(rule, edges, opened, untried, scratch, random),
    };
    if opened == count {
        return one_of(bits, random);
    }
    let score = rule.score(0.0, f64::NAN, f64::from(untried));
    if score < best {
        return one_of(bits, random);
    }
    // An untried move wins or draws level.
    let bits = if score > best { 0 } else { bits };
    one_of_untried(rule, &edges.priors[opened..], score, bits, opened, random)
}

/// One of the tried edges of `bits` or of the untried ones whose score is `score`: small priors may round to the same score as the
/// highest, so each of them has a say.
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

/// The same where more edges than a word has bits were tried.
#[inline(never)]
fn choose_among_many<R: EdgeScore>(
    rule: R,
    edges: Statistics<'_>,
    opened: usize,
    untried: f32,
    scratch: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let rule = with_scale(rule, edges, opened);
    let count = edges.visits.len();
    make_room(scratch, count);
    let scores = &mut scratch[..count];
    let best = score_in_groups(rule, edges, &mut scores[..opened]);
    if opened == count || rule.score(0.0, f64::NAN, f64::from(untried)) < best {
        return one_of_the_highest(&scores[..opened], best, random);
    }
    for (score, &prior) in scores[opened..].iter_mut().zip(&edges.priors[opened..]) {
        *score = rule.score(0.0, f64::NAN, f64::from(prior));
    }
    highest(scores, random)
}

/// The place of the best edge, whatever is proven or in flight; `scores` receives every score. A proven loss gets minus
/// infinity unless all are.
#[cold]
#[inline(never)]
pub fn choose_general<R: EdgeScore>(
    rule: R,
    edges: &Edges<'_>,
    opened: usize,
    context: Context,
    scores: &mut Vec<f64>,
    random: &mut Random,
) -> usize {
    let rule = with_scale(rule, edges.statistics(), opened);
    make_room(scores, edges.visits.len());
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
        *score = if edge.proven == Some(-1) && !all_lost { f64::NEG_INFINITY } else { rule.score_any(edge, context.virtual_loss) };
    }
    highest(scores, random)
}

/// The scores of the edges from `at` on, as many as a register holds.
#[inline(always)]
fn group(edges: Statistics<'_>, at: usize, rule: impl EdgeScore) -> [f64; LANES] {
    let (visits, sums, priors) = (&edges.visits[at..at + LANES], &edges.sums[at..at + LANES], &edges.priors[at..at + LANES]);
    let mut scores = [0.0; LANES];
    for lane in 0..LANES {
        let visits = f64::from(visits[lane] as i32);
        scores[lane] = rule.score(visits, sums[lane] / visits, f64::from(priors[lane]));
    }
    scores
}

/// The place of a bit; among several, each with the same chance. 0 where there is none.
#[inline(always)]
fn one_of(bits: u64, random: &mut Random) -> usize {
    if bits & bits.wrapping_sub(1) != 0 {
        let skipped = random.below(bits.count_ones());
        return nth_bit(bits, skipped);
    }
    bits.trailing_zeros() as usize & 63
}

/// The place of a bit after `skipped` others.
#[inline(always)]
fn nth_bit(mut bits: u64, skipped: u32) -> usize {
    // Without a branch on what is random: eight steps cost less than one wrong guess.
    for step in 0..2 * LANES as u32 {
        bits = if step < skipped { bits & bits.wrapping_sub(1) } else { bits };
    }
    for _ in 2 * LANES as u32..skipped {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros() as usize & 63
}

/// Scores edges in groups, as above, into `scores`, as many as it has places; the highest score.
#[inline(always)]
fn score_in_groups(rule: impl EdgeScore, edges: Statistics<'_>, scores: &mut [f64]) -> f64 {
    let count = scores.len();
    let mut best = [f64::NEG_INFINITY; LANES];
    let whole = count - count % LANES;
    for at in (0..whole).step_by(LANES) {
        let found = group(edges, at, rule);
        scores[at..at + LANES].copy_from_slice(&found);
        best = higher(best, found);
    }
    for (place, slot) in scores.iter_mut().enumerate().skip(whole) {
        let score = score_one(edges, place, rule);
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
    use crate::runtime::random::Purpose;

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

    /// As simple as can be: Q and prior for what was tried, the prior score_one for the rest, brought to the scale of what was tried.
    #[derive(Clone, Copy)]
    struct Plain(Option<f64>, f64, f64);

    impl EdgeScore for Plain {
        fn score(self, visits: f64, mean: f64, prior: f64) -> f64 {
            let exploit = if visits > 0.0 { (mean - self.1) / self.2 } else { 0.0 };
            exploit + prior / (1.0 + visits)
        }

        fn score_any(self, edge: EdgeInputs, _virtual_loss: bool) -> f64 {
            self.score(edge.visits, edge.sum / edge.visits, edge.prior)
        }

        fn raw(self) -> Option<f64> {
            self.0
        }

        fn scaled(self, low: f64, high: f64) -> Self {
            Self(self.0, low, (high - low).max(1e-8))
        }
    }

    #[test]
    fn the_short_way_chooses_what_scoring_every_edge_would() {
        let mut random = Random::new(11, Purpose::Select);
        for round in 0..20_000u32 {
            let count = 1 + random.below(if round % 4 == 0 { 150 } else { 20 }) as usize;
            let opened = random.below(count as u32 + 1) as usize;
            // Few different numbers, so that many are level.
            let visits: Vec<u32> = (0..count).map(|place| if place < opened { 1 + random.below(3) } else { 0 }).collect();
            let sums: Vec<f64> = visits.iter().map(|&n| f64::from(n) * (f64::from(random.below(5)) / 4.0)).collect();
            let priors: Vec<f32> = (0..count).map(|_| random.below(4) as f32 / 4.0).collect();
            let edges = Statistics { sums: &sums, visits: &visits, priors: &priors };
            let untried = priors[opened..].iter().fold(0.0f32, |most, &prior| most.max(prior));
            let rule = Plain((round % 2 == 0).then_some(0.25), 0.0, 1.0);
            let scaled = with_scale(rule, edges, opened);
            let scores: Vec<f64> = (0..count).map(|place| score_one(edges, place, scaled)).collect();
            let (mut short, mut long) = (random.clone(), random.clone());
            let place = choose(rule, edges, opened, untried, &mut Vec::new(), &mut short);
            assert_eq!(place, highest(&scores, &mut long), "{opened} of {count} tried: {scores:?}");
            assert_eq!(short.next_u64(), long.next_u64(), "and draws as much");
            random.next_u64();
        }
    }
}
