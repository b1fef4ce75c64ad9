//! Batches: leaves are gathered one after another, evaluated together, and applied in the order they were gathered.
//! Everything a batch changes before `apply` is in the journal, so a batch that is dropped is taken back whole.

use crate::error::Error;
use crate::games::World;
use crate::runtime::random::fold;
use crate::search::config::{SearchConfig, MAX_ENDS_PER_GATHER};
use crate::search::path::TraceRow;
use crate::search::pending::PendingLeaf;
use crate::search::select::{descend, Descent, Reached, Start};
use crate::search::tree_search::{SearchState, Stop, ROOT_EVALUATION};
use crate::search::{backup, expand, leaf_analysis, scratch};
use crate::tree::{NodeIndex, Tree, ROOT};

/// What the outside says of one position (external worlds).
#[derive(Clone, Copy, Debug)]
pub struct StepResult<'a> {
    /// Who moves.
    pub to_play: u8,
    /// The returns, one per player, if the game is over.
    pub returns: Option<&'a [f64]>,
    /// The rewards of the move that led here, one per player; empty if the game pays none.
    pub rewards: &'a [f64],
    /// The legal actions, if the game is not over.
    pub legal: &'a [u16],
}

impl<W: World> SearchState<W> {
    /// Gathers until the batch is full: `in_flight` leaves, no more simulations wanted, or a leaf met that is under way already.
    /// External worlds gather one leaf at a time, because only `step` can say whether the game is over there.
    pub fn gather(&mut self, tree: &mut Tree, config: &SearchConfig) {
        let mut descents = scratch::descents::<W>(&self.root);
        self.open_batch(tree, config, &mut descents[0]);
        self.continue_batch(tree, config, &mut descents[0]);
        scratch::keep::<W>(descents);
    }

    /// Begins a batch, if none has begun.
    pub(crate) fn open_batch(&mut self, tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>) {
        self.prepare_root_with(tree, config, descent);
        self.journal.begin(tree, self.simulations);
        if config.evaluates_root() && tree.root_visits == 0 && !backup::root_is_proven(tree) {
            if self.pending.is_empty() {
                self.add_root(tree, descent);
            }
            self.full_batch = true;
        }
    }

    /// Gathers the rest of a batch that has begun.
    pub(crate) fn continue_batch(&mut self, tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>) {
        while self.begin_descent(tree, config, descent) {
            let reached = descend::<W>(tree, config, descent, &mut self.journal);
            if !self.finish_descent(tree, config, reached, descent) {
                return;
            }
        }
    }

    /// Begins the next descent of the batch; false if it has all the leaves it will get.
    pub(crate) fn begin_descent(&mut self, tree: &Tree, config: &SearchConfig, descent: &mut Descent<W::State>) -> bool {
        let in_flight = self.pending.len();
        self.full_batch |= in_flight >= config.in_flight as usize || self.ends >= MAX_ENDS_PER_GATHER || !self.wants_more(tree, config);
        if self.full_batch {
            return false;
        }
        let key = fold(self.key, self.simulations + in_flight as u64);
        let start = Start { first: self.scheduled_place(tree, config, descent), in_flight: in_flight as u32, key };
        descent.begin(tree, &self.root, start);
        true
    }

    /// Deals with where the descent has ended; false if the batch has to wait for the outside before it can go on.
    pub(crate) fn finish_descent(
        &mut self,
        tree: &mut Tree,
        config: &SearchConfig,
        reached: Reached,
        descent: &mut Descent<W::State>,
    ) -> bool {
        match reached {
            Reached::InFlight => self.full_batch = true,
            Reached::Exact(node) => {
                self.ends += 1;
                self.back_up_exact(tree, config, node, descent);
            }
            Reached::New => {
                let key = fold(self.key, self.simulations + self.pending.len() as u64);
                if W::EXTERNAL {
                    self.add_pending(tree, key, None, descent);
                    return !W::STEPPED;
                }
                if let Some(node) = self.expand_terminal(tree, config, descent) {
                    self.ends += 1;
                    self.back_up_exact(tree, config, node, descent);
                } else {
                    let node = self.expand_leaf(tree, config, descent);
                    self.add_pending(tree, key, node, descent);
                }
            }
        }
        true
    }

