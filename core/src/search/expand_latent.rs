//! The leaves of a history_table model: the model says at once what a position is and what it is worth, so a leaf gets its node when
//! the answer comes.

use std::cell::RefCell;

use crate::games::Latent;
use crate::runtime::vector_math::exp_all;
use crate::search::backup;
use crate::search::config::SearchConfig;
use crate::search::path::TraceRow;
use crate::search::priors::softmax;
use crate::search::score::{Normalize, Score};
use crate::search::tree_search::SearchState;
use crate::tree::{NodeIndex, Tree};

/// In action spaces above this size, a node keeps only the moves it can come to need.
const WIDE: usize = 256;
/// It keeps so many in any case, so that a tree that is kept from move to move still has a choice.
const LEAST_KEPT: u64 = 64;

/// What a model says of a batch of leaves, checked; columns of one entry a row.
#[derive(Clone, Copy, Debug)]
pub struct ModelAnswer<'a> {
    /// The reward of the move that led there, for the player who made it.
    pub rewards: &'a [f64],
    /// What its value is multiplied by; a negative one changes the player. None: the search's own, and two players alternate.
    pub discounts: Option<&'a [f64]>,
    /// A logit for each action of each row.
    pub logits: &'a [f32],
    /// The value for the player to move there.
    pub values: &'a [f64],
}

impl<'a> ModelAnswer<'a> {
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
    pub fn row(&self, row: usize, num_actions: usize) -> LeafAnswer<'a> {
        LeafAnswer {
            reward: self.rewards[row],
            discount: self.discounts.map(|discounts| discounts[row]),
            logits: Logits::All(&self.logits[row * num_actions..(row + 1) * num_actions]),
            value: self.values[row],
        }
    }
}

/// What a model says of one leaf; see `ModelAnswer`.
#[derive(Clone, Copy, Debug)]
pub struct LeafAnswer<'a> {
    /// The reward of the move that led there.
    pub reward: f64,
    /// What its value is multiplied by.
    pub discount: Option<f64>,
    /// What it says of moves.
    pub logits: Logits<'a>,
    /// Its value.
    pub value: f64,
}

