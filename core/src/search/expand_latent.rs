//! Expansion with a learned model: its response holds both step and evaluation, so a leaf gets its node when it is applied.

use std::cell::RefCell;

use crate::games::Latent;
use crate::runtime::vector_math::exp_all;
use crate::search::backup;
use crate::search::config::WorldConfig;
use crate::search::path::count_in_flight;
use crate::search::priors::softmax;
use crate::search::tree_search::SearchState;
use crate::tree::{NodeIndex, Tree};

/// Action spaces above this size get only the edges that a node can come to need.
const MAX_UNPRUNED: usize = 256;
/// Minimum number of edges of such a node, for tree reuse.
const MIN_PRUNED_EDGES: u64 = 64;

/// A validated model response to a batch: columns with one entry per row.
#[derive(Clone, Copy, Debug)]
pub struct ModelResponse<'a> {
    /// The reward of the move for the player who made it.
    pub rewards: &'a [f64],
    /// The discount of the value; a negative one changes the player. None: the search's own, and two players alternate.
    pub discounts: Option<&'a [f64]>,
    /// A logit per action and row.
    pub logits: &'a [f32],
    /// The value for the player to move.
    pub values: &'a [f64],
}

impl<'a> ModelResponse<'a> {
    /// Returns rows `from` to `to`.
    #[must_use]
    pub fn rows(&self, from: usize, to: usize, num_actions: usize) -> Self {
        Self {
            rewards: &self.rewards[from..to],
            discounts: self.discounts.map(|discounts| &discounts[from..to]),
            logits: &self.logits[from * num_actions..to * num_actions],
            values: &self.values[from..to],
        }
    }

    /// Returns one row.
    #[must_use]
    pub fn row(&self, row: usize, num_actions: usize) -> LeafResponse<'a> {
        LeafResponse {
            reward: self.rewards[row],
            discount: self.discounts.map(|discounts| discounts[row]),
            logits: Logits::All(&self.logits[row * num_actions..(row + 1) * num_actions]),
            value: self.values[row],
        }
    }
}

/// A model response to one leaf; see `ModelResponse`.
#[derive(Clone, Copy, Debug)]
pub struct LeafResponse<'a> {
    /// The reward of the move.
    pub reward: f64,
    /// The discount of the value.
    pub discount: Option<f64>,
    /// The policy.
    pub logits: Logits<'a>,
    /// The value.
    pub value: f64,
}

/// The policy of one leaf.
#[derive(Clone, Copy, Debug)]
pub enum Logits<'a> {
    /// A logit per action.
    All(&'a [f32]),
    /// The top k actions and their logits, as many as a node can come to need.
    TopK {
        /// The actions, as whole numbers.
        actions: &'a [f32],
        /// Their logits.
        logits: &'a [f32],
        /// Log-sum-exp of the logits of all actions.
        log_sum: f64,
    },
}

thread_local! {
    /// Shared by all trees of a thread: it stays in the cache.
    static BUFFERS: RefCell<EdgeBuffers> = RefCell::default();
}

/// Buffers for the edges of a new node.
#[derive(Debug, Default)]
struct EdgeBuffers {
    /// Priors of all actions.
    priors: Vec<f32>,
    /// All actions in order.
    all: Vec<u16>,
    /// The actions of the edges, if not all.
    actions: Vec<u16>,
    /// The top k actions with their priors.
    top_k: Vec<(u16, f32)>,
    /// Their exponentials.
    exponentials: Vec<f64>,
}

impl EdgeBuffers {
    /// Adds the edges of `node` in the order of actions: those with a positive prior, in wide action spaces the `max_edges` likeliest,
    /// which suffice for a node with at most `max_edges` visits. Returns the pruned prior mass.
    fn expand_all(&mut self, tree: &mut Tree, node: NodeIndex, logits: &[f32], max_edges: usize) -> f32 {
        self.priors.clear();
        self.priors.extend_from_slice(logits);
        softmax(&mut self.priors);
        let ruled_out = self.priors.iter().fold(false, |any, &prior| any | (prior <= 0.0));
        if !ruled_out && (logits.len() <= MAX_UNPRUNED || logits.len() <= max_edges) {
            if self.all.len() != logits.len() {
                self.all = (0..logits.len() as u16).collect();
            }
            tree.add_edges(node, &self.all);
            tree.priors_mut(node).copy_from_slice(&self.priors);
            return 0.0;
        }
        self.actions.clear();
        self.actions.extend((0..logits.len() as u16).filter(|&action| self.priors[usize::from(action)] > 0.0));
        let pruned_mass = if logits.len() <= MAX_UNPRUNED || self.actions.len() <= max_edges { 0.0 } else { self.prune(logits, max_edges) };
        tree.add_edges(node, &self.actions);
        for (prior, &action) in tree.priors_mut(node).iter_mut().zip(&self.actions) {
            *prior = self.priors[usize::from(action)];
        }
        pruned_mass
    }