    /// The root waits to be evaluated: a leaf at the end of an empty path.
    fn add_root(&mut self, tree: &mut Tree, descent: &mut Descent<W::State>) {
        descent.path.clear();
        descent.state.clone_from(&self.root);
        self.add_pending(tree, fold(self.key, ROOT_EVALUATION), Some(ROOT), descent);
        if let Some(leaf) = self.pending.last_mut() {
            leaf.slot = tree.slot(ROOT).unwrap_or(u32::MAX);
        }
    }

    fn add_pending(&mut self, tree: &mut Tree, key: u64, node: Option<NodeIndex>, descent: &mut Descent<W::State>) {
        for step in &descent.path {
            tree.add_in_flight(step.edge, 1);
        }
        let simulation = self.simulations + self.pending.len() as u64;
        let root = &self.root;
        let leaf = self.pending.add(|| PendingLeaf {
            path: Vec::new(),
            state: root.clone(),
            simulation,
            key,
            node,
            slot: u32::MAX,
            value: None,
            mate: None,
            hints: Vec::new(),
            trace: Vec::new(),
        });
        // Copied, so that what the thread works with stays in its cache.
        leaf.path.clone_from(&descent.path);
        std::mem::swap(&mut leaf.state, &mut descent.state);
        std::mem::swap(&mut leaf.trace, &mut descent.trace);
        (leaf.simulation, leaf.key, leaf.node, leaf.slot) = (simulation, key, node, u32::MAX);
        (leaf.value, leaf.mate) = (None, None);
    }

    /// The nodes whose moves wait for priors, with the values of their positions.
    pub fn waiting_nodes(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.pending.iter().filter(|leaf| leaf.value.is_none()).filter_map(|leaf| leaf.node)
    }

    /// Takes the outside's word on the leaf gathered last. An end is backed up at once and leaves the batch.
    pub fn step(&mut self, tree: &mut Tree, config: &SearchConfig, answer: StepResult<'_>) {
        let Some(leaf) = self.pending.last_mut() else { return };
        let Some(last) = leaf.path.last().copied() else { return };
        self.journal.edge(tree, last.edge);
        let node = if let Some(returns) = answer.returns {
            expand::end(tree, config, last.edge, answer.to_play, returns)
        } else {
            let forced_depth_left = tree.node(last.node).forced_depth_left.saturating_sub(1);
            let node = tree.add_node(answer.to_play, forced_depth_left);
            tree.set_child(last.edge, node);
            tree.add_edges(node, answer.legal);
            node
        };
        tree.set_slot(node, leaf.slot);
        if config.has_rewards {
            tree.set_rewards(node, answer.rewards);
        }
        if answer.returns.is_some() {
            for step in &leaf.path {
                tree.add_in_flight(step.edge, -1);
            }
            let mut descents = scratch::descents::<W>(&self.root);
            std::mem::swap(&mut descents[0].path, &mut leaf.path);
            std::mem::swap(&mut descents[0].trace, &mut leaf.trace);
            self.pending.drop_last();
            self.ends += 1;
            self.back_up_exact(tree, config, node, &mut descents[0]);
            scratch::keep::<W>(descents);
        } else {
            leaf.node = Some(node);
        }
    }

