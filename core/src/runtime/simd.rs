//! Runtime AVX2 detection. Descents and vector math are compiled with and without AVX2; results are bit-identical, since nothing
//! is contracted or reassociated.

/// Returns whether the CPU supports `#[target_feature(enable = "avx2,bmi1,popcnt")]`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("popcnt")
}
