//! The leaves of a history_table model: the model says at once what a position is and what it is worth, so a leaf gets its node when
//! the answer comes.

use std::cell::RefCell;

use crate::games::Latent;
use crate::runtime::vector_math::exp_all;
use crate::search::backup;
use crate::search::config::SearchConfig;
use crate::search::path::TraceRow;
use crate::search::priors::softmax;
use crate::search::score::{Normalize, Rule};
use crate::search::tree_search::SearchState;
use crate::tree::{NodeIndex, Tree};

/// In action spaces above this size, a node keeps only the buffers it can come to need.
const MAX_UNPRUNED: usize = 256;
/// It keeps so many in any case, so that a tree that is kept from move to move still has a choice.
const MIN_KEPT: u64 = 64;

/// What a model says of a batch of leaves, checked; columns of one entry a row.
#[derive(Clone, Copy, Debug)]
pub struct ModelResponse<'a> {
    /// The reward of the move that led there, for the player who made it.
    pub rewards: &'a [f64],
    /// What its value is multiplied by; a negative one changes the player. None: the search's own, and two players alternate.
    pub discounts: Option<&'a [f64]>,
    /// A logit for each action of each row.
    pub logits: &'a [f32],
    /// The value for the player to move there.
    pub values: &'a [f64],
}

impl<'a> ModelResponse<'a> {
    /// Rows `from` to `to`.
    #[must_use]
    pub fn rows(&self, from: usize, to: usize, num_actions: usize) -> Self {
        Self {
            rewards: &self.rewards[from..to],
            discounts: self.discounts.map(|discounts| &discounts[from..to]),
            logits: &self.logits[from * num_actions..to * num_actions],
            values: &self.values[from..to],
        }
    }

    /// One row.
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

/// What a model says of one leaf; see `ModelResponse`.
#[derive(Clone, Copy, Debug)]
pub struct LeafResponse<'a> {
    /// The reward of the move that led there.
    pub reward: f64,
    /// What its value is multiplied by.
    pub discount: Option<f64>,
    /// What it says of buffers.
    pub logits: Logits<'a>,
    /// Its value.
    pub value: f64,
}

/// What a model says of the buffers of a position.
#[derive(Clone, Copy, Debug)]
pub enum Logits<'a> {
    /// A logit for each action.
    All(&'a [f32]),
    /// The top_k actions, as whole numbers, and their logits: as many as a node can come to need.
    TopK {
        /// The actions.
        actions: &'a [f32],
        /// Their logits.
        logits: &'a [f32],
        /// The logarithm of the sum of the exponentials of all actions' logits.
        log_sum: f64,
    },
}

thread_local! {
    /// One for all trees of a thread: it stays in the cache.
    static BUFFERS: RefCell<EdgeBuffers> = RefCell::default();
}

/// Buffers for the buffers of a new node.
#[derive(Debug, Default)]
struct EdgeBuffers {
    /// Of all actions.
    priors: Vec<f32>,
    /// All actions, in their order.
    all: Vec<u16>,
    /// Those that a node keeps, where it does not keep all.
    kept: Vec<u16>,
    /// The top_k with their priors, where a device has picked them.
    top_k: Vec<(u16, f32)>,
    /// Their exponentials.
    shares: Vec<f64>,
}

impl EdgeBuffers {
    /// Gives `node` its buffers, lowest action first: those with a prior above 0, in wide spaces the `most` top_k of them
    /// (a node that is visited at most that often needs no others). The prior of the rest.
    fn expand_all(&mut self, tree: &mut Tree, node: NodeIndex, logits: &[f32], most: usize) -> f32 {
        self.priors.clear();
        self.priors.extend_from_slice(logits);
        softmax(&mut self.priors);
        let ruled_out = self.priors.iter().fold(false, |any, &prior| any | (prior <= 0.0));
        if !ruled_out && (logits.len() <= MAX_UNPRUNED || logits.len() <= most) {
            if self.all.len() != logits.len() {
                self.all = (0..logits.len() as u16).collect();
            }
            tree.add_edges(node, &self.all);
            tree.priors_mut(node).copy_from_slice(&self.priors);
            return 0.0;
        }
        self.kept.clear();
        self.kept.extend((0..logits.len() as u16).filter(|&action| self.priors[usize::from(action)] > 0.0));
        let pruned_mass = if logits.len() <= MAX_UNPRUNED || self.kept.len() <= most { 0.0 } else { self.prune(logits, most) };
        tree.add_edges(node, &self.kept);
        for (prior, &action) in tree.priors_mut(node).iter_mut().zip(&self.kept) {
            *prior = self.priors[usize::from(action)];
        }
        pruned_mass
    }

