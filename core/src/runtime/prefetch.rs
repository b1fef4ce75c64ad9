//! Software prefetch: hides cache misses when a thread interleaves thousands of trees.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the cache lines of a value.
#[inline(always)]
pub(crate) fn value<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    address(first);
    // It may straddle two lines.
    address(first.wrapping_add(size_of::<T>().saturating_sub(1)));
}

/// Prefetches the cache lines of a slice.
#[inline]
pub(crate) fn slice<T>(slice: &[T]) {
    bytes(slice.as_ptr(), std::mem::size_of_val(slice));
}

/// Prefetches the cache lines of `bytes` bytes.
#[inline]
pub(crate) fn bytes<T>(first: *const T, bytes: usize) {
    let first = first.cast::<u8>();
    let mut at = 0;
    while at < bytes {
        address(first.wrapping_add(at));
        at += LINE;
    }
}

/// Prefetches the cache line of an address.
#[inline(always)]
pub(crate) fn address<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(feature = "ablate-prefetch") {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a prefetch hint has no visible effect at any address.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
