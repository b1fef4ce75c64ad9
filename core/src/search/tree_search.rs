//! One tree under search, with simulations run inside the engine. `gather.rs` adds the batches that something outside evaluates.

use std::sync::Arc;

use crate::games::analysis::Exact;
use crate::games::World;
use crate::runtime::prefetch;
use crate::runtime::random::fold;
use crate::search::config::SearchConfig;
use crate::search::evaluate::LeafEvaluator;
use crate::search::move_ordering::HistoryTable;
use crate::search::noise::Noise;
use crate::search::path::TraceRow;
use crate::search::pending::PendingLeaves;
use crate::search::root_answer::Plan;
use crate::search::score::Rule;
use crate::search::select::{descend, Descent, Reached, Start};
use crate::search::sequential_halving::Schedule;
use crate::search::{backup, expand, leaf_analysis, scratch};
use crate::tree::journal::Journal;
use crate::tree::{NodeIndex, Tree, ROOT, UNPROVEN};

/// Asked every few simulations whether to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Simulations between two questions whether to stop.
const SIMULATIONS_PER_CHECK: u64 = 16;

/// Longer schedules are cut: nobody waits for their end.
const LONGEST_SCHEDULE: u64 = 1 << 26;

/// The number under which the evaluation of the root draws its random numbers.
pub const ROOT_EVALUATION: u64 = u64::MAX;

/// One tree and what it takes to search it.
#[derive(Clone, Debug)]
pub struct TreeSearch<W: World> {
    /// Shared with whoever looks at it: a search that goes on then works on a copy.
    tree: Arc<Tree>,
    /// The rest, apart so that both can be borrowed at once.
    pub search_state: SearchState<W>,
}

/// What a search keeps beside its tree.
#[derive(Clone, Debug)]
pub struct SearchState<W: World> {
    /// The position at the root (compiled worlds).
    pub root: W::State,
    /// The key of the tree's random numbers.
    pub key: u64,
    /// Simulations so far, over the whole life of the tree.
    pub simulations: u64,
    /// Simulations at which to stop.
    pub target: u64,
    /// Simulations at which the present limit was set.
    pub begun: u64,
    /// PendingLeaves under way.
    pub pending: PendingLeaves<W::State>,
    /// Every simulation, if recorded.
    pub trace: Vec<TraceRow>,
    /// This batch has all the leaves it will get.
    pub full_batch: bool,
    /// Ends met in this batch.
    pub ends: u32,
    /// Noise to be mixed into the root's priors before the next descent.
    pub noise: Option<Noise>,
    /// How the simulations allowed last are spent at the root (Gumbel), once the root has its priors.
    pub schedule: Option<Arc<Schedule>>,
    /// The schedule before, which still answers while the new one has not run a simulation.
    pub answered: Option<Arc<Schedule>>,
    /// Gumbel numbers by action, where they are given and not drawn.
    pub gumbel: Option<Vec<f64>>,
    /// What was history_table of quiet moves.
    pub history_table: HistoryTable,
    /// The root was searched for mates.
    pub(crate) root_searched: bool,
    pub(crate) journal: Journal,
}

impl<W: World> TreeSearch<W> {
    /// A search of `tree`, which has its root already.
    #[must_use]
    pub fn new(tree: Tree, root: W::State, key: u64) -> Self {
        let search_state = SearchState {
            root,
            key,
            simulations: 0,
            target: 0,
            begun: 0,
            pending: PendingLeaves::default(),
            trace: Vec::new(),
            full_batch: false,
            ends: 0,
            noise: None,
            schedule: None,
            answered: None,
            gumbel: None,
            history_table: HistoryTable::default(),
            root_searched: false,
            journal: Journal::default(),
        };
        Self { tree: Arc::new(tree), search_state }
    }