/// What a model says of the moves of a position.
#[derive(Clone, Copy, Debug)]
pub enum Logits<'a> {
    /// A logit for each action.
    All(&'a [f32]),
    /// The likeliest actions, as whole numbers, and their logits: as many as a node can come to need.
    Likeliest {
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
    static MOVES: RefCell<Moves> = RefCell::default();
}

/// Buffers for the moves of a new node.
#[derive(Debug, Default)]
struct Moves {
    /// Of all actions.
    priors: Vec<f32>,
    /// All actions, in their order.
    all: Vec<u16>,
    /// Those that a node keeps, where it does not keep all.
    kept: Vec<u16>,
    /// The likeliest with their priors, where a device has picked them.
    likeliest: Vec<(u16, f32)>,
    /// Their exponentials.
    shares: Vec<f64>,
}

impl Moves {
    /// Gives `node` its moves, lowest action first: those with a prior above 0, in wide spaces the `most` likeliest of them
    /// (a node that is visited at most that often needs no others). The prior of the rest.
    fn give(&mut self, tree: &mut Tree, node: NodeIndex, logits: &[f32], most: usize) -> f32 {
        self.priors.clear();
        self.priors.extend_from_slice(logits);
        softmax(&mut self.priors);
        let ruled_out = self.priors.iter().fold(false, |any, &prior| any | (prior <= 0.0));
        if !ruled_out && (logits.len() <= WIDE || logits.len() <= most) {
            if self.all.len() != logits.len() {
                self.all = (0..logits.len() as u16).collect();
            }
            tree.add_edges(node, &self.all);
            tree.priors_mut(node).copy_from_slice(&self.priors);
            return 0.0;
        }
        self.kept.clear();
        self.kept.extend((0..logits.len() as u16).filter(|&action| self.priors[usize::from(action)] > 0.0));
        let tail = if logits.len() <= WIDE || self.kept.len() <= most { 0.0 } else { self.drop_unlikely(logits, most) };
        tree.add_edges(node, &self.kept);
        for (prior, &action) in tree.priors_mut(node).iter_mut().zip(&self.kept) {
            *prior = self.priors[usize::from(action)];
        }
        tail
    }

    /// Gives `node` the likeliest of its moves, as a device has picked them. The prior of the rest.
    fn give_likeliest(&mut self, tree: &mut Tree, node: NodeIndex, actions: &[f32], logits: &[f32], log_sum: f64) -> f32 {
        self.shares.resize(logits.len(), 0.0);
        exp_all(logits, log_sum, &mut self.shares);
        let likeliest = actions.iter().zip(&self.shares).map(|(&action, &share)| (action as u16, share as f32));
        self.likeliest.clear();
        self.likeliest.extend(likeliest.filter(|&(_, prior)| prior > 0.0));
        self.likeliest.sort_unstable_by_key(|&(action, _)| action);
        self.kept.clear();
        self.kept.extend(self.likeliest.iter().map(|&(action, _)| action));
        tree.add_edges(node, &self.kept);
        let mut rest = 1.0;
        for (own, &(_, prior)) in tree.priors_mut(node).iter_mut().zip(&self.likeliest) {
            *own = prior;
            rest -= f64::from(prior);
        }
        rest.max(0.0) as f32
    }

    /// Keeps the `most` likeliest; the prior of the others.
    fn drop_unlikely(&mut self, logits: &[f32], most: usize) -> f32 {
        let by_logit = |a: &u16, b: &u16| logits[usize::from(*b)].total_cmp(&logits[usize::from(*a)]).then(a.cmp(b));
        self.kept.select_nth_unstable_by(most - 1, by_logit);
        self.kept[most..].sort_unstable();
        let tail = self.kept[most..].iter().fold(0.0, |sum, &action| sum + f64::from(self.priors[usize::from(action)]));
        self.kept.truncate(most);
        self.kept.sort_unstable();
        tail as f32
    }
}

impl SearchState<Latent> {
    /// Gives each waiting leaf its node, backs its value up, and closes the batch. Nothing here can fail: what comes from
    /// outside is checked before.
    pub fn apply_model<'a>(&mut self, tree: &mut Tree, config: &SearchConfig, answer: impl Fn(usize) -> LeafAnswer<'a>) {
        let keep_bounds = matches!(&config.score, Score::MuZero(rule) if rule.normalize == Normalize::Tree);
        let mut moves = MOVES.take();
        let mut leaves = std::mem::take(&mut self.pending);
        for (row, leaf) in leaves.iter_mut().enumerate() {
            let Some(last) = leaf.path.last().copied() else { continue };
            for step in &leaf.path {
                tree.fly(step.edge, -1);
            }
            let other = if config.players == 2 { 1 - last.chooser } else { last.chooser };
            let answer = answer(row);
            let (to_play, discount) = match answer.discount {
                Some(discount) if discount < 0.0 => (other, -discount),
                Some(discount) => (last.chooser, discount),
                None => (other, config.discount),
            };
            let left = self.target.saturating_sub(leaf.simulation + 1).max(LEAST_KEPT);
            let node = tree.add_node(to_play, 0);
            tree.set_child(last.edge, node);
            let tail = match answer.logits {
                Logits::All(logits) => moves.give(tree, node, logits, usize::try_from(left).unwrap_or(usize::MAX)),
                Logits::Likeliest { actions, logits, log_sum } => moves.give_likeliest(tree, node, actions, logits, log_sum),
            };
            tree.node_mut(node).raw = answer.value;
            tree.set_slot(node, leaf.slot);
            tree.set_gain(node, answer.reward, discount, tail);
            backup::discounted(tree, &leaf.path, node, answer.value, keep_bounds);
            if config.trace {
                let steps = std::mem::take(&mut leaf.trace);
                self.trace.push(TraceRow { simulation: leaf.simulation, steps, values: vec![answer.value] });
            }
            self.simulations += 1;
        }
        leaves.clear();
        self.pending = leaves;
        MOVES.set(moves);
        self.close();
    }
}
