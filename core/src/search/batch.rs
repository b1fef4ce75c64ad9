//! Batches: leaves are gathered one after another, evaluated together and backed up in gathering order. Changes before `apply` are
//! journalled, so that a batch can be rolled back.

use crate::error::Error;
use crate::games::analysis::LeafAnalysis;
use crate::games::World;
use crate::runtime::random::{fold, Purpose, Random};
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::{WorldConfig, MAX_TERMINALS_PER_GATHER};
use crate::search::move_ordering::{order_edges, HistoryTable};
use crate::search::path::count_in_flight;
use crate::search::pending::PendingLeaf;
use crate::search::select::{descend, Descent, Reached};
use crate::search::tree_search::{SearchState, Stop, ROOT_EVALUATION};
use crate::search::{backup, chance, expand, leaf_analysis};
use crate::tree::{NodeIndex, Tree, ROOT};

/// Minimum number of leaves per thread for `analyze_leaves`.
const MIN_SHARE: usize = 2;

/// Result of one environment step.
#[derive(Clone, Copy, Debug)]
pub struct StepResult<'a> {
    /// The player to move, or `CHANCE`.
    pub to_play: u8,
    /// The returns per player, if the game is over.
    pub returns: Option<&'a [f64]>,
    /// The rewards of the move per player; empty if the game has none.
    pub rewards: &'a [f64],
    /// The legal actions, if the game is not over; at a chance node its outcomes.
    pub legal: &'a [u16],
    /// The probabilities of the outcomes of a chance node.
    pub probabilities: &'a [f64],
    /// The values of the position per player, if it was evaluated with the step and is neither terminal nor a chance node; else
    /// empty, and the leaf waits for an evaluator.
    pub values: &'a [f64],
}

impl<W: World> SearchState<W> {
    /// Gathers until the batch is full: `in_flight` leaves, no simulation budget left, or a descent that ends at a leaf in flight.
    /// Leaves of compiled worlds are then analyzed, on up to `threads` threads. External worlds gather one leaf at a time, because
    /// only `step` tells whether it is terminal.
    pub(crate) fn gather(&mut self, tree: &mut Tree, config: &WorldConfig<W>, threads: usize) {
        if self.awaits_step() {
            return;
        }
        self.with_descent(|this, descent| {
            this.open_batch(tree, config, descent);
            while this.gather_leaf(tree, config, descent) {}
        });
        if !W::HAS_SLOTS {
            analyze_leaves::<W>(threads, config, &self.history_table, &mut self.pending);
        }
    }

    /// Opens a batch unless one is open.
    fn open_batch(&mut self, tree: &mut Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>) {
        self.prepare_root_with(tree, config, descent);
        self.journal.begin(tree, self.simulations, self.bounds);
        if config.evaluates_root() && tree.root_visits == 0 && !backup::root_is_proven(tree) {
            if self.pending.is_empty() {
                self.add_root(tree, descent);
            }
            self.full_batch = true;
        }
    }

    /// Runs the next descent of the batch; false if the batch is full, or its last leaf must be stepped outside first.
    fn gather_leaf(&mut self, tree: &mut Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>) -> bool {
        let in_flight = self.pending.len();
        self.full_batch |=
            in_flight >= config.in_flight as usize || self.terminals >= MAX_TERMINALS_PER_GATHER || !self.wants_more(tree, config);
        if self.full_batch {
            return false;
        }
        let key = fold(self.key, self.simulations + in_flight as u64);
        self.return_to_root(tree, config, key, descent);
        let exact = match descend::<W>(tree, config, descent, &mut self.journal) {
            Reached::New if W::HAS_SLOTS => {
                self.add_pending(tree, key, None, descent);
                return !W::NEEDS_STEP;
            }
            Reached::New => self.expand_terminal(tree, config, descent),
            Reached::Exact(node) => Some(node),
            Reached::InFlight => {
                self.full_batch = true;
                return false;
            }
        };
        // The batch continues after terminal positions.
        if let Some(node) = exact {
            self.terminals += 1;
            self.back_up_exact(tree, config, node, descent);
        } else {
            let node = self.expand_leaf(tree, config, descent);
            self.add_pending(tree, key, node, descent);
        }
        true
    }

    /// Adds the root to the batch, as a leaf with an empty path.
    fn add_root(&mut self, tree: &mut Tree, descent: &mut Descent<W::State>) {
        descent.path.clear();
        descent.state.clone_from(&self.root);
        self.add_pending(tree, fold(self.key, ROOT_EVALUATION), Some(ROOT), descent);
        if let Some(leaf) = self.pending.last_mut() {
            leaf.slot = tree.slot(ROOT).unwrap_or(u32::MAX);
        }
    }

