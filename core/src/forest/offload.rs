//! Offloading searches to a device: the engine exports the roots and imports the results; the trees are then the same as if it
//! had searched them itself.

use std::ops::Range;
use std::sync::Arc;

use super::{chunk_size, threads_for, Forest};
use crate::games::World;
use crate::runtime::thread_pool::parallel_for;
use crate::search::tree_search::TreeSearch;
use crate::tree::{Link, OrderedEdge, Tree, ROOT};

/// Upper bound of simulations, as child indices have 16 bits on the device.
const MAX_SIMULATIONS: u64 = 32_000;

/// The exported roots: a row per tree, with `num_actions` entries per edge column.
#[derive(Clone, Debug, Default)]
pub struct ExportedRoots {
    /// Simulations per tree.
    pub simulations: usize,
    /// Number of edges of each root.
    pub counts: Vec<i32>,
    /// Player to move.
    pub to_play: Vec<i32>,
    /// Actions, in stored order.
    pub actions: Vec<i16>,
    /// Priors.
    pub priors: Vec<f32>,
    /// Raw values of the roots.
    pub raw: Vec<f64>,
    /// Keys of the random numbers.
    pub keys: Vec<u64>,
    /// Simulations in the life of each tree.
    pub begun: Vec<u64>,
    /// The slot of each root and one per simulation (learned models).
    pub slots: Vec<i64>,
    /// Gumbel search: draw of each action.
    pub draws: Vec<f64>,
    /// Gumbel search: the visit count that selects the move of each simulation.
    pub considered: Vec<i32>,
    /// PUCT rules: exploration weight by N.
    pub weights: Vec<f64>,
}

/// The exported fields of one root.
#[derive(Clone, Copy, Debug, Default)]
struct ExportedRoot {
    count: i32,
    to_play: i32,
    raw: f64,
    key: u64,
    begun: u64,
    slot: Option<u32>,
}

/// The results of a search: `nodes` nodes per tree in the order of simulations, the root first. Rows as in `ExportedRoots`.
#[derive(Clone, Copy, Debug)]
pub struct OffloadResults<'a> {
    /// Simulations done in each tree.
    pub done: &'a [i32],
    /// Nodes added to each tree.
    pub made: &'a [i32],
    /// Node capacity per tree: all, or 1 for the root alone.
    pub nodes: usize,
    /// Four numbers per node: player to move, edges (0: terminal), opened edges, unused.
    pub headers: &'a [i32],
    /// Raw values.
    pub raw: &'a [f64],
    /// Reward of the move to each node (learned models).
    pub rewards: &'a [f64],
    /// Discount of the move to each node (learned models).
    pub discounts: &'a [f64],
    /// W of each edge.
    pub sums: &'a [f64],
    /// N of each edge.
    pub visits: &'a [i32],
    /// P of each edge.
    pub priors: &'a [f32],
    /// Action of each edge.
    pub actions: &'a [i16],
    /// Child node of each edge, or -1.
    pub children: &'a [i16],
    /// Lowest and highest mean value of each tree.
    pub bounds: &'a [f64],
    /// As exported.
    pub slots: &'a [i64],
}

impl OffloadResults<'_> {
    /// Returns whether the columns have consistent lengths.
    fn has_consistent_lengths(&self, trees: usize, actions: usize) -> bool {
        let nodes = trees * self.nodes;
        let edges = nodes * actions;
        let per_node = [self.headers.len() / 4, self.raw.len()];
        let per_edge = [self.sums.len(), self.visits.len(), self.priors.len(), self.actions.len(), self.children.len()];
        let per_tree = [self.bounds.len() / 2, self.done.len(), self.made.len()];
        per_node == [nodes; 2] && per_edge == [edges; 5] && per_tree == [trees; 3]
    }
}

impl<W: World> Forest<W> {
    /// Returns whether all trees are new, apart from evaluated roots, and want the same number of simulations.
    #[must_use]
    pub fn all_new(&self) -> bool {
        !self.config.trace && are_new(&self.trees)
    }

