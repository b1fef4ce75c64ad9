//! Parallel in-place construction and drop of vectors of large elements: moving thousands of trees costs as much as creating
//! them.

use std::mem::ManuallyDrop;

use crate::runtime::thread_pool::parallel_for;

/// Appends `count` elements to a vector, in chunks of `size` on up to `threads` threads. `make` receives the index among the new
/// elements and a scratch value per chunk.
pub(crate) fn parallel_extend<T: Send, S: Default>(
    list: &mut Vec<T>,
    count: usize,
    (size, threads): (usize, usize),
    make: impl Fn(usize, &mut S) -> T + Sync,
) {
    if cfg!(feature = "ablate-parallel-vec") {
        let mut parts: Vec<Vec<T>> = (0..count.div_ceil(size)).map(|_| Vec::new()).collect();
        parallel_for(threads, parts.iter_mut().enumerate(), |(chunk, part)| {
            let mut scratch = S::default();
            *part = (chunk * size..count.min((chunk + 1) * size)).map(|index| make(index, &mut scratch)).collect();
        });
        return parts.iter_mut().for_each(|part| list.append(part));
    }
    list.reserve(count);
    let spare = &mut list.spare_capacity_mut()[..count];
    parallel_for(threads, spare.chunks_mut(size).enumerate(), |(chunk, slots)| {
        let mut scratch = S::default();
        for (offset, element) in slots.iter_mut().enumerate() {
            element.write(make(chunk * size + offset, &mut scratch));
        }
    });
    // SAFETY: the elements are initialised, since `parallel_for` returns when every chunk is done; if one panics it unwinds,
    // and the elements made so far are leaked.
    #[expect(unsafe_code, reason = "see above")]
    unsafe {
        list.set_len(list.len() + count);
    }
}

/// Drops a vector in chunks of `size` elements on up to `threads` threads.
pub(crate) fn parallel_drop<T: Send>(mut list: Vec<T>, (size, threads): (usize, usize)) {
    if cfg!(feature = "ablate-parallel-vec") {
        let mut parts = Vec::new();
        while !list.is_empty() {
            parts.push(list.split_off(list.len().saturating_sub(size)));
        }
        return parallel_for(threads, parts.into_iter(), drop);
    }
    let mut list: Vec<ManuallyDrop<T>> = list.into_iter().map(ManuallyDrop::new).collect();
    parallel_for(threads, list.chunks_mut(size), |chunk| {
        for element in chunk {
            // SAFETY: each element is in one chunk, each chunk is visited once, and the vector is not used afterwards.
            #[expect(unsafe_code, reason = "see above")]
            unsafe {
                ManuallyDrop::drop(element);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::sync::Arc;

    #[test]
    fn parallel_extend_and_parallel_drop_touch_every_element_once() {
        for (count, size, threads) in [(0, 1, 1), (1, 1, 4), (100, 7, 3), (1000, 64, 4)] {
            let shared = Arc::new(());
            let mut list = vec![(usize::MAX, Arc::clone(&shared))];
            parallel_extend(&mut list, count, (size, threads), |index, calls: &mut usize| {
                *calls += 1;
                assert!(*calls <= size, "one scratch value per chunk");
                (index, Arc::clone(&shared))
            });
            assert!(list.iter().skip(1).map(|(index, _)| *index).eq(0..count));
            assert_eq!(Arc::strong_count(&shared), count + 2);
            parallel_drop(list, (size, threads));
            assert_eq!(Arc::strong_count(&shared), 1);
        }
    }

    #[test]
    fn parallel_extend_leaves_the_vector_unchanged_on_a_panic() {
        let mut list = vec![String::from("kept")];
        let make = |index: usize, (): &mut ()| if index == 40 { panic!("on purpose") } else { index.to_string() };
        assert!(catch_unwind(AssertUnwindSafe(|| parallel_extend(&mut list, 100, (8, 3), make))).is_err());
        assert_eq!(list, ["kept"]);
    }
}