    fn add_pending(&mut self, tree: &mut Tree, key: u64, node: Option<NodeIndex>, descent: &mut Descent<W::State>) {
        count_in_flight(tree, &descent.path, 1);
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
            step_values: Vec::new(),
            proof: None,
            hints: Vec::new(),
            trace: Vec::new(),
            playout_rewards: 0.0,
            weight: 1.0,
            outcome_random: Random::new(0, Purpose::Outcome),
        });
        // Copied, so that the thread's buffer stays in its cache.
        leaf.path.clone_from(&descent.path);
        std::mem::swap(&mut leaf.state, &mut descent.state);
        std::mem::swap(&mut leaf.trace, &mut descent.trace);
        (leaf.simulation, leaf.key, leaf.node, leaf.slot) = (simulation, key, node, u32::MAX);
        (leaf.value, leaf.proof) = (None, None);
        leaf.step_values.clear();
        if W::NEEDS_STEP {
            leaf.outcome_random = descent.outcome_random.clone();
        }
    }

    /// Returns whether the leaf gathered last must be stepped outside, also once more behind a chance node.
    pub(crate) fn awaits_step(&self) -> bool {
        W::NEEDS_STEP && self.pending.last().is_some_and(|leaf| leaf.node.is_none())
    }

    /// Returns the nodes whose edges wait for priors.
    pub(crate) fn waiting_nodes(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.pending.iter().filter(|leaf| leaf.awaits_value()).filter_map(|leaf| leaf.node)
    }

    /// Stores the step of the leaf gathered last. A terminal position is backed up at once and leaves the batch.
    pub(crate) fn step(&mut self, tree: &mut Tree, config: &WorldConfig<W>, result: StepResult<'_>) {
        let Some(leaf) = self.pending.last_mut() else { return };
        let Some(last) = leaf.path.last().copied() else { return };
        self.journal.edge(tree, last.edge);
        let node = if let Some(returns) = result.returns {
            expand::terminal(tree, config, last.edge, result.to_play, returns)
        } else {
            let node = tree.add_node(result.to_play);
            tree.set_child(last.edge, node);
            if tree.node(node).is_chance() {
                chance::add_outcomes(tree, node, result.legal, result.probabilities.iter().copied());
            } else {
                tree.add_edges(node, result.legal);
            }
            node
        };
        tree.set_slot(node, leaf.slot);
        if config.has_rewards {
            tree.set_rewards(node, result.rewards);
        }
        if result.returns.is_some() {
            count_in_flight(tree, &leaf.path, -1);
            self.with_descent(|this, descent| {
                if let Some(leaf) = this.pending.last_mut() {
                    std::mem::swap(&mut descent.path, &mut leaf.path);
                    std::mem::swap(&mut descent.trace, &mut leaf.trace);
                }
                this.pending.drop_last();
                this.terminals += 1;
                this.back_up_exact(tree, config, node, descent);
            });
        } else if tree.node(node).is_chance() {
            // The position of its outcome is the next one to step.
            let (step, record) = chance::follow(tree, config, node, &mut leaf.outcome_random, &mut self.journal);
            leaf.path.push(step);
            leaf.trace.extend(record);
            leaf.slot = u32::MAX;
        } else {
            leaf.node = Some(node);
            leaf.step_values.extend_from_slice(result.values);
        }
    }

    /// Backs up the pending leaves in order and closes the batch. `values` has one number per player for each leaf without a known
    /// value, `priors` one per edge of each leaf (empty: uniform). Input was validated before: this cannot fail.
    pub(crate) fn apply(&mut self, tree: &mut Tree, config: &WorldConfig<W>, values: &[f64], mut priors: &[f32]) {
        let mut rows = values.chunks_exact(config.num_players);
        let mut leaves = std::mem::take(&mut self.pending);
        let ordering = config.analysis.as_deref().and_then(LeafAnalysis::ordering);
        for leaf in &mut leaves {
            count_in_flight(tree, &leaf.path, -1);
            let played_out;
            let row = match leaf.value {
                Some(value) => {
                    played_out = expand::per_player(value);
                    &played_out[..W::NUM_PLAYERS.min(2)]
                }
                None if leaf.playout_rewards != 0.0 || leaf.weight != 1.0 => {
                    played_out = expand::per_player(leaf.playout_rewards + leaf.weight * rows.next().map_or(0.0, |row| row[0]));
                    &played_out[..W::NUM_PLAYERS.min(2)]
                }
                None if !leaf.step_values.is_empty() => &leaf.step_values,
                None => rows.next().unwrap_or(&[0.0, 0.0]),
            };
            let is_root = leaf.path.is_empty();
            if config.trace && !is_root {
                self.record(leaf.simulation, &mut leaf.trace, row);
            }
            if let (Some(node), Some(result)) = (leaf.node, leaf.proof) {
                let header = tree.node_mut(node);
                // Nothing below it is searched.
                header.num_edges = 0;
                (header.proven, header.distance) = (result.value, result.plies);
            } else if let Some(node) = leaf.node {
                let header = tree.node_mut(node);
                header.raw_value = row[header.to_play as usize];
                if tree.shape().player_values {
                    tree.set_returns(node, row);
                }
                if config.rule.uses_priors() {
                    let own = tree.priors_mut(node);
                    if priors.is_empty() {
                        expand::uniform_priors(tree, node);
                    } else {
                        let (these, rest) = priors.split_at(own.len());
                        own.copy_from_slice(these);
                        priors = rest;
                    }
                }
                if let Some(ordering) = &ordering {
                    if is_root {
                        leaf_analysis::restrict_hints::<W>(tree, &self.root, &mut leaf.hints);
                    }
                    order_edges(tree, ordering, node, &leaf.hints);
                }
            }
            self.back_up(tree, config, &leaf.path, row);
            if leaf.proof.is_some() && config.solves() {
                backup::propagate_proof(tree, &leaf.path, |_, _| {});
            }
            if let Some(ordering) = &ordering {
                self.history_table.update(tree, ordering, config.num_actions, &leaf.path, row[0]);
            }
            self.simulations += u64::from(!is_root);
        }
        leaves.clear();
        self.pending = leaves;
        self.close();
    }

    /// Returns whether a batch is open, even if all its leaves were terminal.
    #[must_use]
    pub(crate) fn has_batch(&self) -> bool {
        self.journal.is_open()
    }

    pub(crate) fn close(&mut self) {
        self.journal.commit();
        self.full_batch = false;
        self.terminals = 0;
    }

    /// Rolls back the open batch; returns the slots of its leaves.
    pub(crate) fn roll_back(&mut self, tree: &mut Tree) -> Vec<u32> {
        let mut released: Vec<u32> = Vec::new();
        for leaf in self.pending.iter() {
            count_in_flight(tree, &leaf.path, -1);
            if leaf.node.is_none() && leaf.slot != u32::MAX {
                released.push(leaf.slot);
            }
        }
        self.pending.clear();
        let slots: Vec<Option<u32>> = tree.indices().map(|node| tree.slot(node)).collect();
        if let Some((simulations, bounds)) = self.journal.roll_back(tree) {
            (self.simulations, self.bounds) = (simulations, bounds);
            self.trace.retain(|row| row.simulation < simulations);
        }
        released.extend(slots.into_iter().skip(tree.num_nodes()).flatten());
        self.close();
        released
    }

    /// Runs batches with a leaf evaluation inside the engine, on up to `threads` threads.
    pub(crate) fn run_in_flight(
        &mut self,
        tree: &mut Tree,
        config: &WorldConfig<W>,
        threads: usize,
        until_simulation: u64,
        stop: Stop<'_>,
    ) {
        while self.simulations < until_simulation && self.wants_more(tree, config) && !stop() {
            self.gather(tree, config, threads);
            self.apply(tree, config, &[], &[]);
        }
    }
}

