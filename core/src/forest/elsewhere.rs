//! Trees of a learned model that are searched elsewhere: beside the model, where that computes. The engine says what the roots are,
//! and is told what was found; the trees are then as if it had searched them itself.

use super::{piece_size, Forest};
use crate::crew;
use crate::score::Score;
use crate::tree::{Link, Tree, ROOT};
use crate::world::Latent;

/// More simulations do not fit into the numbers of children elsewhere.
const MOST_SIMULATIONS: u64 = 32_000;

/// What a search elsewhere is told of all roots; a row for each tree, in which edges have `num_actions` places.
#[derive(Clone, Debug, Default)]
pub struct Roots {
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
    /// The slot of the root, and those for the position of each simulation.
    pub slots: Vec<i64>,
    /// Of Gumbel search: what each action has beside its value.
    pub draws: Vec<f64>,
    /// Of Gumbel search: the visits that the move chosen in each simulation must have had.
    pub considered: Vec<i32>,
    /// Of MuZero's rule: the weight of exploration by N.
    pub weights: Vec<f64>,
}

/// What was found: `nodes` nodes of each tree, in the order of their simulations, the root first. Rows as in `Roots`.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Simulations that were done in each tree.
    pub simulations: usize,
    /// Nodes of each tree that are told of: all, or the root alone.
    pub nodes: usize,
    /// To play, moves, moves tried, nothing: four numbers a node.
    pub headers: &'a [i32],
    /// Their own values.
    pub raw: &'a [f64],
    /// The reward of the move to each.
    pub rewards: &'a [f64],
    /// The discount of the move to each.
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

impl Found<'_> {
    /// Whether all columns have as many entries as they should.
    fn is_whole(&self, trees: usize, actions: usize) -> bool {
        let nodes = trees * self.nodes;
        let edges = nodes * actions;
        let per_node = [self.headers.len() / 4, self.raw.len(), self.rewards.len(), self.discounts.len()];
        let per_edge = [self.sums.len(), self.visits.len(), self.priors.len(), self.actions.len(), self.children.len()];
        per_node == [nodes; 4] && per_edge == [edges; 5] && self.bounds.len() == 2 * trees
    }
}

impl Forest<Latent> {
    /// What a search elsewhere has to know of the roots. None unless all trees are new and want the same number of simulations.
    pub fn leave(&mut self) -> Option<Roots> {
        let wanted = self.trees.first().map(|tree| tree.walker.target - tree.walker.simulations)?;
        let is_new = |tree: &Tree| tree.num_nodes() == 1 && tree.node(ROOT).opened == 0 && tree.root_visits == 1;
        let alike = self.trees.iter().all(|search| {
            search.walker.target - search.walker.simulations == wanted && !search.walker.has_batch() && is_new(search.tree())
        });
        if !alike || !(1..=MOST_SIMULATIONS).contains(&wanted) {
            return None;
        }
        let size = piece_size(self.trees.len(), self.threads);
        let parts = &self.parts;
        crew::together(self.threads, self.trees.chunks_mut(size), |trees| {
            for search in trees {
                let (tree, walker) = search.parts_mut();
                walker.settle_root(tree, parts);
            }
        });
        let (trees, width, simulations) = (self.trees.len(), self.parts.num_actions, wanted as usize);
        let mut roots = Roots {
            simulations,
            actions: vec![0; trees * width],
            priors: vec![0.0; trees * width],
            slots: Vec::with_capacity(trees * (simulations + 1)),
            ..Roots::default()
        };
        for (index, search) in self.trees.iter().enumerate() {
            let (tree, walker) = (search.tree(), &search.walker);
            let node = tree.node(ROOT);
            let edges = tree.edges(node);
            roots.counts.push(i32::from(node.num_edges));
            roots.to_play.push(i32::from(node.to_play));
            roots.raw.push(node.raw);
            roots.keys.push(walker.key);
            roots.begun.push(walker.simulations);
            for (place, (&action, &prior)) in edges.actions.iter().zip(edges.priors).enumerate() {
                (roots.actions[index * width + place], roots.priors[index * width + place]) = (action as i16, prior);
            }
            roots.slots.push(i64::from(tree.slot(ROOT).unwrap_or(u32::MAX)));
            roots.slots.extend((0..simulations).map(|_| i64::from(self.slots.take())));
            if let Some(schedule) = &walker.schedule {
                schedule.tell(width, simulations, &mut roots.draws, &mut roots.considered);
            }
        }
        if let Score::MuZero(rule) = &self.parts.score {
            roots.weights = (0..simulations as u32 + 2).map(|visits| rule.weight(visits)).collect();
        }
        Some(roots)
    }

