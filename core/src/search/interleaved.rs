//! Interleaved descents: a thread searches several trees in turn. With thousands of trees none is in the cache when its turn comes,
//! and most of a simulation would be cache misses; so the data of each tree are prefetched while the thread works on others.

use std::any::Any;
use std::cell::RefCell;

use crate::games::World;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;
use crate::search::batch::analyze_leaves;
use crate::search::config::WorldConfig;
use crate::search::score::{ANY, LOG_PUCT, PUCT};
use crate::search::select::{step, Descent, Reached};
use crate::search::tree_search::{SearchState, TreeSearch};
use crate::tree::journal::Journal;
use crate::tree::Tree;

/// Number of descents that a thread interleaves.
const WIDTH: usize = if cfg!(feature = "ablate-interleaving") { 1 } else { 8 };

/// The descents of one thread.
pub(crate) type Descents<W> = [Descent<<W as World>::State>; WIDTH];

thread_local! {
    /// Buffers of the world this thread worked on last: they stay in its cache, and trees allocate none.
    static BUFFERS: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Takes this thread's descents, or creates them with any position `root`. `return_descents` gives them back.
pub(crate) fn borrow_descents<W: World>(root: &W::State) -> Box<Descents<W>> {
    let cached = BUFFERS.take().and_then(|buffers| buffers.downcast().ok());
    cached.unwrap_or_else(|| Box::new(std::array::from_fn(|_| Descent::new(root.clone()))))
}

/// Gives descents back to this thread.
pub(crate) fn return_descents<W: World>(descents: Box<Descents<W>>) {
    BUFFERS.set(Some(descents));
}

/// For each tree in order: calls `apply`, gathers its next batch if `gathers`, and calls `finish`.
pub(crate) fn for_each_interleaved<W: World>(
    trees: &mut [TreeSearch<W>],
    config: &WorldConfig<W>,
    gathers: bool,
    apply: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
    finish: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
) {
    let Some(first) = trees.first() else { return };
    let mut descents = borrow_descents::<W>(&first.search_state.root);
    each_with(trees, config, gathers, apply, finish, &mut descents);
    return_descents::<W>(descents);
}

fn each_with<W: World>(
    trees: &mut [TreeSearch<W>],
    config: &WorldConfig<W>,
    gathers: bool,
    mut apply: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
    mut finish: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
    descents: &mut Descents<W>,
) {
    let prefetch_next = |trees: &[TreeSearch<W>], prefetch: fn(&TreeSearch<W>)| trees.iter().take(WIDTH).for_each(prefetch);
    prefetch_next(trees, TreeSearch::prefetch_header_and_leaves);
    prefetch_next(trees, TreeSearch::prefetch_paths);
    prefetch_next(trees, TreeSearch::prefetch_path_nodes);
    let mut rest = trees;
    let mut first = 0;
    while !rest.is_empty() {
        let count = WIDTH.min(rest.len());
        let (group, later) = std::mem::take(&mut rest).split_at_mut(count);
        let mut open: [Option<(&mut Tree, &mut SearchState<W>)>; WIDTH] = [const { None }; WIDTH];
        for (slot, search) in open.iter_mut().zip(group) {
            *slot = Some(search.split_mut());
        }
        prefetch_next(later.get(WIDTH..).unwrap_or_default(), TreeSearch::prefetch_struct);
        prefetch_next(later, TreeSearch::prefetch_header_and_leaves);
        let (mut gathering, mut descends) = ([false; WIDTH], [false; WIDTH]);
        for (place, ((tree, search_state), descent)) in open.iter_mut().flatten().zip(descents.iter_mut()).enumerate() {
            apply(first + place, tree, search_state);
            gathering[place] =
                gathers && !search_state.full_batch && (search_state.wants_more(tree, config) || !search_state.pending.is_empty());
            if gathering[place] {
                search_state.open_batch(tree, config, descent);
                descends[place] = search_state.begin_descent(tree, config, descent);
            }
        }
        prefetch_next(later, TreeSearch::prefetch_paths);
        let mut descending: [Option<InterleavedDescent<'_, W::State>>; WIDTH] = [const { None }; WIDTH];
        for (place, ((tree, search_state), descent)) in open.iter_mut().flatten().zip(descents.iter_mut()).enumerate() {
            if descends[place] {
                descending[place] = Some(InterleavedDescent { tree, descent, journal: &mut search_state.journal, reached: None });
            }
        }
        descend_all::<W>(&mut descending, config);
        let reached = descending.map(|one| one.and_then(|one| one.reached));
        prefetch_next(later, TreeSearch::prefetch_path_nodes);
        for (place, ((tree, search_state), descent)) in open.iter_mut().flatten().zip(descents.iter_mut()).enumerate() {
            // The batch continues after terminal positions.
            if reached[place].is_some_and(|reached| search_state.finish_descent(tree, config, reached, descent)) {
                search_state.continue_batch(tree, config, descent);
            }
            if gathering[place] && !W::HAS_SLOTS {
                analyze_leaves::<W>(config, &search_state.history_table, &mut search_state.pending);
            }
            finish(first + place, tree, search_state);
        }
        first += WIDTH;
        rest = later;
    }
}

/// One of several interleaved descents.
struct InterleavedDescent<'a, S> {
    tree: &'a mut Tree,
    descent: &'a mut Descent<S>,
    journal: &'a mut Journal,
    /// Where it ended.
    reached: Option<Reached>,
}

/// Descends several trees, one step of each in turn, so that cache misses of one overlap with the steps of the others.
fn descend_all<W: World>(descents: &mut [Option<InterleavedDescent<'_, W::State>>], config: &WorldConfig<W>) {
    if config.trace {
        return descend_all_by::<W, ANY, true>(descents, config);
    }
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() && !cfg!(feature = "ablate-avx2") {
        #[expect(unsafe_code, reason = "the same arithmetic in AVX2 registers, selected at run time")]
        // SAFETY: the CPU supports the target features of this function.
        return unsafe { descend_all_avx2::<W>(descents, config) };
    }
    descend_all_portable::<W>(descents, config);
}

/// Dispatches to code compiled for one rule.
#[inline(always)]
fn descend_all_portable<W: World>(descents: &mut [Option<InterleavedDescent<'_, W::State>>], config: &WorldConfig<W>) {
    match config.rule.id() {
        _ if cfg!(feature = "ablate-specialization") => descend_all_by::<W, ANY, false>(descents, config),
        PUCT => descend_all_by::<W, PUCT, false>(descents, config),
        LOG_PUCT => descend_all_by::<W, LOG_PUCT, false>(descents, config),
        _ => descend_all_by::<W, ANY, false>(descents, config),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn descend_all_avx2<W: World>(descents: &mut [Option<InterleavedDescent<'_, W::State>>], config: &WorldConfig<W>) {
    descend_all_portable::<W>(descents, config);
}

#[inline(always)]
fn descend_all_by<W: World, const ID: u8, const RECORDS: bool>(
    descents: &mut [Option<InterleavedDescent<'_, W::State>>],
    config: &WorldConfig<W>,
) {
    let mut active = true;
    while active {
        active = false;
        // The nodes are prefetched by now; prefetch all their edges before the first step.
        for one in descents.iter().flatten().filter(|one| one.reached.is_none()) {
            one.tree.prefetch_tried(one.descent.cursor.node);
        }
        for one in descents.iter_mut().flatten().filter(|one| one.reached.is_none()) {
            one.reached = step::<W, ID, RECORDS>(one.tree, config, one.descent, one.journal);
            if one.reached.is_none() {
                one.tree.prefetch_node(one.descent.cursor.node);
                active = true;
            }
        }
    }
}
