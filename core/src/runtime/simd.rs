//! Run-time detection of wider registers. Descents and vector math are compiled with and without AVX2, playouts of Pig with AVX-512,
//! which multiplies integers of 64 bits, too; results are bit-identical, since nothing is contracted or reassociated.

/// Returns whether the CPU supports `#[target_feature(enable = "avx2,bmi1,popcnt")]`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("popcnt")
}

/// Returns whether the CPU supports `#[target_feature(enable = "avx512f,avx512dq,bmi1,popcnt")]`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512dq") && has!("bmi1") && has!("popcnt")
}