    /// Gives `node` the top_k of its buffers, as a device has picked them. The prior of the rest.
    fn expand_top_k(&mut self, tree: &mut Tree, node: NodeIndex, actions: &[f32], logits: &[f32], log_sum: f64) -> f32 {
        self.shares.resize(logits.len(), 0.0);
        exp_all(logits, log_sum, &mut self.shares);
        let top_k = actions.iter().zip(&self.shares).map(|(&action, &share)| (action as u16, share as f32));
        self.top_k.clear();
        self.top_k.extend(top_k.filter(|&(_, prior)| prior > 0.0));
        self.top_k.sort_unstable_by_key(|&(action, _)| action);
        self.kept.clear();
        self.kept.extend(self.top_k.iter().map(|&(action, _)| action));
        tree.add_edges(node, &self.kept);
        let mut rest = 1.0;
        for (own, &(_, prior)) in tree.priors_mut(node).iter_mut().zip(&self.top_k) {
            *own = prior;
            rest -= f64::from(prior);
        }
        rest.max(0.0) as f32
    }

    /// Keeps the `most` top_k; the prior of the others.
    fn prune(&mut self, logits: &[f32], most: usize) -> f32 {
        let by_logit = |a: &u16, b: &u16| logits[usize::from(*b)].total_cmp(&logits[usize::from(*a)]).then(a.cmp(b));
        self.kept.select_nth_unstable_by(most - 1, by_logit);
        self.kept[most..].sort_unstable();
        let pruned_mass = self.kept[most..].iter().fold(0.0, |sum, &action| sum + f64::from(self.priors[usize::from(action)]));
        self.kept.truncate(most);
        self.kept.sort_unstable();
        pruned_mass as f32
    }
}

impl SearchState<Latent> {
    /// Gives each waiting leaf its node, backs its value up, and closes the batch. Nothing here can fail: what comes from
    /// outside is checked before.
    pub fn apply_model<'a>(&mut self, tree: &mut Tree, config: &SearchConfig, answer: impl Fn(usize) -> LeafResponse<'a>) {
        let keep_bounds = matches!(&config.rule, Rule::LogPuct(rule) if rule.normalize == Normalize::Tree);
        let mut buffers = BUFFERS.take();
        let mut leaves = std::mem::take(&mut self.pending);
        for (row, leaf) in leaves.iter_mut().enumerate() {
            let Some(last) = leaf.path.last().copied() else { continue };
            for step in &leaf.path {
                tree.add_in_flight(step.edge, -1);
            }
            let other = if config.players == 2 { 1 - last.chooser } else { last.chooser };
            let answer = answer(row);
            let (to_play, discount) = match answer.discount {
                Some(discount) if discount < 0.0 => (other, -discount),
                Some(discount) => (last.chooser, discount),
                None => (other, config.discount),
            };
            let left = self.target.saturating_sub(leaf.simulation + 1).max(MIN_KEPT);
            let node = tree.add_node(to_play, 0);
            tree.set_child(last.edge, node);
            let pruned_mass = match answer.logits {
                Logits::All(logits) => buffers.expand_all(tree, node, logits, usize::try_from(left).unwrap_or(usize::MAX)),
                Logits::TopK { actions, logits, log_sum } => buffers.expand_top_k(tree, node, actions, logits, log_sum),
            };
            tree.node_mut(node).raw = answer.value;
            tree.set_slot(node, leaf.slot);
            tree.set_reward_discount(node, answer.reward, discount, pruned_mass);
            backup::discounted(tree, &leaf.path, node, answer.value, keep_bounds);
            if config.trace {
                let steps = std::mem::take(&mut leaf.trace);
                self.trace.push(TraceRow { simulation: leaf.simulation, steps, values: vec![answer.value] });
            }
            self.simulations += 1;
        }
        leaves.clear();
        self.pending = leaves;
        BUFFERS.set(buffers);
        self.close();
    }
}
