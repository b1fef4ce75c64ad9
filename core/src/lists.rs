//! Long lists of large elements, made and dropped on several threads, in place: moving thousands of trees takes as long as planting
//! them.

use std::mem::ManuallyDrop;

use crate::crew;

/// Appends `count` elements to a list, `size` of them at a time on each of `threads`. `make` is told which, and has something of its
/// own that stays for all of a piece.
pub fn extend_together<T: Send, S: Default>(
    list: &mut Vec<T>,
    count: usize,
    (size, threads): (usize, usize),
    make: impl Fn(usize, &mut S) -> T + Sync,
) {
    list.reserve(count);
    let room = &mut list.spare_capacity_mut()[..count];
    crew::together(threads, room.chunks_mut(size).enumerate(), |(piece, places)| {
        let mut own = S::default();
        for (place, element) in places.iter_mut().enumerate() {
            element.write(make(piece * size + place, &mut own));
        }
    });
    // SAFETY: there is room for them, and `together` comes back when every piece is done; if one panics it does not, and those that
    // were made are forgotten.
    #[expect(unsafe_code, reason = "see above")]
    unsafe {
        list.set_len(list.len() + count);
    }
}

/// Drops a list, `size` elements at a time on each of `threads`.
pub fn drop_together<T: Send>(list: Vec<T>, (size, threads): (usize, usize)) {
    let mut list: Vec<ManuallyDrop<T>> = list.into_iter().map(ManuallyDrop::new).collect();
    crew::together(threads, list.chunks_mut(size), |piece| {
        for element in piece {
            // SAFETY: each element is in one piece, each piece is done once, and nobody sees the list afterwards.
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
    fn every_element_is_made_once_in_its_place_and_dropped_once() {
        for (count, size, threads) in [(0, 1, 1), (1, 1, 4), (100, 7, 3), (1000, 64, 4)] {
            let shared = Arc::new(());
            let mut list = vec![(usize::MAX, Arc::clone(&shared))];
            extend_together(&mut list, count, (size, threads), |index, calls: &mut usize| {
                *calls += 1;
                assert!(*calls <= size, "something of its own for each piece");
                (index, Arc::clone(&shared))
            });
            assert!(list.iter().skip(1).map(|(index, _)| *index).eq(0..count));
            assert_eq!(Arc::strong_count(&shared), count + 2);
            drop_together(list, (size, threads));
            assert_eq!(Arc::strong_count(&shared), 1);
        }
    }

    #[test]
    fn a_panic_leaves_the_list_as_it_was() {
        let mut list = vec![String::from("kept")];
        let make = |index: usize, (): &mut ()| if index == 40 { panic!("on purpose") } else { index.to_string() };
        assert!(catch_unwind(AssertUnwindSafe(|| extend_together(&mut list, 100, (8, 3), make))).is_err());
        assert_eq!(list, ["kept"]);
    }
}
