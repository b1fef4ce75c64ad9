//! Whether the processor has registers of four numbers. The way down and functions of many numbers are compiled twice, with them and
//! without, and the arithmetic is the same: nothing is contracted, and sums keep their order.

/// Whether what `#[target_feature(enable = "avx2,bmi1,popcnt")]` asks for is there.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("popcnt")
}
