//! Asking memory for what will be needed soon. With thousands of trees, nothing of one is in the cache when its turn comes, and
//! most of a simulation would be waiting.

/// Bytes that come at once.
const LINE: usize = 64;

/// Asks for the cache lines of a value, and goes on.
#[inline]
pub fn value<T>(value: &T) {
    slice(std::slice::from_ref(value));
}

/// Asks for the cache lines of a slice, and goes on.
#[inline]
pub fn slice<T>(slice: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        let first = slice.as_ptr().cast::<i8>();
        for line in (0..std::mem::size_of_val(slice)).step_by(LINE) {
            // SAFETY: a hint reads nothing that anyone could see, and the address lies within the slice.
            #[expect(unsafe_code, reason = "see above")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(first.add(line));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, LINE);
}
