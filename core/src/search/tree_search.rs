//! One tree under search. `simulate` runs simulations inside the engine, `batch` those with leaves in flight.

use std::sync::{Arc, OnceLock};

use crate::games::analysis::LeafAnalysis;
use crate::games::World;
use crate::search::backup;
use crate::search::backup::{Bounds, NO_BOUNDS};
use crate::search::config::WorldConfig;
use crate::search::move_ordering::HistoryTable;
use crate::search::noise::Noise;
use crate::search::path::TraceRow;
use crate::search::pending::PendingLeaves;
use crate::search::root_answer::GumbelPolicy;
use crate::search::root_state::RootState;
use crate::search::sequential_halving::Schedule;
use crate::search::snapshot::Snapshot;
use crate::tree::journal::Journal;
use crate::tree::{NodeIndex, Tree, ROOT, UNPROVEN};

/// Returns whether to stop; polled every few simulations.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Simulations between two polls of `Stop`.
pub(super) const SIMULATIONS_PER_CHECK: u64 = 16;

/// Upper bound of the length of a schedule.
pub(super) const MAX_SCHEDULE: u64 = 1 << 26;

/// Simulation number of the root's evaluation, for its random numbers.
pub(super) const ROOT_EVALUATION: u64 = u64::MAX;

/// One tree and the state of its search.
#[derive(Clone, Debug)]
pub struct TreeSearch<W: World> {
    /// Shared with snapshots: copied on write.
    tree: Arc<Tree>,
    /// Separate, so that both can be borrowed at once.
    pub(crate) search_state: SearchState<W>,
}

/// The state of a search beside its tree.
#[derive(Clone, Debug)]
pub(crate) struct SearchState<W: World> {
    /// The position at the root (compiled worlds).
    pub root: W::State,
    /// Key of the tree's random numbers.
    pub key: u64,
    /// Simulations in the life of the tree.
    pub simulations: u64,
    /// Number of simulations at which the search stops.
    pub simulation_limit: u64,
    /// Number of simulations when the current limit was set.
    pub limit_start: u64,
    /// Number of simulations at which the search is planned to end: the limit, unless it runs step by step.
    pub planned_limit: u64,
    /// Leaves in flight.
    pub pending: PendingLeaves<W::State>,
    /// The recorded simulations.
    pub trace: Vec<TraceRow>,
    /// Whether the batch takes no more leaves.
    pub full_batch: bool,
    /// Terminal or proven nodes met in the batch.
    pub terminals: u32,
    /// Noise to mix into the root's priors before the next descent.
    pub noise: Option<Noise>,
    /// Schedule of the current limit at the root (Gumbel), once the root has its priors.
    pub schedule: Option<Arc<Schedule>>,
    /// The previous schedule; it determines the move until the new one has run a simulation.
    pub previous_schedule: Option<Arc<Schedule>>,
    /// Given Gumbel numbers by action; None draws them.
    pub gumbel: Option<Vec<f64>>,
    /// Killers and history.
    pub history_table: HistoryTable,
    /// Whether the root was analyzed.
    pub(crate) root_analyzed: bool,
    /// Plies below the root in which forced moves are searched.
    pub(crate) forced_depth: u8,
    /// Lowest and highest mean value, if the rule normalizes by them.
    pub(crate) bounds: Bounds,
    /// Data of the root that snapshots share; None is the default.
    pub(crate) root_state: Option<Arc<RootState>>,
    pub(crate) journal: Journal,
}

impl<W: World> TreeSearch<W> {
    /// Creates the search of a tree that has its root.
    #[must_use]
    pub fn new(tree: Tree, root: W::State, key: u64, forced_depth: u8) -> Self {
        let search_state = SearchState {
            root,
            key,
            simulations: 0,
            simulation_limit: 0,
            limit_start: 0,
            planned_limit: 0,
            pending: PendingLeaves::default(),
            trace: Vec::new(),
            full_batch: false,
            terminals: 0,
            noise: None,
            schedule: None,
            previous_schedule: None,
            gumbel: None,
            history_table: HistoryTable::default(),
            root_analyzed: false,
            forced_depth,
            bounds: NO_BOUNDS,
            root_state: None,
            journal: Journal::default(),
        };
        Self { tree: Arc::new(tree), search_state }
    }