    /// Gives slots back that `leave` has taken and nothing was found for.
    pub fn stay(&mut self, slots: &[i64]) {
        let per_tree = slots.len() / self.trees.len().max(1);
        for own in slots.chunks(per_tree.max(1)) {
            let unused: Vec<u32> = own.iter().skip(1).map(|&slot| slot as u32).collect();
            self.slots.give_back(&unused);
        }
    }

    /// Takes what was found elsewhere, of the roots alone or of all nodes, as often as one likes; whether it can be.
    pub fn come_back(&mut self, found: &Found<'_>) -> bool {
        let (trees, width) = (self.trees.len(), self.parts.num_actions);
        if !found.is_whole(trees, width) || trees == 0 || found.slots.len() / trees < found.nodes {
            return false;
        }
        let size = piece_size(trees, self.threads);
        let shape = self.parts.shape();
        crew::together(self.threads, self.trees.chunks_mut(size).enumerate(), |(piece, searches)| {
            for (place, search) in searches.iter_mut().enumerate() {
                let mut tree = grown(found, piece * size + place, width, Tree::new(shape));
                tree.clean_priors.clone_from(&search.tree().clean_priors);
                search.replant(tree);
                search.walker.simulations = search.walker.begun + found.simulations as u64;
            }
        });
        true
    }
}

/// Tree `index` of those found, in an empty `tree`.
fn grown(found: &Found<'_>, index: usize, width: usize, mut tree: Tree) -> Tree {
    let slots = &found.slots[index * (found.slots.len() / (found.raw.len() / found.nodes))..];
    // Of a search that was stopped there are fewer nodes than there is room for.
    for (number, &slot) in slots.iter().enumerate().take(found.nodes.min(found.simulations + 1)) {
        let at = index * found.nodes + number;
        let [to_play, count, opened] = [0, 1, 2].map(|field| found.headers[4 * at + field]);
        let (count, opened) = ((count.max(0) as usize).min(width), opened.max(0) as usize);
        let edges = at * width..at * width + count;
        let actions: Vec<u16> = found.actions[edges.clone()].iter().map(|&action| action as u16).collect();
        let node = tree.add_node(to_play as u8, 0);
        tree.add_edges(node, &actions);
        tree.priors_mut(node).copy_from_slice(&found.priors[edges.clone()]);
        tree.set_slot(node, slot as u32);
        tree.set_gain(node, found.rewards[at], found.discounts[at], 0.0);
        let header = tree.node_mut(node);
        (header.raw, header.opened) = (found.raw[at], opened.min(count) as u16);
        let header = *header;
        for place in 0..opened.min(count) {
            let (edge, here) = (header.edge(place), edges.start + place);
            tree.set_edge(edge, found.visits[here] as u32, found.sums[here], Link::NONE);
            let child = found.children[here];
            if child > 0 && (child as usize) < found.nodes {
                tree.set_child(edge, child as u32);
            }
        }
    }
    tree.root_visits = 1 + found.simulations as u32;
    tree.positions = 1 + found.simulations as u32;
    tree.bounds = (found.bounds[2 * index], found.bounds[2 * index + 1]);
    tree
}