    /// The tree, to look at for as long as one likes.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Tree> {
        Arc::clone(&self.tree)
    }

    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What Gumbel search answers by; None for searches that answer by visits.
    #[must_use]
    pub fn plan(&self, config: &SearchConfig) -> Option<Plan> {
        let Rule::Gumbel { completed_q, .. } = config.rule else { return None };
        let search_state = &self.search_state;
        let known = if search_state.simulations > search_state.begun { &search_state.schedule } else { &search_state.answered };
        let schedule = known.clone().unwrap_or_else(|| Arc::new(Schedule::without_numbers(&self.tree)));
        Some(Plan { completed_q, schedule })
    }

    /// The tree, to change it, and the search_state.
    pub fn split_mut(&mut self) -> (&mut Tree, &mut SearchState<W>) {
        (Arc::make_mut(&mut self.tree), &mut self.search_state)
    }

    /// Whether another simulation is wanted and possible.
    #[must_use]
    pub fn wants_more(&self, config: &SearchConfig) -> bool {
        self.search_state.wants_more(&self.tree, config)
    }

    /// Runs simulations inside the engine until no more are wanted, `at_most` so many, or `stop` says so.
    pub fn run(&mut self, config: &SearchConfig, threads: usize, at_most: u64, stop: Stop<'_>) {
        if !self.wants_more(config) {
            return;
        }
        let (tree, search_state) = (Arc::make_mut(&mut self.tree), &mut self.search_state);
        let target = search_state.simulations.saturating_add(at_most);
        if config.in_flight > 1 {
            search_state.run_in_flight(tree, config, threads, target, stop);
        } else {
            search_state.run_sequential(tree, config, target, stop);
        }
    }

    /// Makes the position behind `action` the root and keeps what is known of it, of the `legal` moves there alone if they are
    /// given; the nodes dropped, by old index. None if there is no node to keep: the caller plants a new tree.
    pub fn keep_child(&mut self, action: u16, root_evaluated: bool, legal: Option<&[u16]>) -> Option<Vec<NodeIndex>> {
        let root = self.tree.node(ROOT);
        let edges = self.tree.edges(root);
        let offset = edges.actions.iter().position(|&a| a == action)?;
        let child = edges.links[offset].child().filter(|&child| !self.tree.node(child).end)?;
        let visits = edges.visits[offset];
        if self.tree.node(child).num_edges == 0 {
            return None;
        }
        let (mut new, kept) = self.tree.transplant(child, legal);
        if legal.is_some() {
            new.root_visits = 1 + new.edges(new.node(ROOT)).visits.iter().sum::<u32>();
        } else if root_evaluated {
            new.root_visits = visits;
        } else {
            // UCT's root is not evaluated: what its first visit brought does not count any more.
            new.root_visits = new.edges(new.node(ROOT)).visits.iter().sum();
            new.node_mut(ROOT).raw = 0.0;
        }
        let dropped = (0..kept.len() as u32).filter(|&old| kept[old as usize] == u32::MAX).collect();
        self.tree = Arc::new(new);
        Some(dropped)
    }

    /// Drops all moves of the root but `actions`; what is known of those stays. The root must have its priors already.
    pub fn keep_moves(&mut self, actions: &[u16]) {
        let (mut new, _) = self.tree.transplant(ROOT, Some(actions));
        let evaluated = self.tree.root_visits - self.tree.edges(self.tree.node(ROOT)).visits.iter().sum::<u32>();
        new.root_visits = evaluated + new.edges(new.node(ROOT)).visits.iter().sum::<u32>();
        // What was proven of the root may have rested on a move that is gone.
        let (proven, distance) = backup::decide(&new, ROOT).unwrap_or((UNPROVEN, 0));
        let root = new.node_mut(ROOT);
        (root.proven, root.distance) = (proven, distance);
        let priors = new.priors_mut(ROOT);
        let total: f32 = priors.iter().sum();
        if total > 0.0 {
            priors.iter_mut().for_each(|prior| *prior /= total);
        }
        self.tree = Arc::new(new);
        // A mate found at full width may begin with a move that is gone.
        self.search_state.root_searched = true;
        self.search_state.reset_schedules();
    }

    /// Replaces the tree, keeping key and count of simulations.
    pub fn replant(&mut self, tree: Tree) {
        self.tree = Arc::new(tree);
    }
}