    /// Returns a shared reference to the tree as it is now.
    #[must_use]
    pub fn shared_tree(&self) -> Arc<Tree> {
        Arc::clone(&self.tree)
    }

    /// Returns a snapshot of the search.
    #[must_use]
    pub fn snapshot(&self, config: &WorldConfig<W>) -> Snapshot {
        let state = &self.search_state;
        Snapshot {
            tree: self.shared_tree(),
            key: state.key,
            simulations: state.simulations,
            gumbel_policy: self.gumbel_policy(config),
            root_state: state.root_state.clone(),
            bounds: state.bounds,
            forced_depth: state.forced_depth,
            has_tags: config.analysis.as_ref().is_some_and(|analysis| analysis.ordering().is_some()),
            forced_depths: OnceLock::new(),
        }
    }

    /// Returns the position at the root (compiled worlds).
    #[must_use]
    pub fn root(&self) -> &W::State {
        &self.search_state.root
    }

    /// Returns the recorded simulations.
    #[must_use]
    pub fn trace(&self) -> &[TraceRow] {
        &self.search_state.trace
    }

    /// Returns the tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the data that determine move and policy of a Gumbel search; None for other rules.
    #[must_use]
    pub(crate) fn gumbel_policy(&self, config: &WorldConfig<W>) -> Option<GumbelPolicy> {
        let rule = config.rule.sequential_halving()?;
        let search_state = &self.search_state;
        let known =
            if search_state.simulations > search_state.limit_start { &search_state.schedule } else { &search_state.previous_schedule };
        let schedule = known.clone().unwrap_or_else(|| Arc::new(Schedule::unscheduled(&self.tree, rule)));
        Some(GumbelPolicy { completed_q: rule.completed_q, schedule })
    }

    /// Returns the tree, copied if a snapshot shares it, and the search state.
    pub(crate) fn split_mut(&mut self) -> (&mut Tree, &mut SearchState<W>) {
        (Arc::make_mut(&mut self.tree), &mut self.search_state)
    }

    /// Returns whether another simulation is wanted and possible.
    #[must_use]
    pub fn wants_more(&self, config: &WorldConfig<W>) -> bool {
        self.search_state.wants_more(&self.tree, config)
    }

    /// Runs at most `at_most` simulations inside the engine, until no more are wanted or `stop` returns true.
    pub fn run(&mut self, config: &WorldConfig<W>, threads: usize, at_most: u64, stop: Stop<'_>) {
        if !self.wants_more(config) {
            return;
        }
        let (tree, search_state) = (Arc::make_mut(&mut self.tree), &mut self.search_state);
        let until_simulation = search_state.simulations.saturating_add(at_most);
        if config.in_flight > 1 {
            search_state.run_in_flight(tree, config, threads, until_simulation, stop);
        } else {
            search_state.run_sequential(tree, config, until_simulation, stop);
        }
    }

    /// Makes the child of `action` the root and keeps its subtree, restricted to the `legal` actions at the new root if given.
    /// Returns the dropped nodes by old index, or None without a node to keep: the caller replaces the tree.
    pub fn advance_to_child(&mut self, action: u16, root_evaluated: bool, legal: Option<&[u16]>) -> Option<Vec<NodeIndex>> {
        let root = self.tree.node(ROOT);
        let edges = self.tree.edges(root);
        let offset = edges.actions.iter().position(|&a| a == action)?;
        let child = edges.links[offset].child().filter(|&child| !self.tree.node(child).terminal)?;
        let visits = edges.visits[offset];
        if self.tree.node(child).num_edges == 0 {
            return None;
        }
        let (mut new, new_index) = self.tree.copy_subtree(child, legal);
        if legal.is_some() {
            new.root_visits = 1 + new.edges(new.node(ROOT)).visits.iter().sum::<u32>();
        } else if root_evaluated {
            new.root_visits = visits;
        } else {
            // UCT does not evaluate its root: the value of its first visit no longer counts.
            new.root_visits = new.edges(new.node(ROOT)).visits.iter().sum();
            new.node_mut(ROOT).raw_value = 0.0;
        }
        let dropped = (0..new_index.len() as u32).filter(|&old| new_index[old as usize] == u32::MAX).collect();
        self.replace_tree(new, self.search_state.forced_depth.saturating_sub(1));
        Some(dropped)
    }

