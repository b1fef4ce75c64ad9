//! Trees that are searched elsewhere: beside their network or model, where that computes. The engine says what the roots are, and is
//! told what was results; the trees are then as if it had searched them itself.

use std::ops::Range;

use super::{piece_size, threads_for, Forest};
use crate::games::World;
use crate::runtime::thread_pool::parallel_for;
use crate::search::tree_search::TreeSearch;
use crate::tree::{Link, OrderedEdge, Tree, ROOT};

/// More simulations do not fit into the numbers of children elsewhere.
const MOST_SIMULATIONS: u64 = 32_000;

/// What a search elsewhere is told of all roots; a row for each tree, in which edges have `num_actions` places.
#[derive(Clone, Debug, Default)]
pub struct ExportedRoots {
    /// Simulations that each tree wants.
    pub simulations: usize,
    /// How many moves each root has.
    pub counts: Vec<i32>,
    /// Who moves.
    pub to_play: Vec<i32>,
    /// The moves, in the order of their places.
    pub actions: Vec<i16>,
    /// Their priors.
    pub priors: Vec<f32>,
    /// The roots' own values.
    pub raw: Vec<f64>,
    /// Keys of random numbers.
    pub keys: Vec<u64>,
    /// Simulations that each tree had in its life.
    pub begun: Vec<u64>,
    /// The slot of the root, and those for the position of each simulation, where positions have slots.
    pub slots: Vec<i64>,
    /// Of Gumbel search: what each action has beside its value.
    pub draws: Vec<f64>,
    /// Of Gumbel search: the visits that the move chosen in each simulation must have had.
    pub considered: Vec<i32>,
    /// Of rules with PUCT: the weight of exploration by N.
    pub weights: Vec<f64>,
}

/// What is read off one tree.
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    count: i32,
    to_play: i32,
    raw: f64,
    key: u64,
    begun: u64,
    slot: Option<u32>,
}

/// What was results: `nodes` nodes of each tree, in the order of their simulations, the root first. Rows as in `ExportedRoots`.
#[derive(Clone, Copy, Debug)]
pub struct OffloadResults<'a> {
    /// Simulations that were done in each tree.
    pub done: &'a [i32],
    /// Nodes that were made in each tree, beside its root.
    pub made: &'a [i32],
    /// Nodes of each tree that there is room for: all, or the root alone.
    pub nodes: usize,
    /// To play, moves (none at an end), moves tried, nothing: four numbers a node.
    pub headers: &'a [i32],
    /// Their own values.
    pub raw: &'a [f64],
    /// The reward of the move to each (history_table models).
    pub rewards: &'a [f64],
    /// The discount of the move to each (history_table models).
    pub discounts: &'a [f64],
    /// W of each edge.
    pub sums: &'a [f64],
    /// N of each edge.
    pub visits: &'a [i32],
    /// P of each edge.
    pub priors: &'a [f32],
    /// The move of each edge.
    pub actions: &'a [i16],
    /// The node below each edge, or -1.
    pub children: &'a [i16],
    /// The lowest and the highest Q of each tree.
    pub bounds: &'a [f64],
    /// As the roots had them.
    pub slots: &'a [i64],
}