impl<W: World> TreeSearch<W> {
    // Each of these finds in the cache what the one before has asked for, so they are called some trees apart.

    /// Asks memory for what a search keeps beside its tree.
    #[inline]
    pub fn prefetch_itself(&self) {
        prefetch::slice(std::slice::from_ref(self));
    }

    /// Then for the leaves that wait, and for the tree's header.
    #[inline]
    pub fn prefetch_first(&self) {
        prefetch::slice(&self.search_state.pending);
        self.tree.prefetch_header(W::EXTERNAL);
        if let Some(schedule) = &self.search_state.schedule {
            prefetch::slice::<Schedule>(std::slice::from_ref(schedule));
        }
    }

    /// Then for their paths, and for where the tree's blocks are.
    #[inline]
    pub fn prefetch_second(&self) {
        for leaf in self.search_state.pending.iter() {
            prefetch::slice(&leaf.path);
        }
        self.tree.prefetch_blocks();
        if let Some(schedule) = &self.search_state.schedule {
            schedule.prefetch();
        }
    }

    /// Then for the nodes and edges of the paths, and for where the next will be made.
    #[inline]
    pub fn prefetch_third(&self) {
        for leaf in self.search_state.pending.iter() {
            for step in &leaf.path {
                self.tree.prefetch_choice(step.node, step.edge);
            }
            if let Some(node) = leaf.node {
                self.tree.prefetch_growth(node);
            }
        }
    }
}

impl<W: World> SearchState<W> {
    /// Whether another simulation is wanted and possible.
    #[inline]
    #[must_use]
    pub fn wants_more(&self, tree: &Tree, config: &SearchConfig) -> bool {
        let started = self.simulations + self.pending.len() as u64;
        started < self.target
            && tree.node(ROOT).proven == UNPROVEN
            && tree.has_room(self.pending.len() + 1, config.max_bytes, config.max_nodes)
            && !(config.early_stop && started % SIMULATIONS_PER_CHECK == 0 && self.leader_is_safe(tree))
    }

    /// Whether the second most visited move could not overtake the first with all simulations that are left.
    fn leader_is_safe(&self, tree: &Tree) -> bool {
        let edges = tree.edges(tree.node(ROOT));
        let (mut first, mut second) = (0, 0);
        // A move that is proven to lose will not be answered, however often it was visited.
        for (&visits, _) in edges.visits.iter().zip(edges.links).filter(|(_, link)| !link.is_loss()) {
            if visits > first {
                second = first;
                first = visits;
            } else {
                second = second.max(visits);
            }
        }
        edges.visits.len() > 1 && u64::from(first - second) > self.target - self.simulations
    }

    fn run_sequential(&mut self, tree: &mut Tree, config: &SearchConfig, pause: u64, stop: Stop<'_>) {
        let mut descents = scratch::descents::<W>(&self.root);
        self.run_sequential_with(tree, config, pause, stop, &mut descents[0]);
        scratch::keep::<W>(descents);
    }

    fn run_sequential_with(&mut self, tree: &mut Tree, config: &SearchConfig, pause: u64, stop: Stop<'_>, descent: &mut Descent<W::State>) {
        self.prepare_root_with(tree, config, descent);
        let mut left = SIMULATIONS_PER_CHECK;
        while self.simulations < pause && self.wants_more(tree, config) {
            self.simulate(tree, config, descent);
            left -= 1;
            if left == 0 {
                if stop() {
                    return;
                }
                left = SIMULATIONS_PER_CHECK;
            }
        }
    }