    /// Restricts the root, which has its priors, to `actions`; their subtrees stay.
    pub fn restrict_root(&mut self, actions: &[u16]) {
        let (mut new, _) = self.tree.copy_subtree(ROOT, Some(actions));
        let evaluated = self.tree.root_visits - self.tree.edges(self.tree.node(ROOT)).visits.iter().sum::<u32>();
        new.root_visits = evaluated + new.edges(new.node(ROOT)).visits.iter().sum::<u32>();
        // The proof of the root may have rested on a dropped move.
        let (proven, distance) = backup::solved_value(&new, ROOT).unwrap_or((UNPROVEN, 0));
        let root = new.node_mut(ROOT);
        (root.proven, root.distance) = (proven, distance);
        let priors = new.priors_mut(ROOT);
        let total: f32 = priors.iter().sum();
        if total > 0.0 {
            priors.iter_mut().for_each(|prior| *prior /= total);
        }
        self.replace_tree(new, self.search_state.forced_depth);
        // The analysis may prove the root by a dropped move.
        self.search_state.root_analyzed = true;
        self.search_state.reset_schedules();
    }

    /// Replaces the tree, keeping key and number of simulations; resets what belonged to the old root. Bounds are those of the kept
    /// edges, and of none in trees of learned models, as in mctx and the MuZero specification.
    pub fn replace_tree(&mut self, tree: Tree, forced_depth: u8) {
        let state = &mut self.search_state;
        let keeps_bounds = state.bounds != NO_BOUNDS && !tree.shape().model_columns;
        let bounds = if keeps_bounds { backup::bounds_of(&tree) } else { NO_BOUNDS };
        (state.forced_depth, state.bounds, state.root_state) = (forced_depth, bounds, None);
        self.tree = Arc::new(tree);
    }
}

impl<W: World> SearchState<W> {
    /// Returns whether another simulation is wanted and possible.
    #[inline]
    #[must_use]
    pub(crate) fn wants_more(&self, tree: &Tree, config: &WorldConfig<W>) -> bool {
        let started = self.simulations + self.pending.len() as u64;
        started < self.simulation_limit
            && tree.node(ROOT).proven == UNPROVEN
            && tree.has_room((self.pending.len() + 1) * config.nodes_per_simulation(), config.max_tree_bytes, config.max_positions)
            && !(config.early_stop && started.is_multiple_of(SIMULATIONS_PER_CHECK) && self.leader_cannot_be_overtaken(tree))
    }

    /// Returns whether `gather` may add leaves to the batch, or must open one.
    #[inline]
    pub(crate) fn wants_leaves(&self, tree: &Tree, config: &WorldConfig<W>) -> bool {
        !self.full_batch && (self.wants_more(tree, config) || !self.pending.is_empty())
    }

    /// Returns whether the second most visited move cannot overtake the first with the remaining simulations.
    fn leader_cannot_be_overtaken(&self, tree: &Tree) -> bool {
        let edges = tree.edges(tree.node(ROOT));
        let (mut first, mut second) = (0, 0);
        // A proven loss is never chosen, whatever its visits.
        for (&visits, _) in edges.visits.iter().zip(edges.links).filter(|(_, link)| !link.is_loss()) {
            if visits > first {
                second = first;
                first = visits;
            } else {
                second = second.max(visits);
            }
        }
        edges.visits.len() > 1 && u64::from(first - second) > self.planned_limit - self.simulations
    }

    /// Resets the limit, the schedules and the analysis for the root after a move, and ages the history.
    pub(crate) fn advance_root(&mut self) {
        (self.simulation_limit, self.planned_limit) = (self.simulations, self.simulations);
        self.history_table.advance();
        self.root_analyzed = false;
        self.reset_schedules();
    }

    /// Drops the schedules, which are for another root.
    pub(crate) fn reset_schedules(&mut self) {
        (self.schedule, self.previous_schedule, self.limit_start) = (None, None, self.simulations);
    }

    /// Returns the root data for mutation.
    pub(crate) fn root_state_mut(&mut self) -> &mut RootState {
        Arc::make_mut(self.root_state.get_or_insert_with(Arc::default))
    }
}
