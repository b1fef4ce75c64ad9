//! Runtime AVX2 detection. Selection and vector functions are compiled twice, with and without AVX2, with the same arithmetic:
//! no contraction, and sums keep their order.

/// Returns whether the CPU supports `#[target_feature(enable = "avx2,bmi1,popcnt")]`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("popcnt")
}
