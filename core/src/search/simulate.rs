//! Simulations inside the engine, one after another.

use std::collections::HashMap;
use std::sync::Arc;

use crate::games::analysis::{LeafAnalysis, ProvenResult};
use crate::games::World;
use crate::runtime::random::fold;
use crate::search::chance::owner_in;
use crate::search::config::WorldConfig;
use crate::search::evaluate::LeafKind;
use crate::search::move_ordering::order_edges;
use crate::search::path::{TraceRow, TraceStep};
use crate::search::select::{descend, Descent, Reached};
use crate::search::sequential_halving::Schedule;
use crate::search::tree_search::{SearchState, Stop, MAX_SCHEDULE, ROOT_EVALUATION, SIMULATIONS_PER_CHECK};
use crate::search::{backup, expand, leaf_analysis};
use crate::tree::{NodeIndex, Tree, ROOT, UNPROVEN};

impl<W: World> SearchState<W> {
    pub(super) fn run_sequential(&mut self, tree: &mut Tree, config: &WorldConfig<W>, until_simulation: u64, stop: Stop<'_>) {
        self.with_descent(|this, descent| {
            this.prepare_root_with(tree, config, descent);
            let mut left = SIMULATIONS_PER_CHECK;
            while this.simulations < until_simulation && this.wants_more(tree, config) {
                this.simulate(tree, config, descent);
                left -= 1;
                if left == 0 {
                    if stop() {
                        return;
                    }
                    left = SIMULATIONS_PER_CHECK;
                }
            }
        });
    }

    #[inline]
    fn simulate(&mut self, tree: &mut Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>) {
        let key = fold(self.key, self.simulations);
        self.return_to_root(tree, config, key, descent);
        let reached = descend::<W>(tree, config, descent, &mut self.journal);
        let exact = match reached {
            Reached::New => self.expand_terminal(tree, config, descent),
            Reached::Exact(node) => Some(node),
            Reached::InFlight => None,
        };
        if let Some(node) = exact {
            self.back_up_exact(tree, config, node, descent);
        } else if let Some(result) = self.analyze(config, descent) {
            self.back_up_proof(tree, config, result, descent);
        } else {
            let node = self.expand_leaf(tree, config, descent);
            let value = config.evaluate(&mut descent.state, key).value;
            let ordering = config.analysis.as_deref().and_then(LeafAnalysis::ordering);
            let mut values = expand::per_player(value);
            let values = &mut values[..W::NUM_PLAYERS.min(2)];
            if let Some(node) = node {
                if config.rule.uses_priors() {
                    expand::uniform_priors(tree, node);
                }
                set_raw(tree, node, value);
                if !is_scalar::<W>() {
                    tree.set_returns(node, values);
                }
                if let Some(ordering) = &ordering {
                    order_edges(tree, ordering, node, &descent.hints);
                }
            }
            if config.trace {
                self.record(self.simulations, &mut descent.trace, values);
            }
            self.back_up(tree, config, &descent.path, values);
            self.simulations += 1;
            if let Some(ordering) = &ordering {
                self.history_table.update(tree, ordering, config.num_actions, &descent.path, value);
            }
        }
    }

    /// Analyzes the new position at the end of the path; returns its forced result.
    #[inline]
    fn analyze(&mut self, config: &WorldConfig<W>, descent: &mut Descent<W::State>) -> Option<ProvenResult> {
        leaf_analysis::analyze_position::<W>(config, &self.history_table, &descent.state, descent.path.len(), &mut descent.hints)
    }

    /// Finishes a simulation at a new position with a forced result.
    fn back_up_proof(&mut self, tree: &mut Tree, config: &WorldConfig<W>, result: ProvenResult, descent: &mut Descent<W::State>) {
        let Some(last) = descent.path.last() else { return };
        let to_play = W::to_play(&descent.state);
        let node = expand::prove_leaf(tree, last.edge, to_play, result);
        self.back_up_exact(tree, config, node, descent);
        if let Some(ordering) = config.analysis.as_deref().and_then(LeafAnalysis::ordering) {
            let value = f64::from(if to_play == 0 { result.value } else { -result.value });
            self.history_table.update(tree, &ordering, config.num_actions, &descent.path, value);
        }
    }

    /// Analyzes and evaluates the root inside the engine, unless done; then adds noise and begins the schedule.
    pub(crate) fn prepare_root(&mut self, tree: &mut Tree, config: &WorldConfig<W>) {
        self.with_descent(|this, descent| this.prepare_root_with(tree, config, descent));
    }