    #[inline]
    fn simulate(&mut self, tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>) {
        let key = fold(self.key, self.simulations);
        let start = Start { first: self.scheduled_place(tree, config, descent), in_flight: 0, key };
        descent.begin(tree, &self.root, start);
        let reached = descend::<W>(tree, config, descent, &mut self.journal);
        let exact = match reached {
            Reached::New => self.expand_terminal(tree, config, descent),
            Reached::Exact(node) => Some(node),
            Reached::InFlight => None,
        };
        if let Some(node) = exact {
            self.back_up_exact(tree, config, node, descent);
        } else if let Some(mate) = self.analyze(config, descent) {
            self.back_up_mate(tree, config, mate, descent);
        } else {
            let node = self.expand_leaf(tree, config, descent);
            let value = config.leaf.value::<W>(&mut descent.state, key, config.knowledge.as_deref()).unwrap_or(0.0);
            if let Some(node) = node {
                expand::even_priors(tree, node);
                set_raw(tree, node, value);
                if let Some(knowledge) = &config.knowledge {
                    leaf_analysis::order_edges(tree, knowledge, node, &descent.hints);
                }
            }
            backup::zero_sum(tree, &descent.path, value);
            if config.trace {
                let steps = std::mem::take(&mut descent.trace);
                self.trace.push(TraceRow { simulation: self.simulations, steps, values: vec![value, -value] });
            }
            self.simulations += 1;
            if let Some(knowledge) = config.knowledge.as_deref().filter(|knowledge| knowledge.priority.is_some()) {
                self.history_table.update(tree, knowledge, config.num_actions, &descent.path, value);
            }
        }
    }

    /// Looks at the new position at the end of the path: the mate there, if one is found.
    #[inline]
    fn analyze(&mut self, config: &SearchConfig, descent: &mut Descent<W::State>) -> Option<Exact> {
        config.knowledge.as_ref()?;
        leaf_analysis::analyze_position::<W>(config, &self.history_table, &descent.state, descent.path.len(), &mut descent.hints)
    }

    /// Finishes the simulation whose path has just reached a position where the player to move mates or is mated.
    fn back_up_mate(&mut self, tree: &mut Tree, config: &SearchConfig, mate: Exact, descent: &mut Descent<W::State>) {
        let Some(last) = descent.path.last() else { return };
        let to_play = W::to_play(&descent.state);
        let node = expand::mate(tree, last.edge, to_play, mate);
        self.back_up_exact(tree, config, node, descent);
        if let Some(knowledge) = config.knowledge.as_deref().filter(|knowledge| knowledge.priority.is_some()) {
            let value = f64::from(if to_play == 0 { mate.value } else { -mate.value });
            self.history_table.update(tree, knowledge, config.num_actions, &descent.path, value);
        }
    }

    /// Evaluates the root inside the engine, where the search wants it evaluated and it is not; then mixes in the noise asked for.
    pub(crate) fn prepare_root(&mut self, tree: &mut Tree, config: &SearchConfig) {
        let mut descents = scratch::descents::<W>(&self.root);
        self.prepare_root_with(tree, config, &mut descents[0]);
        scratch::keep::<W>(descents);
    }

    /// The same for who has a descent at hand.
    pub(crate) fn prepare_root_with(&mut self, tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>) {
        if config.knowledge.is_some() && !self.root_searched {
            self.root_searched = true;
            leaf_analysis::analyze_root::<W>(tree, config, &self.root);
        }
        if backup::root_is_proven(tree) {
            return;
        }
        if config.evaluates_root() && tree.root_visits == 0 && !matches!(config.leaf, LeafEvaluator::External { .. }) {
            descent.state.clone_from(&self.root);
            descent.path.clear();
            let _ = self.analyze(config, descent);
            leaf_analysis::restrict_hints::<W>(tree, &self.root, &mut descent.hints);
            let key = fold(self.key, ROOT_EVALUATION);
            let value = config.leaf.value::<W>(&mut descent.state, key, config.knowledge.as_deref()).unwrap_or(0.0);
            expand::even_priors(tree, ROOT);
            set_raw(tree, ROOT, value);
            if let Some(knowledge) = &config.knowledge {
                leaf_analysis::order_edges(tree, knowledge, ROOT, &descent.hints);
            }
            tree.root_visits = 1;
        }
        if tree.root_visits > 0 {
            if let Some(noise) = self.noise.take() {
                noise.add(tree, self.key, self.simulations);
            }
            if let (Rule::Gumbel { max_num_considered_actions, gumbel_scale, .. }, None) = (&config.rule, &self.schedule) {
                let simulations = self.target.saturating_sub(self.simulations).min(LONGEST_SCHEDULE);
                let (most, given) = (*max_num_considered_actions, self.gumbel.as_deref());
                let schedule = Schedule::new(tree, self.key, self.simulations, simulations, most, *gumbel_scale, given);
                self.schedule = Some(Arc::new(schedule));
            }
        }
    }