    /// Exports the roots of some trees. None unless these are new, have evaluated roots, and want the same number of simulations.
    pub fn export_roots(&mut self, range: Range<usize>) -> Option<ExportedRoots> {
        let searches = self.trees.get_mut(range)?;
        let wanted = searches.first().map(|tree| tree.search_state.simulation_limit - tree.search_state.simulations)?;
        if !are_new(searches) || searches.iter().any(|search| search.tree().root_visits != 1) {
            return None;
        }
        let threads = threads_for(searches.len(), 200 + 40 * self.config.num_actions, self.threads);
        let size = chunk_size(searches.len(), threads);
        let config = &self.config;
        parallel_for(threads, searches.chunks_mut(size), |trees| {
            for search in trees {
                let (tree, search_state) = search.split_mut();
                search_state.prepare_root(tree, config);
            }
        });
        let (trees, width, simulations) = (searches.len(), self.config.num_actions, wanted as usize);
        let mut roots =
            ExportedRoots { simulations, actions: vec![0; trees * width], priors: vec![0.0; trees * width], ..ExportedRoots::default() };
        let mut headers = vec![ExportedRoot::default(); trees];
        let chunks = searches.chunks(size).zip(headers.chunks_mut(size));
        let edges = roots.actions.chunks_mut(size * width).zip(roots.priors.chunks_mut(size * width));
        parallel_for(threads, chunks.zip(edges), |((trees, headers), (actions, priors))| {
            let rows = actions.chunks_mut(width).zip(priors.chunks_mut(width));
            for ((search, header), (actions, priors)) in trees.iter().zip(headers).zip(rows) {
                let (tree, search_state) = (search.tree(), &search.search_state);
                let node = tree.node(ROOT);
                *header = ExportedRoot {
                    count: i32::from(node.num_edges),
                    to_play: i32::from(node.to_play),
                    raw: node.raw_value,
                    key: search_state.key,
                    begun: search_state.simulations,
                    slot: tree.slot(ROOT),
                };
                let edges = tree.edges(node);
                priors[..edges.priors.len()].copy_from_slice(edges.priors);
                actions.iter_mut().zip(edges.actions).for_each(|(place, &action)| *place = action as i16);
            }
        });
        for header in headers {
            roots.counts.push(header.count);
            roots.to_play.push(header.to_play);
            roots.raw.push(header.raw);
            roots.keys.push(header.key);
            roots.begun.push(header.begun);
            if let Some(slot) = header.slot {
                roots.slots.push(i64::from(slot));
                roots.slots.extend((0..simulations).map(|_| i64::from(self.slots.allocate())));
            }
        }
        if searches.iter().all(|search| search.search_state.schedule.is_some()) {
            roots.draws = vec![0.0; trees * width];
            roots.considered = vec![0; trees * simulations];
            let rows = roots.draws.chunks_mut(size * width).zip(roots.considered.chunks_mut(size * simulations));
            parallel_for(threads, searches.chunks(size).zip(rows), |(trees, (draws, considered))| {
                let rows = draws.chunks_mut(width).zip(considered.chunks_mut(simulations));
                for (schedule, (draws, considered)) in trees.iter().filter_map(|search| search.search_state.schedule.as_ref()).zip(rows) {
                    schedule.export(draws, considered);
                }
            });
        }
        roots.weights = (0..simulations as u32 + 2).filter_map(|visits| self.config.rule.exploration(visits)).collect();
        Some(roots)
    }

    /// Releases the slots that `export_roots` allocated for `trees` trees without results.
    pub fn cancel_export(&mut self, trees: usize, slots: &[i64]) {
        self.release_unused(slots, &vec![0; trees]);
    }

    /// Releases the slots of trees beyond those of the root and of the nodes `made`.
    fn release_unused(&mut self, slots: &[i64], made: &[i32]) {
        for (own, &made) in slots.chunks((slots.len() / made.len().max(1)).max(1)).zip(made) {
            let unused: Vec<u32> = own.iter().skip(1 + made as usize).map(|&slot| slot as u32).collect();
            self.slots.release(&unused);
        }
    }

    /// Imports the results of trees from number `first` on: first the roots alone, and all nodes later on demand. Returns whether the
    /// results fit the forest.
    pub fn import_results(&mut self, first: usize, results: &OffloadResults<'_>) -> bool {
        let (trees, width) = (results.done.len(), self.config.num_actions);
        let Some(searches) = self.trees.get_mut(first..first.saturating_add(trees)) else { return false };
        let shape = self.config.shape();
        let has_slots = !shape.slots || results.slots.len() / trees.max(1) >= results.nodes;
        let has_discounts = !shape.model_columns || [results.rewards.len(), results.discounts.len()] == [trees * results.nodes; 2];
        let counts_are_valid = results.done.iter().chain(results.made).all(|&count| count >= 0);
        if !results.has_consistent_lengths(trees, width) || !counts_are_valid || trees == 0 || !has_slots || !has_discounts {
            return false;
        }
        let threads = threads_for(trees, (200 + 10 * width) * results.nodes, self.threads);
        let size = chunk_size(trees, threads);
        parallel_for(threads, searches.chunks_mut(size).enumerate(), |(chunk, searches)| {
            for (place, search) in searches.iter_mut().enumerate() {
                let index = chunk * size + place;
                if results.nodes > 1 {
                    let old_state = search.search_state.root_state.take();
                    search.replace_tree(import_tree(results, index, width, Tree::new(shape)), 0);
                    if let Some(mut root_state) = old_state {
                        Arc::make_mut(&mut root_state).proof_line.clear();
                        search.search_state.root_state = Some(root_state);
                    }
                } else {
                    import_root(results, index, width, search.split_mut().0);
                }
                let state = &mut search.search_state;
                state.bounds = (results.bounds[2 * index], results.bounds[2 * index + 1]);
                state.simulations = state.limit_start + results.done[index] as u64;
            }
        });
        // A search that stopped early leaves unused slots. The roots are imported first, and once.
        if results.nodes == 1 && shape.slots {
            self.release_unused(results.slots, results.made);
        }
        true
    }
}