    /// `prepare_root` with a borrowed descent.
    pub(crate) fn prepare_root_with(&mut self, tree: &mut Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>) {
        if config.analysis.is_some() && !self.root_analyzed {
            self.root_analyzed = true;
            if let Some(line) = leaf_analysis::analyze_root::<W>(tree, config, &self.root) {
                self.root_state_mut().proof_line = line;
            }
        }
        if backup::root_is_proven(tree) {
            return;
        }
        if config.evaluates_root() && tree.root_visits == 0 && config.leaf != LeafKind::External {
            descent.state.clone_from(&self.root);
            descent.path.clear();
            let _ = self.analyze(config, descent);
            leaf_analysis::restrict_hints::<W>(tree, &self.root, &mut descent.hints);
            let key = fold(self.key, ROOT_EVALUATION);
            let value = config.evaluate(&mut descent.state, key).value;
            expand::uniform_priors(tree, ROOT);
            set_raw(tree, ROOT, value);
            if !is_scalar::<W>() {
                tree.set_returns(ROOT, &expand::per_player(value)[..W::NUM_PLAYERS.min(2)]);
            }
            if let Some(ordering) = config.analysis.as_deref().and_then(LeafAnalysis::ordering) {
                order_edges(tree, &ordering, ROOT, &descent.hints);
            }
            tree.root_visits = 1;
        }
        if tree.root_visits > 0 {
            if let Some(noise) = self.noise.take() {
                let (key, simulations) = (self.key, self.simulations);
                noise.add(tree, self.root_state_mut(), key, simulations);
            }
            if let (Some(rule), None) = (config.rule.sequential_halving(), &self.schedule) {
                let simulations = self.planned_limit.saturating_sub(self.simulations).min(MAX_SCHEDULE);
                let schedule = Schedule::new(tree, self.key, self.simulations, simulations, rule, self.gumbel.as_deref());
                self.schedule = Some(Arc::new(schedule));
            }
        }
    }

    /// Adds the node and edges of a new position of a compiled world, unless a leaf is stored without (UCT in two-player zero-sum games).
    pub(crate) fn expand_leaf(&mut self, tree: &mut Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>) -> Option<NodeIndex> {
        // Rewards are stored in nodes: games with them, as those of one player, have no leaves without a node.
        if !config.rule.uses_priors() && is_scalar::<W>() {
            return None;
        }
        let last = *descent.path.last()?;
        self.journal.edge(tree, last.edge);
        let only_forced_moves = usize::from(self.forced_depth) > descent.path.len();
        Some(expand::leaf::<W>(tree, &descent.state, last.edge, &mut descent.legal, only_forced_moves))
    }

    /// Adds the node of a new position of a compiled world, if the game is over there.
    pub(crate) fn expand_terminal(
        &mut self,
        tree: &mut Tree,
        config: &WorldConfig<W>,
        descent: &mut Descent<W::State>,
    ) -> Option<NodeIndex> {
        let result = f64::from(W::outcome(&descent.state)?);
        let edge = descent.path.last()?.edge;
        self.journal.edge(tree, edge);
        let returns = &expand::per_player(result)[..W::NUM_PLAYERS.min(2)];
        let node = expand::terminal(tree, config, edge, owner_in::<W>(W::to_play(&descent.state)), returns);
        expand::set_reward::<W>(tree, node, &descent.state);
        Some(node)
    }

    /// Records a simulation.
    #[cold]
    #[inline(never)]
    pub(crate) fn record(&mut self, simulation: u64, steps: &mut Vec<TraceStep>, values: &[f64]) {
        let mut steps = std::mem::take(steps);
        // A descent does not know the root's priors without noise.
        if let (Some(root), Some(state)) = (steps.first_mut(), &self.root_state) {
            let clean: HashMap<i64, f32> = state.clean_priors.iter().map(|&(action, prior)| (i64::from(action), prior)).collect();
            root.terms.set_clean_priors(&clean);
        }
        self.trace.push(TraceRow { simulation, steps, values: values.to_vec() });
    }

    /// Records a simulation that ends at `node`, whose value is exact.
    #[cold]
    #[inline(never)]
    fn record_exact(&mut self, tree: &Tree, config: &WorldConfig<W>, node: NodeIndex, descent: &mut Descent<W::State>) {
        let simulation = self.simulations + self.pending.len() as u64;
        self.record(simulation, &mut descent.trace, &exact_values(tree, config, node));
    }

    /// Finishes a simulation at `node`, whose value is exact.
    pub(crate) fn back_up_exact(&mut self, tree: &mut Tree, config: &WorldConfig<W>, node: NodeIndex, descent: &mut Descent<W::State>) {
        let header = *tree.node(node);
        descent.path.iter().for_each(|step| self.journal.edge(tree, step.edge));
        if config.trace {
            self.record_exact(tree, config, node, descent);
        }
        if config.has_scalar_value() {
            let value = header.exact();
            let value = if owner_in::<W>(header.to_play) == 0 { value } else { -value };
            self.back_up(tree, config, &descent.path, &[value, -value]);
        } else {
            self.back_up(tree, config, &descent.path, &exact_values(tree, config, node));
        }
        if header.proven != UNPROVEN && config.solves() {
            let journal = &mut self.journal;
            backup::propagate_proof(tree, &descent.path, |tree, step| {
                journal.edge(tree, step.edge);
                journal.node(tree, step.node);
            });
        }
        self.simulations += 1;
    }
}

/// Sets the raw value of a node, given for player 0.
fn set_raw(tree: &mut Tree, node: NodeIndex, value: f64) {
    let header = tree.node_mut(node);
    header.raw_value = if header.to_play == 0 { value } else { -value };
}

/// Returns the exact value of a node per player.
fn exact_values<W: World>(tree: &Tree, config: &WorldConfig<W>, node: NodeIndex) -> Vec<f64> {
    let header = tree.node(node);
    if !config.has_scalar_value() {
        return tree.returns(node).to_vec();
    }
    let value = if owner_in::<W>(header.to_play) == 0 { header.exact() } else { -header.exact() };
    vec![value, -value]
}

/// Returns whether one number values a position of a compiled world for both players.
#[inline(always)]
pub(crate) const fn is_scalar<W: World>() -> bool {
    W::NUM_PLAYERS == 2 && !W::HAS_REWARDS
}
