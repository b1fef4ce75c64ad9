//! Priors from an evaluator's policy: a masked softmax, computed in f64 and stored in f32.

use std::cell::RefCell;

use crate::error::Error;
use crate::runtime::vector_math::exp_all;

/// The meaning of an evaluator's policy numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Unnormalised log-probabilities.
    Logits,
    /// Probabilities, normalised over the legal moves.
    Probabilities,
}

/// The policy of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Policy<'a> {
    /// Uniform, or unused by the search.
    Uniform,
    /// A number per row and action.
    Dense(&'a [f32], PolicyKind),
    /// A number per legal action, row after row.
    Legal(&'a [f32], PolicyKind),
}

/// Computes the priors of legal moves from their numbers; uniform if all probabilities are 0.
///
/// # Errors
/// A message about the first invalid number.
pub(crate) fn priors(numbers: impl Iterator<Item = f32> + Clone, kind: PolicyKind, out: &mut [f32]) -> Result<(), String> {
    let count = out.len();
    match kind {
        PolicyKind::Logits => {
            if let Some(wrong) = numbers.clone().find(|logit| logit.is_nan() || *logit == f32::INFINITY) {
                return Err(format!(
                    "policy_logits has {wrong} on a legal move: logits are finite, or -inf for a move never to be tried first"
                ));
            }
            out.iter_mut().zip(numbers).for_each(|(prior, logit)| *prior = logit);
            if out.iter().all(|&logit| logit == f32::NEG_INFINITY) {
                return Err("policy_logits is -inf on every legal move: at least one must be finite".into());
            }
            softmax(out);
        }
        PolicyKind::Probabilities => {
            if let Some(wrong) = numbers.clone().find(|p| !(p.is_finite() && *p >= 0.0)) {
                return Err(format!("policy has {wrong} on a legal move: probabilities are finite and not negative"));
            }
            let total = numbers.clone().fold(0.0, |total, p| total + f64::from(p));
            for (prior, p) in out.iter_mut().zip(numbers) {
                *prior = if total > 0.0 { (f64::from(p) / total) as f32 } else { (1.0 / count as f64) as f32 };
            }
        }
    }
    Ok(())
}

thread_local! {
    /// Exponentials of many numbers, reused so that no call allocates.
    static BUFFER: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Softmax in place, with the maximum subtracted against overflow. At least one logit must be finite, none NaN.
pub(crate) fn softmax(numbers: &mut [f32]) {
    let (least, most) = min_max(numbers);
    if least == most {
        // All logits are equal: 1 / n.
        let uniform = (1.0 / numbers.len() as f64) as f32;
        numbers.fill(uniform);
        return;
    }
    let most = f64::from(most);
    // Exponentials dominate the cost: each is computed once.
    match numbers.len() {
        0..=8 => normalize_exp(numbers, most, &mut [0.0; 8]),
        9..=64 => normalize_exp(numbers, most, &mut [0.0; 64]),
        count => BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(count.max(buffer.len()), 0.0);
            normalize_exp_by(exp_all, numbers, most, buffer);
        }),
    }
}

/// Replaces logits by exp(logit - most) over their sum; `weights` holds the exponentials.
#[inline(always)]
fn normalize_exp(numbers: &mut [f32], most: f64, weights: &mut [f64]) {
    let exp_each = |numbers: &[f32], most: f64, weights: &mut [f64]| {
        weights.iter_mut().zip(numbers).for_each(|(weight, &logit)| *weight = (f64::from(logit) - most).exp());
    };
    normalize_exp_by(exp_each, numbers, most, weights);
}

#[inline(always)]
fn normalize_exp_by(exp: impl Fn(&[f32], f64, &mut [f64]), numbers: &mut [f32], most: f64, weights: &mut [f64]) {
    let weights = &mut weights[..numbers.len()];
    exp(numbers, most, weights);
    let total = weights.iter().fold(0.0, |total, weight| total + weight);
    for (prior, &weight) in numbers.iter_mut().zip(&*weights) {
        *prior = (weight / total) as f32;
    }
}

