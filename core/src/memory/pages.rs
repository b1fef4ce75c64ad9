//! Memory for the blocks of trees, straight from the system. A batch of thousands of trees is spread over so much of it that, with
//! pages of 4 KiB, a fifth of a search would be looking up where pages are; so large pieces lie in huge pages where a system has them.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::ptr::NonNull;

/// What a huge page holds, on the systems where this asks for them.
pub(crate) const HUGE: usize = 2 << 20;
/// Every piece begins at a multiple of this.
const ALIGNMENT: usize = 16;

/// A piece of memory that was all zeros when it came.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    /// Whether the system gave it directly, and not the allocator.
    mapped: bool,
}

// SAFETY: memory belongs to no thread; `Pages` itself reads and writes nothing of it.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Send for Pages {}

impl Pages {
    /// A piece from the allocator.
    pub(crate) fn plain(bytes: usize) -> Self {
        let layout = Self::layout(bytes);
        // SAFETY: a layout is never empty (see there).
        #[expect(unsafe_code, reason = "see above")]
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, mapped: false }
    }

    /// One huge page, or as much from the allocator where there is none to be had.
    pub(crate) fn huge() -> Self {
        map_huge().map_or_else(|| Self::plain(HUGE), |start| Self { start, bytes: HUGE, mapped: true })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How much it is.
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
            // SAFETY: it came from `plain`, with the same layout, and nobody else gives it back.
            #[expect(unsafe_code, reason = "see above")]
            unsafe {
                dealloc(self.start.as_ptr(), Self::layout(self.bytes));
            }
        }
    }
}

/// Maps memory that begins at a multiple of a huge page, and asks for it to be one.
#[cfg(target_os = "linux")]
fn map_huge() -> Option<NonNull<u8>> {
    use libc::{madvise, mmap, MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
    // SAFETY: a new mapping, anywhere, of memory that nobody has.
    #[expect(unsafe_code, reason = "see above")]
    let wide = unsafe { mmap(std::ptr::null_mut(), 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    if wide == MAP_FAILED {
        return None;
    }
    // Twice as much has a whole page in it somewhere; what is before and behind goes back.
    let wide = wide.cast::<u8>();
    let before = wide.align_offset(HUGE);
    let start = NonNull::new(wide.wrapping_add(before))?;
    unmap(NonNull::new(wide)?, before);
    unmap(NonNull::new(start.as_ptr().wrapping_add(HUGE))?, HUGE - before);
    // SAFETY: advice about a mapping that is ours; a system that does not take it goes on with small pages.
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

/// Gives back a part of what `map_huge` has mapped.
#[cfg(target_os = "linux")]
fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: called by `map_huge` with parts of a mapping that nobody has seen, and by `Drop` of their only owner.
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
    fn a_huge_page_begins_where_one_can() {
        let pages = Pages::huge();
        assert_eq!(pages.bytes(), HUGE);
        if cfg!(target_os = "linux") {
            assert!(pages.mapped);
            assert_eq!(pages.start().as_ptr().align_offset(HUGE), 0);
        }
    }
}