    /// Backs up one value per player for each waiting leaf, in order, and closes the batch. `values` holds `players` numbers for
    /// each leaf that no playout has valued, `priors` one for each legal move of each leaf (none: they are even).
    /// Nothing here can fail: what comes from outside is checked before.
    pub fn apply(&mut self, tree: &mut Tree, config: &SearchConfig, values: &[f64], mut priors: &[f32]) {
        let mut rows = values.chunks_exact(config.players);
        let mut leaves = std::mem::take(&mut self.pending);
        for leaf in &mut leaves {
            for step in &leaf.path {
                tree.add_in_flight(step.edge, -1);
            }
            let played_out;
            let row = match leaf.value {
                Some(value) => {
                    played_out = [value, -value];
                    &played_out[..]
                }
                None => rows.next().unwrap_or(&[0.0, 0.0]),
            };
            let is_root = leaf.path.is_empty();
            if config.trace && !is_root {
                let steps = std::mem::take(&mut leaf.trace);
                self.trace.push(TraceRow { simulation: leaf.simulation, steps, values: row.to_vec() });
            }
            if let (Some(node), Some(mate)) = (leaf.node, leaf.mate) {
                let header = tree.node_mut(node);
                // Nothing below is ever looked at.
                header.num_edges = 0;
                (header.proven, header.distance) = (mate.value, mate.plies);
            } else if let Some(node) = leaf.node {
                let header = tree.node_mut(node);
                header.raw = row[header.to_play as usize];
                if tree.shape().returns {
                    tree.set_returns(node, row);
                }
                if config.rule.uses_priors() {
                    let own = tree.priors_mut(node);
                    if priors.is_empty() {
                        expand::even_priors(tree, node);
                    } else {
                        let (these, rest) = priors.split_at(own.len());
                        own.copy_from_slice(these);
                        priors = rest;
                    }
                }
                if let Some(knowledge) = &config.knowledge {
                    if is_root {
                        leaf_analysis::restrict_hints::<W>(tree, &self.root, &mut leaf.hints);
                    }
                    leaf_analysis::order_edges(tree, knowledge, node, &leaf.hints);
                }
            }
            if config.is_plain() {
                backup::zero_sum(tree, &leaf.path, row[0]);
            } else {
                backup::per_player(tree, &leaf.path, &mut row.to_vec());
            }
            if leaf.mate.is_some() && config.solves() {
                backup::hand_up(tree, &leaf.path, |_, _| {});
            }
            if let Some(knowledge) = config.knowledge.as_deref().filter(|knowledge| knowledge.priority.is_some()) {
                self.history_table.update(tree, knowledge, config.num_actions, &leaf.path, row[0]);
            }
            self.simulations += u64::from(!is_root);
        }
        leaves.clear();
        self.pending = leaves;
        self.close();
    }

    /// Whether a batch is under way, if only one whose leaves were all ends.
    #[must_use]
    pub fn has_batch(&self) -> bool {
        self.journal.is_open()
    }

    pub(crate) fn close(&mut self) {
        self.journal.commit();
        self.full_batch = false;
        self.ends = 0;
    }

    /// Takes back the batch under way; the slots its leaves had.
    pub fn roll_back(&mut self, tree: &mut Tree) -> Vec<u32> {
        let mut released: Vec<u32> = Vec::new();
        for leaf in self.pending.iter() {
            for step in &leaf.path {
                tree.add_in_flight(step.edge, -1);
            }
            if leaf.node.is_none() && leaf.slot != u32::MAX {
                released.push(leaf.slot);
            }
        }
        self.pending.clear();
        let slots: Vec<Option<u32>> = tree.indices().map(|node| tree.slot(node)).collect();
        if let Some(simulations) = self.journal.roll_back(tree) {
            self.simulations = simulations;
            self.trace.retain(|row| row.simulation < simulations);
        }
        released.extend(slots.into_iter().skip(tree.num_nodes()).flatten());
        self.close();
        released
    }

    /// PendingLeaves in flight with an evaluator inside the engine: gathered one after another, evaluated on `threads`, applied in order.
    pub(crate) fn run_in_flight(&mut self, tree: &mut Tree, config: &SearchConfig, threads: usize, pause: u64, stop: Stop<'_>) {
        while self.simulations < pause && self.wants_more(tree, config) && !stop() {
            self.gather(tree, config);
            leaf_analysis::analyze_leaves_parallel::<W>(threads, config, &self.history_table, &mut self.pending);
            self.apply(tree, config, &[], &[]);
        }
    }
}

/// The largest value of a leaf: rewards of up to 1e12 that a playout has added up, far from what overflows when visits add it up.
const LARGEST_VALUE: f64 = 1e30;

/// Checks the values an evaluator gave: one per leaf for the player to move, or one per player.
///
/// # Errors
/// `Error::Evaluation` names the row and what was wrong.
pub fn check_values(values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| value.is_nan() || value.abs() > LARGEST_VALUE) {
        None => Ok(()),
        Some(row) if values[row].is_finite() => {
            Err(Error::Evaluation(format!("values[{row}] is {:?}: a value may be at most 1e+30 in size", values[row])))
        }
        Some(row) => Err(Error::Evaluation(format!("values[{row}] is {}: every value must be a finite number", values[row]))),
    }
}
