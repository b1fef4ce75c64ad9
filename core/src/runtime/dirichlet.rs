//! Symmetric Dirichlet distribution by normalised gamma variates. Shapes below 1, the usual ones, are sampled by rejection in
//! vectorised batches of proposals, since action spaces may be large.

use crate::runtime::random::Random;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;
use crate::runtime::vector_math;

/// Concentrations below are sampled in log space, since variates can underflow: the smallest is 2^(-53 / alpha).
const LOG_SPACE_BELOW: f64 = 0.1;
/// Lower clamp of the concentration, so that log variates are finite; one weight dominates there anyway.
const MIN_ALPHA: f64 = 1e-300;
/// Proposals per batch.
const MAX_PROPOSALS: usize = if cfg!(feature = "ablate-noise-batches") { 1 } else { 64 };

const ZEROS: [f64; MAX_PROPOSALS] = [0.0; MAX_PROPOSALS];

/// A batch of proposals of the rejection sampler.
#[derive(Clone, Copy)]
struct ProposalBatch {
    /// The uniform variates: `p` in [0, 1 + alpha / e] selects the proposal, `u` in [0, 1] decides acceptance.
    p: [f64; MAX_PROPOSALS],
    u: [f64; MAX_PROPOSALS],
    /// The proposals and their logarithms.
    x: [f64; MAX_PROPOSALS],
    log: [f64; MAX_PROPOSALS],
    /// Acceptance bounds: a proposal is accepted if `u` is at most its bound.
    bound: [f64; MAX_PROPOSALS],
}

/// Replaces `weights` by a sample of `count` weights of concentration `alpha`.
pub(crate) fn dirichlet(alpha: f64, count: usize, random: &mut Random, weights: &mut Vec<f64>) {
    weights.clear();
    let alpha = alpha.max(MIN_ALPHA);
    if alpha >= 1.0 {
        weights.extend((0..count).map(|_| gamma_variate(alpha, random)));
    } else {
        weights.resize(count, 0.0);
        variates_below_one(alpha, random, weights);
    }
    if alpha < LOG_SPACE_BELOW {
        let max = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|weight| *weight = vector_math::exp(*weight - max));
    }
    let total = weights.iter().fold(0.0, |total, weight| total + weight);
    weights.iter_mut().for_each(|weight| *weight /= total);
}

/// Samples a gamma variate of shape at least 1 (Marsaglia & Tsang 2000).
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

/// Samples a standard normal variate (Box & Muller 1958; the second of the pair is discarded to keep the stream simple).
fn normal(random: &mut Random) -> f64 {
    let u = 1.0 - random.uniform();
    let v = random.uniform();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Samples gamma variates of a shape below 1, or their logarithms below `LOG_SPACE_BELOW` (Ahrens & Dieter 1974, algorithm GS).
fn variates_below_one(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the CPU supports the target features of this function.
        return unsafe { below_one_avx2(alpha, random, variates) };
    }
    below_one(alpha, random, variates);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn below_one_avx2(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    below_one(alpha, random, variates);
}

/// A proposal consumes two uniform variates, accepted or not, so that a batch equals one proposal at a time.
#[inline(always)]
fn below_one(alpha: f64, random: &mut Random, variates: &mut [f64]) {
    let b = 1.0 + alpha / std::f64::consts::E;
    let mut batch = ProposalBatch { p: ZEROS, u: ZEROS, x: ZEROS, log: ZEROS, bound: ZEROS };
    let mut above_one = batch;
    let mut indices = [0; MAX_PROPOSALS];
    let mut num_accepted = 0;
    while num_accepted < variates.len() {
        // Most proposals are accepted.
        let missing = variates.len() - num_accepted;
        let num_proposals = (missing + missing / 4 + 2).min(MAX_PROPOSALS);
        for index in 0..num_proposals {
            batch.p[index] = b * (1.0 - random.uniform_ahead(2 * index as u64));
            batch.u[index] = 1.0 - random.uniform_ahead(2 * index as u64 + 1);
        }
        // One loop per function: a dependent chain per proposal would exceed the reorder buffer.
        for index in 0..num_proposals {
            batch.log[index] = vector_math::ln(batch.p[index]) / alpha;
        }
        for index in 0..num_proposals {
            batch.x[index] = vector_math::exp(batch.log[index]);
        }
        for index in 0..num_proposals {
            batch.bound[index] = vector_math::exp(-batch.x[index]);
        }
        // The few with p > 1 are proposed by the exponential tail and accepted by the power.
        let mut count = 0;
        for index in 0..num_proposals {
            indices[count] = index;
            above_one.p[count] = batch.p[index];
            count += usize::from(batch.p[index] > 1.0);
        }
        for index in 0..count {
            let share = (b - above_one.p[index]) / alpha;
            above_one.x[index] = -vector_math::ln(share);
            above_one.log[index] = vector_math::ln(above_one.x[index]);
            above_one.bound[index] = vector_math::exp((alpha - 1.0) * above_one.log[index]) * f64::from(u8::from(share > 0.0));
        }
        for (rank, &index) in indices[..count].iter().enumerate() {
            (batch.x[index], batch.log[index], batch.bound[index]) = (above_one.x[rank], above_one.log[rank], above_one.bound[rank]);
        }
        let drawn = if alpha < LOG_SPACE_BELOW { &batch.log } else { &batch.x };
        let mut num_consumed = 0;
        while num_consumed < num_proposals && num_accepted < variates.len() {
            variates[num_accepted] = drawn[num_consumed];
            num_accepted += usize::from(batch.u[num_consumed] <= batch.bound[num_consumed]);
            num_consumed += 1;
        }
        random.skip(2 * num_consumed as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random::Purpose;

    #[test]
    fn samples_are_distributions() {
        let mut random = Random::new(5, Purpose::Noise);
        for alpha in [5e-324, 1e-300, 0.003, 0.03, 0.3, 1.0, 10.0] {
            let mut draw = Vec::new();
            dirichlet(alpha, 30, &mut random, &mut draw);
            assert!((draw.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(draw.iter().all(|&weight| (0.0..=1.0).contains(&weight)), "{alpha}: {draw:?}");
        }
    }

    #[test]
    fn sample_moments_match_the_distribution() {
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