/// Minimum and maximum of numbers without NaN, by SIMD lanes.
fn min_max(numbers: &[f32]) -> (f32, f32) {
    const LANES: usize = 8;
    let (mut least, mut most) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    let groups = numbers.chunks_exact(LANES);
    let rest = groups.remainder();
    for group in groups {
        for lane in 0..LANES {
            least[lane] = if group[lane] < least[lane] { group[lane] } else { least[lane] };
            most[lane] = if group[lane] > most[lane] { group[lane] } else { most[lane] };
        }
    }
    let lower = |a: f32, &b: &f32| if b < a { b } else { a };
    let higher = |a: f32, &b: &f32| if b > a { b } else { a };
    (least.iter().chain(rest).fold(f32::INFINITY, lower), most.iter().chain(rest).fold(f32::NEG_INFINITY, higher))
}

/// Returns whether a logit is NaN or +inf, and whether one is above -inf; in one pass without a branch per number.
#[inline]
pub(crate) fn check_logits(logits: &[f32]) -> (bool, bool) {
    let (mut broken, mut possible) = (false, false);
    for &logit in logits {
        broken |= logit.is_nan() | (logit == f32::INFINITY);
        possible |= logit > f32::NEG_INFINITY;
    }
    (broken, possible)
}

/// Checks every number of a dense policy, illegal moves included: a NaN anywhere means a broken network.
///
/// # Errors
/// `Error::Evaluation` names the row and the action.
pub(crate) fn check_dense(numbers: &[f32], num_actions: usize) -> Result<(), Error> {
    if !check_logits(numbers).0 {
        return Ok(());
    }
    let at = numbers.iter().position(|number| number.is_nan() || *number == f32::INFINITY).unwrap_or(0);
    let (row, action) = (at / num_actions, at % num_actions);
    Err(Error::Evaluation(format!(
        "row {row}: policy has {} for action {action}: logits are finite or -inf, probabilities finite and not negative",
        numbers[at]
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn priors_sum_to_one(logits in prop::collection::vec(-50.0f32..50.0, 1..100)) {
            let mut out = vec![0.0; logits.len()];
            priors(logits.iter().copied(), PolicyKind::Logits, &mut out).expect("finite logits");
            let sum: f64 = out.iter().map(|&p| f64::from(p)).sum();
            prop_assert!((sum - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn long_softmax_equals_short_softmax() {
        let logits: Vec<f32> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) as f32 / 4000.0 - 9.0).collect();
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let (mut many, mut few) = (logits.clone(), logits.clone());
        softmax(&mut many);
        normalize_exp(&mut few, f64::from(most), &mut vec![0.0; logits.len()]);
        for (one, other) in many.iter().zip(&few) {
            assert!((one - other).abs() <= f32::EPSILON * other, "{one} {other}");
        }
    }

    #[test]
    fn negative_infinity_is_a_prior_of_zero() {
        let mut out = [0.0; 3];
        priors([0.0, f32::NEG_INFINITY, 0.0].into_iter(), PolicyKind::Logits, &mut out).expect("fine");
        assert_eq!(out, [0.5, 0.0, 0.5]);
        assert!(priors([f32::NEG_INFINITY; 3].into_iter(), PolicyKind::Logits, &mut out).is_err());
        assert!(priors([f32::NAN, 0.0, 0.0].into_iter(), PolicyKind::Logits, &mut out).is_err());
    }

    #[test]
    fn probabilities_are_normalised_and_zeros_are_uniform() {
        let mut out = [0.0; 2];
        priors([1.0, 3.0].into_iter(), PolicyKind::Probabilities, &mut out).expect("fine");
        assert_eq!(out, [0.25, 0.75]);
        priors([0.0, 0.0].into_iter(), PolicyKind::Probabilities, &mut out).expect("fine");
        assert_eq!(out, [0.5, 0.5]);
        assert!(priors([-1.0, 3.0].into_iter(), PolicyKind::Probabilities, &mut out).is_err());
    }
}