    /// A new root: no schedule knows its moves.
    pub(crate) fn reset_schedules(&mut self) {
        (self.schedule, self.answered, self.begun) = (None, None, self.simulations);
    }

    /// The place to follow at the root, if the search has a rule of its own there.
    #[inline]
    pub(crate) fn scheduled_place(&mut self, tree: &Tree, config: &SearchConfig, descent: &mut Descent<W::State>) -> Option<usize> {
        let (Some(schedule), Rule::Gumbel { completed_q, .. }) = (&self.schedule, &config.rule) else { return None };
        let started = self.simulations + self.pending.len() as u64;
        Some(schedule.choose(completed_q, tree, started, config.trace, &mut descent.scores))
    }

    /// At a new position of a compiled world whose moves have priors: makes its node and edges.
    pub(crate) fn expand_leaf(&mut self, tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>) -> Option<NodeIndex> {
        if !config.rule.uses_priors() {
            return None;
        }
        let last = *descent.path.last()?;
        self.journal.edge(tree, last.edge);
        Some(expand::leaf::<W>(tree, &descent.state, last.edge, last.node, &mut descent.legal))
    }

    /// At a new position of a compiled world: makes its node if the game is over there.
    pub(crate) fn expand_terminal(&mut self, tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>) -> Option<NodeIndex> {
        let result = f64::from(W::outcome(&descent.state)?);
        let edge = descent.path.last()?.edge;
        self.journal.edge(tree, edge);
        Some(expand::end(tree, config, edge, W::to_play(&descent.state), &[result, -result]))
    }

    /// Finishes the simulation whose path has just reached `node`, whose exact value is known.
    pub(crate) fn back_up_exact(&mut self, tree: &mut Tree, config: &SearchConfig, node: NodeIndex, descent: &mut Descent<W::State>) {
        let header = *tree.node(node);
        self.journal.path(tree, &descent.path);
        if config.trace {
            let values = exact_values(tree, config, node);
            let steps = std::mem::take(&mut descent.trace);
            self.trace.push(TraceRow { simulation: self.simulations + self.pending.len() as u64, steps, values });
        }
        if config.is_plain() {
            let value = header.exact();
            backup::zero_sum(tree, &descent.path, if header.to_play == 0 { value } else { -value });
        } else {
            backup::per_player(tree, &descent.path, &mut exact_values(tree, config, node));
        }
        if header.proven != UNPROVEN && config.solves() {
            let journal = &mut self.journal;
            backup::hand_up(tree, &descent.path, |tree, step| {
                journal.edge(tree, step.edge);
                journal.node(tree, step.node);
            });
        }
        self.simulations += 1;
    }
}

/// Notes what a node was valued at, given for player 0.
pub(crate) fn set_raw(tree: &mut Tree, node: NodeIndex, value: f64) {
    let header = tree.node_mut(node);
    header.raw = if header.to_play == 0 { value } else { -value };
}

/// The exact value of a node, per player.
fn exact_values(tree: &Tree, config: &SearchConfig, node: NodeIndex) -> Vec<f64> {
    let header = tree.node(node);
    if !config.is_plain() {
        return tree.returns(node).to_vec();
    }
    let value = if header.to_play == 0 { header.exact() } else { -header.exact() };
    vec![value, -value]
}
