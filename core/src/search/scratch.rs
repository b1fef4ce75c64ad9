//! What a thread works with while it walks down trees. Thousands of trees take turns, so buffers that each kept for itself would have
//! to come from memory every time; these stay in the cache of the thread.

use std::any::Any;
use std::cell::RefCell;

use crate::games::World;
use crate::search::select::Descent;

/// So many walks of one thread take turns.
pub const INTERLEAVED: usize = 8;

/// Descents for as many walks.
pub type Descents<W> = [Descent<<W as World>::State>; INTERLEAVED];

thread_local! {
    /// Those of the world that this thread has worked on last.
    static KEPT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// The descents of this thread, to be kept again when the work is done; `root` is any position, to make them of.
pub fn descents<W: World>(root: &W::State) -> Box<Descents<W>> {
    let kept = KEPT.take().and_then(|kept| kept.downcast().ok());
    kept.unwrap_or_else(|| Box::new(std::array::from_fn(|_| Descent::new(root.clone()))))
}

/// Keeps descents for the next work of this thread.
pub fn keep<W: World>(descents: Box<Descents<W>>) {
    KEPT.set(Some(descents));
}
