//! Several trees of one thread searched abreast. With thousands of trees nothing of one is in the cache when its turn comes, and most
//! of a simulation would be waiting for memory; so what a tree needs is asked for while others are worked on.

use crate::games::World;
use crate::search::config::SearchConfig;
use crate::search::leaf_analysis;
use crate::search::scratch::{self, Descents, INTERLEAVED};
use crate::search::select::{descend_interleaved, InterleavedDescent};
use crate::search::tree_search::{SearchState, TreeSearch};
use crate::tree::Tree;

/// Works on trees in their order: `apply` hears of each, then its next batch is gathered if it `gathers`, then `take` hears of it.
pub fn for_each_interleaved<W: World>(
    trees: &mut [TreeSearch<W>],
    config: &SearchConfig,
    gathers: bool,
    apply: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
    finish: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
) {
    let Some(first) = trees.first() else { return };
    let mut descents = scratch::descents::<W>(&first.search_state.root);
    each_with(trees, config, gathers, apply, finish, &mut descents);
    scratch::keep::<W>(descents);
}

fn each_with<W: World>(
    trees: &mut [TreeSearch<W>],
    config: &SearchConfig,
    gathers: bool,
    mut apply: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
    mut finish: impl FnMut(usize, &mut Tree, &mut SearchState<W>),
    descents: &mut Descents<W>,
) {
    let soon = |trees: &[TreeSearch<W>], prefetch: fn(&TreeSearch<W>)| trees.iter().take(INTERLEAVED).for_each(prefetch);
    soon(trees, TreeSearch::prefetch_first);
    soon(trees, TreeSearch::prefetch_second);
    soon(trees, TreeSearch::prefetch_third);
    let mut rest = trees;
    let mut first = 0;
    while !rest.is_empty() {
        let count = INTERLEAVED.min(rest.len());
        let (these, later) = std::mem::take(&mut rest).split_at_mut(count);
        let mut open: [Option<(&mut Tree, &mut SearchState<W>)>; INTERLEAVED] = [const { None }; INTERLEAVED];
        for (slot, search) in open.iter_mut().zip(these) {
            *slot = Some(search.split_mut());
        }
        soon(later.get(INTERLEAVED..).unwrap_or_default(), TreeSearch::prefetch_itself);
        soon(later, TreeSearch::prefetch_first);
        let (mut gathering, mut set_out) = ([false; INTERLEAVED], [false; INTERLEAVED]);
        for (place, ((tree, search_state), descent)) in open.iter_mut().flatten().zip(descents.iter_mut()).enumerate() {
            apply(first + place, tree, search_state);
            gathering[place] =
                gathers && !search_state.full_batch && (search_state.wants_more(tree, config) || !search_state.pending.is_empty());
            if gathering[place] {
                search_state.open_batch(tree, config, descent);
                set_out[place] = search_state.begin_descent(tree, config, descent);
            }
        }
        soon(later, TreeSearch::prefetch_second);
        let mut walks: [Option<InterleavedDescent<'_, W::State>>; INTERLEAVED] = [const { None }; INTERLEAVED];
        for (place, ((tree, search_state), descent)) in open.iter_mut().flatten().zip(descents.iter_mut()).enumerate() {
            if set_out[place] {
                walks[place] = Some(InterleavedDescent { tree, descent, journal: &mut search_state.journal, reached: None });
            }
        }
        descend_interleaved::<W>(&mut walks, config);
        let reached = walks.map(|walk| walk.and_then(|walk| walk.reached));
        soon(later, TreeSearch::prefetch_third);
        for (place, ((tree, search_state), descent)) in open.iter_mut().flatten().zip(descents.iter_mut()).enumerate() {
            // Where an end was met, the batch goes on.
            if reached[place].is_some_and(|reached| search_state.finish_descent(tree, config, reached, descent)) {
                search_state.continue_batch(tree, config, descent);
            }
            if gathering[place] && !W::EXTERNAL {
                leaf_analysis::analyze_leaves::<W>(config, &search_state.history_table, &mut search_state.pending);
            }
            finish(first + place, tree, search_state);
        }
        first += INTERLEAVED;
        rest = later;
    }
}
