//! Asking memory for what will be needed soon. With thousands of trees, nothing of one is in the cache when its turn comes, and
//! most of a simulation would be waiting.

/// Bytes that come at once.
const LINE: usize = 64;

/// Asks for the cache lines of a value, and goes on.
#[inline(always)]
pub(crate) fn value<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    address(first);
    // It may straddle two lines.
    address(first.wrapping_add(size_of::<T>().saturating_sub(1)));
}

/// Asks for the cache lines of a slice, and goes on.
#[inline]
pub(crate) fn slice<T>(slice: &[T]) {
    bytes(slice.as_ptr(), std::mem::size_of_val(slice));
}

/// Asks for the cache lines of so many bytes, and goes on.
#[inline]
pub(crate) fn bytes<T>(first: *const T, bytes: usize) {
    let first = first.cast::<u8>();
    let mut at = 0;
    while at < bytes {
        address(first.wrapping_add(at));
        at += LINE;
    }
}

/// Asks for the cache line of an address, and goes on.
#[inline(always)]
pub(crate) fn address<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: a hint reads nothing that anyone could see, wherever the address is.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