impl OffloadResults<'_> {
    /// Whether all columns have as many entries as they should.
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
    /// Whether all trees are new, but that their roots may have been evaluated, and want the same number of simulations.
    #[must_use]
    pub fn all_new(&self) -> bool {
        are_new(&self.trees)
    }

    /// What a search elsewhere has to know of the roots of some trees. None unless those are new, their roots evaluated, and want the
    /// same number of simulations.
    pub fn export_roots(&mut self, range: Range<usize>) -> Option<ExportedRoots> {
        let searches = self.trees.get_mut(range)?;
        let wanted = searches.first().map(|tree| tree.search_state.target - tree.search_state.simulations)?;
        if !are_new(searches) || searches.iter().any(|search| search.tree().root_visits != 1) {
            return None;
        }
        let threads = threads_for(searches.len(), 200 + 40 * self.config.num_actions, self.threads);
        let size = piece_size(searches.len(), threads);
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
        let mut headers = vec![Header::default(); trees];
        let pieces = searches.chunks(size).zip(headers.chunks_mut(size));
        let edges = roots.actions.chunks_mut(size * width).zip(roots.priors.chunks_mut(size * width));
        parallel_for(threads, pieces.zip(edges), |((trees, headers), (actions, priors))| {
            let rows = actions.chunks_mut(width).zip(priors.chunks_mut(width));
            for ((search, header), (actions, priors)) in trees.iter().zip(headers).zip(rows) {
                let (tree, search_state) = (search.tree(), &search.search_state);
                let node = tree.node(ROOT);
                *header = Header {
                    count: i32::from(node.num_edges),
                    to_play: i32::from(node.to_play),
                    raw: node.raw,
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

    /// Gives slots back that `export_roots` has taken for `trees`, and nothing was results for.
    pub fn cancel_export(&mut self, trees: usize, slots: &[i64]) {
        for own in slots.chunks((slots.len() / trees.max(1)).max(1)) {
            let unused: Vec<u32> = own.iter().skip(1).map(|&slot| slot as u32).collect();
            self.slots.release(&unused);
        }
    }

    /// Takes what was results elsewhere of some trees, the first of which is number `first`: of the roots alone, and then of all nodes,
    /// if they are asked for; whether it can be.
    pub fn import_results(&mut self, first: usize, results: &OffloadResults<'_>) -> bool {
        let (trees, width) = (results.done.len(), self.config.num_actions);
        let Some(searches) = self.trees.get_mut(first..first.saturating_add(trees)) else { return false };
        let shape = self.config.shape();
        let has_slots = !shape.slots || results.slots.len() / trees.max(1) >= results.nodes;
        let has_discounts = !shape.discounts || [results.rewards.len(), results.discounts.len()] == [trees * results.nodes; 2];
        let is_planted = results.done.iter().chain(results.made).all(|&count| count >= 0);
        if !results.has_consistent_lengths(trees, width) || !is_planted || trees == 0 || !has_slots || !has_discounts {
            return false;
        }
        let threads = threads_for(trees, (200 + 10 * width) * results.nodes, self.threads);
        let size = piece_size(trees, threads);
        parallel_for(threads, searches.chunks_mut(size).enumerate(), |(piece, searches)| {
            for (place, search) in searches.iter_mut().enumerate() {
                let index = piece * size + place;
                if results.nodes > 1 {
                    let mut tree = import_tree(results, index, width, Tree::new(shape));
                    tree.clean_priors.clone_from(&search.tree().clean_priors);
                    search.replant(tree);
                } else {
                    import_root(results, index, width, search.split_mut().0);
                }
                search.search_state.simulations = search.search_state.begun + results.done[index] as u64;
            }
        });
        // Of a search that was stopped, slots are left over. The roots are told first, and once.
        if results.nodes == 1 && shape.slots {
            for (own, &made) in results.slots.chunks(results.slots.len() / trees).zip(results.made) {
                let unused: Vec<u32> = own.iter().skip(1 + made as usize).map(|&slot| slot as u32).collect();
                self.slots.release(&unused);
            }
        }
        true
    }
}

/// Whether trees have never been searched, and want the same number of simulations.
fn are_new<W: World>(trees: &[TreeSearch<W>]) -> bool {
    let wanted = |search: &TreeSearch<W>| search.search_state.target - search.search_state.simulations;
    let first = trees.first().map_or(0, wanted);
    let is_new = |tree: &Tree| tree.num_nodes() == 1 && tree.node(ROOT).opened == 0 && tree.root_visits <= 1;
    let is_like_first = |search: &TreeSearch<W>| wanted(search) == first && !search.search_state.has_batch() && is_new(search.tree());
    (1..=MOST_SIMULATIONS).contains(&first) && trees.iter().all(is_like_first)
}

/// Tells the new `tree` number `index` what was results of its root.
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

/// Tree `index` of those results, in an empty `tree`.
fn import_tree(results: &OffloadResults<'_>, index: usize, width: usize, mut tree: Tree) -> Tree {
    let slots = results.slots.chunks((results.slots.len() / results.done.len()).max(1)).nth(index).unwrap_or_default();
    // Of a search that was stopped, or met ends, there are fewer nodes than there is room for.
    for number in 0..results.nodes.min(results.made[index] as usize + 1) {
        let at = index * results.nodes + number;
        let [to_play, count, opened] = [0, 1, 2].map(|field| results.headers[4 * at + field]);
        let (count, opened) = ((count.max(0) as usize).min(width), opened.max(0) as usize);
        let edges = at * width..at * width + count;
        let actions: Vec<u16> = results.actions[edges.clone()].iter().map(|&action| action as u16).collect();
        let node = tree.add_node(to_play as u8, 0);
        tree.add_edges(node, &actions);
        tree.priors_mut(node).copy_from_slice(&results.priors[edges.clone()]);
        if let Some(&slot) = slots.get(number) {
            tree.set_slot(node, slot as u32);
        }
        if tree.shape().discounts {
            tree.set_reward_discount(node, results.rewards[at], results.discounts[at], 0.0);
        }
        let header = tree.node_mut(node);
        (header.raw, header.opened, header.end) = (results.raw[at], opened.min(count) as u16, count == 0);
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

/// Notes what is told of a tree as a whole.
fn set_tree_fields(results: &OffloadResults<'_>, index: usize, tree: &mut Tree) {
    tree.root_visits = 1 + results.done[index] as u32;
    tree.positions = 1 + results.made[index] as u32;
    tree.bounds = (results.bounds[2 * index], results.bounds[2 * index + 1]);
}