/// Returns whether trees were never searched and want the same number of simulations.
fn are_new<W: World>(trees: &[TreeSearch<W>]) -> bool {
    let wanted = |search: &TreeSearch<W>| search.search_state.simulation_limit - search.search_state.simulations;
    let first = trees.first().map_or(0, wanted);
    let is_new = |tree: &Tree| tree.num_nodes() == 1 && tree.node(ROOT).opened == 0 && tree.root_visits <= 1;
    let is_like_first = |search: &TreeSearch<W>| wanted(search) == first && !search.search_state.has_batch() && is_new(search.tree());
    (1..=MAX_SIMULATIONS).contains(&first) && trees.iter().all(is_like_first)
}

/// Imports the root of tree `index`.
fn import_root(results: &OffloadResults<'_>, index: usize, width: usize, tree: &mut Tree) {
    let header = *tree.node(ROOT);
    let edges = index * width..index * width + header.num_edges as usize;
    let moves = results.actions[edges.clone()].iter().zip(&results.priors[edges.clone()]);
    let moves: Vec<OrderedEdge> = moves.map(|(&action, &prior)| OrderedEdge { action: action as u16, prior, tag: 0 }).collect();
    tree.order_edges(ROOT, &moves, 0);
    let opened = (results.headers[4 * index + 2].max(0) as usize).min(moves.len());
    for place in 0..opened {
        let here = edges.start + place;
        tree.set_edge(header.edge(place), results.visits[here] as u32, results.sums[here], Link::NONE);
    }
    tree.node_mut(ROOT).opened = opened as u16;
    set_tree_fields(results, index, tree);
}

/// Imports all nodes of tree `index` into an empty tree.
fn import_tree(results: &OffloadResults<'_>, index: usize, width: usize, mut tree: Tree) -> Tree {
    let slots = results.slots.chunks((results.slots.len() / results.done.len()).max(1)).nth(index).unwrap_or_default();
    // A search that stopped early or met terminal positions has fewer nodes than capacity.
    for number in 0..results.nodes.min(results.made[index] as usize + 1) {
        let at = index * results.nodes + number;
        let [to_play, count, opened] = [0, 1, 2].map(|field| results.headers[4 * at + field]);
        let (count, opened) = ((count.max(0) as usize).min(width), opened.max(0) as usize);
        let edges = at * width..at * width + count;
        let actions: Vec<u16> = results.actions[edges.clone()].iter().map(|&action| action as u16).collect();
        let node = tree.add_node(to_play as u8);
        tree.add_edges(node, &actions);
        tree.priors_mut(node).copy_from_slice(&results.priors[edges.clone()]);
        if let Some(&slot) = slots.get(number) {
            tree.set_slot(node, slot as u32);
        }
        if tree.shape().model_columns {
            tree.set_reward_discount(node, results.rewards[at], results.discounts[at], 0.0);
        }
        let header = tree.node_mut(node);
        (header.raw_value, header.opened, header.terminal) = (results.raw[at], opened.min(count) as u16, count == 0);
        let header = *header;
        for place in 0..opened.min(count) {
            let (edge, here) = (header.edge(place), edges.start + place);
            tree.set_edge(edge, results.visits[here] as u32, results.sums[here], Link::NONE);
            let child = results.children[here];
            if child > 0 && (child as usize) < results.nodes {
                tree.set_child(edge, child as u32);
            }
        }
    }
    set_tree_fields(results, index, &mut tree);
    tree
}

/// Sets the fields of the tree as a whole.
fn set_tree_fields(results: &OffloadResults<'_>, index: usize, tree: &mut Tree) {
    tree.root_visits = 1 + results.done[index] as u32;
    tree.positions = 1 + results.made[index] as u32;
}
