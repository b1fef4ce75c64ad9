//! Vectorisable exponentials and logarithms without branches, tables or calls, accurate to some ulps. Nothing is contracted, so
//! that results are bit-identical on every CPU.

#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;

/// Adding it rounds a moderate number to the nearest integer, in the lowest bits of the mantissa.
const ROUND_TO_INTEGER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
/// ln 2 in two parts; the first has trailing zeros, so that its product with an integer is exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below, exponentials are flushed to zero.
const MIN_EXPONENT: f64 = -708.0;
/// Taylor coefficients 1 / k! for even and odd k up to 13, highest first.
const EXP_EVEN: [f64; 7] = [1.0 / 479_001_600.0, 1.0 / 3_628_800.0, 1.0 / 40_320.0, 1.0 / 720.0, 1.0 / 24.0, 0.5, 1.0];
const EXP_ODD: [f64; 7] = [1.0 / 6_227_020_800.0, 1.0 / 39_916_800.0, 1.0 / 362_880.0, 1.0 / 5_040.0, 1.0 / 120.0, 1.0 / 6.0, 1.0];
/// Series coefficients 2 / (2 k + 1) for even and odd k up to 10, highest first.
const ARTANH_EVEN: [f64; 6] = [2.0 / 21.0, 2.0 / 17.0, 2.0 / 13.0, 2.0 / 9.0, 2.0 / 5.0, 2.0];
const ARTANH_ODD: [f64; 5] = [2.0 / 19.0, 2.0 / 15.0, 2.0 / 11.0, 2.0 / 7.0, 2.0 / 3.0];

/// Evaluates a polynomial by Horner's rule, even and odd part independently.
#[inline(always)]
fn polynomial(even: &[f64], odd: &[f64], x: f64) -> f64 {
    let square = x * x;
    let value = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, coefficient| sum * square + coefficient);
    value(even) + x * value(odd)
}

/// exp(x) for x up to 700: 2^n exp(r) with |r| at most ln(2) / 2, by a Taylor series.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let shifted = x.max(MIN_EXPONENT) * std::f64::consts::LOG2_E + ROUND_TO_INTEGER;
    let n = shifted - ROUND_TO_INTEGER;
    let r = x.max(MIN_EXPONENT) - n * LN_2_HIGH - n * LN_2_LOW;
    let series = polynomial(&EXP_EVEN, &EXP_ODD, r);
    // A bit mask, since compilers turn a select into a slow store on some CPUs.
    let is_normal = u64::from(x >= MIN_EXPONENT).wrapping_neg();
    series * f64::from_bits((shifted.to_bits().wrapping_add(1023) << 52) & is_normal)
}

/// ln(x) of a positive normal number: x = 2^n m, ln(m) = 2 artanh((m - 1) / (m + 1)), by a series.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    /// The exponent of 2^52, whose mantissa holds an integer.
    const INTEGER_EXPONENT: u64 = 0x4330_0000_0000_0000;
    let bits = x.to_bits();
    let one_to_two = f64::from_bits((bits & ((1 << 52) - 1)) | 1.0f64.to_bits());
    let exponent = f64::from_bits((bits >> 52) | INTEGER_EXPONENT) - f64::from_bits(INTEGER_EXPONENT | 1023);
    let is_high = one_to_two > std::f64::consts::SQRT_2;
    let (m, n) = if is_high { (0.5 * one_to_two, exponent + 1.0) } else { (one_to_two, exponent) };
    let s = (m - 1.0) / (m + 1.0);
    let series = polynomial(&ARTANH_EVEN, &ARTANH_ODD, s * s);
    n * LN_2_HIGH + (s * series + n * LN_2_LOW)
}

/// Writes exp(number - `subtracted`) of each number to `out`.
pub(crate) fn exp_all(numbers: &[f32], subtracted: f64, out: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the CPU supports the target features of this function.
        return unsafe { exp_all_avx2(numbers, subtracted, out) };
    }
    exp_each(numbers, subtracted, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn exp_all_avx2(numbers: &[f32], subtracted: f64, out: &mut [f64]) {
    exp_each(numbers, subtracted, out);
}

#[inline(always)]
fn exp_each(numbers: &[f32], subtracted: f64, out: &mut [f64]) {
    out.iter_mut().zip(numbers).for_each(|(out, &number)| *out = exp(f64::from(number) - subtracted));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_near(found: f64, right: f64) -> bool {
        (found - right).abs() <= 4.0 * f64::EPSILON * right.abs()
    }

    proptest! {
        #[test]
        fn exp_matches_std(x in -700.0..700.0f64, small in -1.0..1.0f64) {
            prop_assert!(is_near(exp(x), x.exp()), "{x}: {} {}", exp(x), x.exp());
            prop_assert!(is_near(exp(small), small.exp()), "{small}: {} {}", exp(small), small.exp());
        }

        #[test]
        fn ln_matches_std(x in 1e-300..1e300f64, small in 1e-17..2.0f64) {
            prop_assert!(is_near(ln(x), x.ln()), "{x}: {} {}", ln(x), x.ln());
            prop_assert!(is_near(ln(small), small.ln()), "{small}: {} {}", ln(small), small.ln());
            let near_one = 1.0 + 1e-6 * small;
            prop_assert!(is_near(ln(near_one), near_one.ln()), "{near_one}");
        }
    }

    #[test]
    fn exp_and_ln_hold_at_limits_and_exact_values() {
        assert_eq!((exp(0.0), ln(1.0)), (1.0, 0.0));
        assert_eq!((exp(-709.0), exp(f64::NEG_INFINITY), exp(-1e300)), (0.0, 0.0, 0.0));
        assert!(is_near(exp(-707.9), (-707.9f64).exp()));
        for power in -60..60 {
            assert!(is_near(ln(2f64.powi(power)), f64::from(power) * std::f64::consts::LN_2));
        }
    }
}
