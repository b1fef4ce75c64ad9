//! Draws from the symmetric Dirichlet distribution: gamma variates over their sum. Action spaces may be large, and most variates have
//! shapes below 1: those are made several at a time.

use crate::runtime::random::Random;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;
use crate::runtime::vector_math;

/// From this concentration on no gamma variate is too small for a float: the least uniform number is 2^-53, and 1/alpha its power.
const NONE_VANISHES: f64 = 0.1;
/// A smaller concentration than this is taken for it: logarithms of variates would be infinite, and the draw has one weight anyway.
const LEAST: f64 = 1e-300;
/// So many variates are tried at a time, at most.
const MOST_TRIES: usize = 64;

/// Nothing yet.
const ZEROS: [f64; MOST_TRIES] = [0.0; MOST_TRIES];

/// Tries under way.
#[derive(Clone, Copy)]
struct Room {
    /// Two uniform numbers, the first up to 1 + alpha / e.
    p: [f64; MOST_TRIES],
    u: [f64; MOST_TRIES],
    /// What they propose, and its logarithm.
    x: [f64; MOST_TRIES],
    log: [f64; MOST_TRIES],
    /// What the second may be at most.
    limit: [f64; MOST_TRIES],
}

/// Draws `count` weights into `weights`, each of concentration `alpha`; in logarithms where some would vanish.
pub(crate) fn dirichlet(alpha: f64, count: usize, random: &mut Random, weights: &mut Vec<f64>) {
    weights.clear();
    let alpha = alpha.max(LEAST);
    if alpha >= 1.0 {
        weights.extend((0..count).map(|_| gamma_variate(alpha, random)));
    } else {
        weights.resize(count, 0.0);
        variates_below_one(alpha, random, weights);
    }
    if alpha < NONE_VANISHES {
        let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|weight| *weight = vector_math::exp(*weight - most));
    }
    let total = weights.iter().fold(0.0, |total, weight| total + weight);
    weights.iter_mut().for_each(|weight| *weight /= total);
}

/// A gamma variate of a shape of 1 or more (Marsaglia & Tsang 2000).
fn gamma_variate(alpha: f64, random: &mut Random) -> f64 {
    let d = alpha - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = 1.0 - random.uniform();
        if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// A standard normal number (Box & Muller 1958; the second of the pair is not used, to keep the stream simple).
fn normal(random: &mut Random) -> f64 {
    let u = 1.0 - random.uniform();
    let v = random.uniform();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Gamma variates of a shape below 1, or their logarithms where some would vanish (Ahrens & Dieter 1974, algorithm GS).
fn variates_below_one(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the processor has just been seen to have what this form is compiled for.
        return unsafe { below_one_wide(alpha, random, variates) };
    }
    below_one(alpha, random, variates);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn below_one_wide(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    below_one(alpha, random, variates);
}

/// Two uniform numbers make a try, whether it succeeds or not: so tries can be made side by side, and taken in their order.
#[inline(always)]
fn below_one(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    let b = 1.0 + alpha / std::f64::consts::E;
    let mut room = Room { p: ZEROS, u: ZEROS, x: ZEROS, log: ZEROS, limit: ZEROS };
    let mut beyond = room;
    let mut places = [0; MOST_TRIES];
    let mut found = 0;
    while found < variates.len() {
        // Most of them succeed.
        let left = variates.len() - found;
        let tries = (left + left / 4 + 2).min(MOST_TRIES);
        for place in 0..tries {
            room.p[place] = b * (1.0 - random.uniform_ahead(2 * place as u64));
            room.u[place] = 1.0 - random.uniform_ahead(2 * place as u64 + 1);
        }
        // One function after another: processors see only so far ahead, and one number waits for its own steps.
        for place in 0..tries {
            room.log[place] = vector_math::ln(room.p[place]) / alpha;
        }
        for place in 0..tries {
            room.x[place] = vector_math::exp(room.log[place]);
        }
        for place in 0..tries {
            room.limit[place] = vector_math::exp(-room.x[place]);
        }
        // Few are beyond 1, where the exponential proposes and the power decides.
        let mut count = 0;
        for place in 0..tries {
            places[count] = place;
            beyond.p[count] = room.p[place];
            count += usize::from(room.p[place] > 1.0);
        }
        for place in 0..count {
            let share = (b - beyond.p[place]) / alpha;
            beyond.x[place] = -vector_math::ln(share);
            beyond.log[place] = vector_math::ln(beyond.x[place]);
            beyond.limit[place] = vector_math::exp((alpha - 1.0) * beyond.log[place]) * f64::from(u8::from(share > 0.0));
        }
        for (own, &place) in places[..count].iter().enumerate() {
            (room.x[place], room.log[place], room.limit[place]) = (beyond.x[own], beyond.log[own], beyond.limit[own]);
        }
        let drawn = if alpha < NONE_VANISHES { &room.log } else { &room.x };
        let mut used = 0;
        while used < tries && found < variates.len() {
            variates[found] = drawn[used];
            found += usize::from(room.u[used] <= room.limit[used]);
            used += 1;
        }
        random.skip(2 * used as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random::Purpose;

    #[test]
    fn a_draw_is_a_distribution() {
        let mut random = Random::new(5, Purpose::Noise);
        for alpha in [5e-324, 1e-300, 0.003, 0.03, 0.3, 1.0, 10.0] {
            let mut draw = Vec::new();
            dirichlet(alpha, 30, &mut random, &mut draw);
            assert!((draw.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(draw.iter().all(|&weight| (0.0..=1.0).contains(&weight)), "{alpha}: {draw:?}");
        }
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        // Mean 1/k and variance (k - 1) / (k^2 (k alpha + 1)) of each component.
        let mut random = Random::new(6, Purpose::Noise);
        for (alpha, count) in [(0.03f64, 3usize), (0.3, 7), (0.9, 5), (1.0, 4), (5.0, 3)] {
            let mut draw = Vec::new();
            let mut first = || {
                dirichlet(alpha, count, &mut random, &mut draw);
                draw[0]
            };
            let draws: Vec<f64> = (0..20_000).map(|_| first()).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            let k = count as f64;
            assert!((mean - 1.0 / k).abs() < 0.01, "{alpha} {mean}");
            let expected = (k - 1.0) / (k * k * (k * alpha + 1.0));
            assert!((variance / expected - 1.0).abs() < 0.06, "{alpha} {variance} {expected}");
        }
    }
}
