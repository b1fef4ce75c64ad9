//! Anonymous mappings backed by transparent huge pages (`MADV_HUGEPAGE`), since 4 KiB pages cost a fifth of a batched search in
//! TLB misses.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;
/// Alignment of every region.
const ALIGNMENT: usize = 16;

/// A region of memory, initially zero.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether it is a mapping of its own rather than memory of the allocator.
    mapped: bool,
}

// SAFETY: memory belongs to no thread; `Pages` itself neither reads nor writes it.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for Pages {}

impl Pages {
    /// Allocates a region from the global allocator.
    pub(crate) fn from_allocator(bytes: usize) -> Self {
        let layout = Self::layout(bytes);
        // SAFETY: the layout is not empty.
        #[expect(unsafe_code, reason = "see above")]
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, mapped: false }
    }

    /// Maps one huge page, or allocates as much if mapping fails.
    pub(crate) fn huge() -> Self {
        (!cfg!(feature = "ablate-huge-pages"))
            .then(map_huge)
            .flatten()
            .map_or_else(|| Self::from_allocator(HUGE), |start| Self { start, bytes: HUGE, mapped: true })
    }

    /// Returns the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).expect("blocks of trees are far smaller than memory")
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.mapped {
            unmap(self.start, self.bytes);
        } else {
            // SAFETY: allocated by `from_allocator` with the same layout, and freed once.
            #[expect(unsafe_code, reason = "see above")]
            unsafe {
                dealloc(self.start.as_ptr(), Self::layout(self.bytes));
            }
        }
    }
}

/// Maps memory aligned to a huge page and advises the kernel to use one.
#[cfg(target_os = "linux")]
fn map_huge() -> Option<NonNull<u8>> {
    use libc::{madvise, mmap, MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
    // SAFETY: a new anonymous mapping at any address.
    #[expect(unsafe_code, reason = "see above")]
    let mapping = unsafe { mmap(std::ptr::null_mut(), 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    if mapping == MAP_FAILED {
        return None;
    }
    // Twice the size contains an aligned page; the rest is unmapped.
    let mapping = mapping.cast::<u8>();
    let before = mapping.align_offset(HUGE);
    let start = NonNull::new(mapping.wrapping_add(before))?;
    unmap(NonNull::new(mapping)?, before);
    unmap(NonNull::new(start.as_ptr().wrapping_add(HUGE))?, HUGE - before);
    // SAFETY: advice about an owned mapping; without huge pages it has no effect.
    #[expect(unsafe_code, reason = "see above")]
    unsafe {
        madvise(start.as_ptr().cast(), HUGE, MADV_HUGEPAGE);
    }
    Some(start)
}

#[cfg(not(target_os = "linux"))]
fn map_huge() -> Option<NonNull<u8>> {
    None
}

/// Unmaps a part of what `map_huge` mapped.
#[cfg(target_os = "linux")]
fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: called by `map_huge` with unused parts of its mapping, and by `Drop` of the only owner.
        #[expect(unsafe_code, reason = "see above")]
        unsafe {
            libc::munmap(start.as_ptr().cast(), bytes);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn unmap(_start: NonNull<u8>, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_aligned() {
        let pages = Pages::huge();
        assert_eq!(pages.bytes(), HUGE);
        if cfg!(target_os = "linux") {
            assert!(pages.mapped);
            assert_eq!(pages.start().as_ptr().align_offset(HUGE), 0);
        }
    }
}