/// Analyzes the pending leaves, and values those with an evaluation inside the engine, on up to `threads` threads.
fn analyze_leaves<W: World>(threads: usize, config: &WorldConfig<W>, history_table: &HistoryTable, leaves: &mut [PendingLeaf<W::State>]) {
    let share = leaves.len().div_ceil(threads).max(MIN_SHARE);
    parallel_for(threads, leaves.chunks_mut(share), |leaves| {
        for leaf in leaves {
            leaf.proof = leaf_analysis::analyze_position::<W>(config, history_table, &leaf.state, leaf.path.len(), &mut leaf.hints);
            leaf.value = match leaf.proof {
                Some(result) => Some(f64::from(if W::to_play(&leaf.state) == 0 { result.value } else { -result.value })),
                None => {
                    let found = config.evaluate(&mut leaf.state, leaf.key);
                    (leaf.playout_rewards, leaf.weight) = if found.is_complete { (0.0, 1.0) } else { (found.value, found.weight) };
                    found.is_complete.then_some(found.value)
                }
            };
        }
    });
}

/// Upper bound of the size of a leaf's value: rewards of up to `LARGEST_REWARD` summed by a playout, without overflow in W.
pub(crate) const MAX_VALUE: f64 = 1e30;

/// Checks the values of an evaluator.
///
/// # Errors
/// `Error::Evaluation` names the row.
pub(crate) fn check_values(values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| value.is_nan() || value.abs() > MAX_VALUE) {
        None => Ok(()),
        Some(row) if values[row].is_finite() => {
            Err(Error::Evaluation(format!("values[{row}] is {:?}: a value may be at most 1e+30 in size", values[row])))
        }
        Some(row) => Err(Error::Evaluation(format!("values[{row}] is {}: every value must be a finite number", values[row]))),
    }
}