    /// Adds the edges of the top k actions. Returns the pruned prior mass.
    fn expand_top_k(&mut self, tree: &mut Tree, node: NodeIndex, actions: &[f32], logits: &[f32], log_sum: f64) -> f32 {
        self.exponentials.resize(logits.len(), 0.0);
        exp_all(logits, log_sum, &mut self.exponentials);
        let top_k = actions.iter().zip(&self.exponentials).map(|(&action, &exponential)| (action as u16, exponential as f32));
        self.top_k.clear();
        self.top_k.extend(top_k.filter(|&(_, prior)| prior > 0.0));
        self.top_k.sort_unstable_by_key(|&(action, _)| action);
        self.actions.clear();
        self.actions.extend(self.top_k.iter().map(|&(action, _)| action));
        tree.add_edges(node, &self.actions);
        let mut rest = 1.0;
        for (own, &(_, prior)) in tree.priors_mut(node).iter_mut().zip(&self.top_k) {
            *own = prior;
            rest -= f64::from(prior);
        }
        rest.max(0.0) as f32
    }

    /// Keeps the `max_edges` likeliest actions; returns the prior mass of the others.
    fn prune(&mut self, logits: &[f32], max_edges: usize) -> f32 {
        let by_logit = |a: &u16, b: &u16| logits[usize::from(*b)].total_cmp(&logits[usize::from(*a)]).then(a.cmp(b));
        self.actions.select_nth_unstable_by(max_edges - 1, by_logit);
        self.actions[max_edges..].sort_unstable();
        let pruned_mass = self.actions[max_edges..].iter().fold(0.0, |sum, &action| sum + f64::from(self.priors[usize::from(action)]));
        self.actions.truncate(max_edges);
        self.actions.sort_unstable();
        pruned_mass as f32
    }
}

impl SearchState<Latent> {
    /// Adds the nodes of the pending leaves, backs their values up, and closes the batch. Input was validated before: this cannot fail.
    pub(crate) fn apply_model<'a>(&mut self, tree: &mut Tree, config: &WorldConfig<Latent>, response: impl Fn(usize) -> LeafResponse<'a>) {
        BUFFERS.with_borrow_mut(|buffers| self.apply_rows(tree, config, response, buffers));
        self.close();
    }

    fn apply_rows<'a>(
        &mut self,
        tree: &mut Tree,
        config: &WorldConfig<Latent>,
        response: impl Fn(usize) -> LeafResponse<'a>,
        buffers: &mut EdgeBuffers,
    ) {
        let keep_bounds = config.rule.uses_bounds();
        let mut leaves = std::mem::take(&mut self.pending);
        for (row, leaf) in leaves.iter_mut().enumerate() {
            let Some(last) = leaf.path.last().copied() else { continue };
            count_in_flight(tree, &leaf.path, -1);
            let other = if config.num_players == 2 { 1 - last.chooser } else { last.chooser };
            let response = response(row);
            let (to_play, discount) = match response.discount {
                Some(discount) if discount < 0.0 => (other, -discount),
                Some(discount) => (last.chooser, discount),
                None => (other, config.discount),
            };
            let left = self.planned_limit.saturating_sub(leaf.simulation + 1).max(MIN_PRUNED_EDGES);
            let node = tree.add_node(to_play);
            tree.set_child(last.edge, node);
            let pruned_mass = match response.logits {
                Logits::All(logits) => buffers.expand_all(tree, node, logits, usize::try_from(left).unwrap_or(usize::MAX)),
                Logits::TopK { actions, logits, log_sum } => buffers.expand_top_k(tree, node, actions, logits, log_sum),
            };
            tree.node_mut(node).raw_value = response.value;
            tree.set_slot(node, leaf.slot);
            tree.set_reward_discount(node, response.reward, discount, pruned_mass);
            let bounds = if keep_bounds { Some(&mut self.bounds) } else { None };
            backup::discounted(tree, &leaf.path, node, response.value, bounds);
            if config.trace {
                self.record(leaf.simulation, &mut leaf.trace, &[response.value]);
            }
            self.simulations += 1;
        }
        leaves.clear();
        self.pending = leaves;
    }
}
