//! Draws from the symmetric Dirichlet distribution by normalised gamma variates. Action spaces may be large and most shapes are
//! below 1: those variates are drawn in batches.

use crate::runtime::random::Random;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;
use crate::runtime::vector_math;

/// From this concentration on no gamma variate underflows: the smallest uniform number is 2^-53, raised to 1/alpha.
const NONE_VANISHES: f64 = 0.1;
/// Lower bound of the concentration: below, logarithms of variates would be infinite, and one weight dominates anyway.
const LEAST: f64 = 1e-300;
/// Upper bound of a batch of proposals.
const MOST_TRIES: usize = 64;

/// An empty batch.
const ZEROS: [f64; MOST_TRIES] = [0.0; MOST_TRIES];

/// A batch of proposals.
#[derive(Clone, Copy)]
struct Room {
    /// Two uniform numbers, the first up to 1 + alpha / e.
    p: [f64; MOST_TRIES],
    u: [f64; MOST_TRIES],
    /// The proposed variates and their logarithms.
    x: [f64; MOST_TRIES],
    log: [f64; MOST_TRIES],
    /// Upper bounds of the second number for acceptance.
    limit: [f64; MOST_TRIES],
}

/// Draws `count` weights of concentration `alpha`; in logarithms where some would underflow.
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

/// Draws a gamma variate of shape at least 1 (Marsaglia & Tsang 2000).
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

/// Draws a standard normal variate (Box & Muller 1958; the second of the pair is discarded, to keep the stream simple).
fn normal(random: &mut Random) -> f64 {
    let u = 1.0 - random.uniform();
    let v = random.uniform();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Draws gamma variates of a shape below 1, or their logarithms where some would underflow (Ahrens & Dieter 1974, algorithm
/// GS).
fn variates_below_one(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the CPU supports the target features of this function.
        return unsafe { below_one_wide(alpha, random, variates) };
    }
    below_one(alpha, random, variates);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn below_one_wide(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    below_one(alpha, random, variates);
}

/// A proposal consumes two uniform numbers whether it is accepted or not, so that proposals can be batched and used in order.
#[inline(always)]
fn below_one(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    let b = 1.0 + alpha / std::f64::consts::E;
    let mut buffers = Room { p: ZEROS, u: ZEROS, x: ZEROS, log: ZEROS, limit: ZEROS };
    let mut beyond = buffers;
    let mut places = [0; MOST_TRIES];
    let mut found = 0;
    while found < variates.len() {
        // Most proposals are accepted.
        let left = variates.len() - found;
        let tries = (left + left / 4 + 2).min(MOST_TRIES);
        for place in 0..tries {
            buffers.p[place] = b * (1.0 - random.uniform_ahead(2 * place as u64));
            buffers.u[place] = 1.0 - random.uniform_ahead(2 * place as u64 + 1);
        }
        // One loop per function: a chain of dependent steps per number would exceed the reorder buffer.
        for place in 0..tries {
            buffers.log[place] = vector_math::ln(buffers.p[place]) / alpha;
        }
        for place in 0..tries {
            buffers.x[place] = vector_math::exp(buffers.log[place]);
        }
        for place in 0..tries {
            buffers.limit[place] = vector_math::exp(-buffers.x[place]);
        }
        // Few are above 1, where the exponential proposes and the power decides.
        let mut count = 0;
        for place in 0..tries {
            places[count] = place;
            beyond.p[count] = buffers.p[place];
            count += usize::from(buffers.p[place] > 1.0);
        }
        for place in 0..count {
            let share = (b - beyond.p[place]) / alpha;
            beyond.x[place] = -vector_math::ln(share);
            beyond.log[place] = vector_math::ln(beyond.x[place]);
            beyond.limit[place] = vector_math::exp((alpha - 1.0) * beyond.log[place]) * f64::from(u8::from(share > 0.0));
        }
        for (own, &place) in places[..count].iter().enumerate() {
            (buffers.x[place], buffers.log[place], buffers.limit[place]) = (beyond.x[own], beyond.log[own], beyond.limit[own]);
        }
        let drawn = if alpha < NONE_VANISHES { &buffers.log } else { &buffers.x };
        let mut used = 0;
        while used < tries && found < variates.len() {
            variates[found] = drawn[used];
            found += usize::from(buffers.u[used] <= buffers.limit[used]);
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
