//! What only some worlds keep beside each node: a slot, the rewards of the move that led there, its values per player; of
//! history_table models the discount too, and the prior of moves that a node with very many does not keep.

use super::{NodeIndex, Shape, Tree};

/// One entry a node (and player), or nothing where the world has no use for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    slots: Vec<u32>,
    rewards: Vec<f64>,
    returns: Vec<f64>,
    reward_discounts: Vec<RewardDiscount>,
    pruned_prior_mass: Vec<f32>,
}

/// What the move to a node brings in a history_table model; side by side, because a backup wants both of every node on its path.
#[derive(Clone, Copy, Debug)]
struct RewardDiscount {
    reward: f64,
    discount: f64,
}

impl Columns {
    /// Makes room for `nodes`, or forgets what is beyond.
    pub(super) fn fit(&mut self, shape: Shape, nodes: usize) {
        if shape.slots {
            self.slots.resize(nodes, u32::MAX);
        }
        if shape.rewards > 0 {
            self.rewards.resize(nodes * shape.rewards, 0.0);
        }
        if shape.returns {
            self.returns.resize(nodes * shape.players, 0.0);
        }
        if shape.discounts {
            self.reward_discounts.resize(nodes, RewardDiscount { reward: 0.0, discount: 1.0 });
            self.pruned_prior_mass.resize(nodes, 0.0);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        (self.slots.capacity() + self.pruned_prior_mass.capacity()) * 4
            + (self.rewards.capacity() + self.returns.capacity() + 2 * self.reward_discounts.capacity()) * 8
    }

    pub(super) fn bytes_per_node(shape: Shape) -> usize {
        4 * usize::from(shape.slots) + 8 * (shape.rewards + shape.players * usize::from(shape.returns)) + 20 * usize::from(shape.discounts)
    }

    #[inline]
    fn row(column: &[f64], node: NodeIndex, width: usize) -> &[f64] {
        column.get(node as usize * width..(node as usize + 1) * width).unwrap_or(&[])
    }
}

impl Tree {
    /// The slot of a node (external worlds).
    #[must_use]
    pub fn slot(&self, node: NodeIndex) -> Option<u32> {
        self.columns.slots.get(node as usize).copied().filter(|&slot| slot != u32::MAX)
    }

    /// Sets the slot of a node.
    pub fn set_slot(&mut self, node: NodeIndex, slot: u32) {
        self.columns.slots[node as usize] = slot;
    }

    /// The rewards of the move that led to `node`, per player, or of its chooser alone; empty where there are none.
    #[inline]
    #[must_use]
    pub fn rewards(&self, node: NodeIndex) -> &[f64] {
        match self.columns.reward_discounts.get(node as usize) {
            Some(gain) => std::slice::from_ref(&gain.reward),
            None => Columns::row(&self.columns.rewards, node, self.shape.rewards),
        }
    }

    /// Sets the rewards of a node.
    pub fn set_rewards(&mut self, node: NodeIndex, rewards: &[f64]) {
        let at = node as usize * self.shape.rewards;
        self.columns.rewards[at..at + rewards.len()].copy_from_slice(rewards);
    }

    /// The reward of the move that led to `node`, and what the node's value is multiplied by on its way up (history_table models).
    #[inline]
    #[must_use]
    pub fn reward_discount(&self, node: NodeIndex) -> (f64, f64) {
        self.columns.reward_discounts.get(node as usize).map_or((0.0, 1.0), |gain| (gain.reward, gain.discount))
    }

    /// The prior of the moves that `node` does not keep.
    #[inline]
    #[must_use]
    pub fn pruned_prior_mass(&self, node: NodeIndex) -> f64 {
        self.columns.pruned_prior_mass.get(node as usize).map_or(0.0, |&tail| f64::from(tail))
    }

    /// Sets reward and discount of a node, and the prior of the moves it does not keep.
    pub fn set_reward_discount(&mut self, node: NodeIndex, reward: f64, discount: f64, tail: f32) {
        self.columns.reward_discounts[node as usize] = RewardDiscount { reward, discount };
        self.columns.pruned_prior_mass[node as usize] = tail;
    }

    /// What a node was valued at, per player: the returns of an end, or what its evaluation said. Empty in two-player zero-sum games
    /// and history_table models, whose `raw` says it all.
    #[must_use]
    pub fn returns(&self, node: NodeIndex) -> &[f64] {
        Columns::row(&self.columns.returns, node, self.shape.players)
    }

    /// Sets what a node was valued at, per player.
    pub fn set_returns(&mut self, node: NodeIndex, returns: &[f64]) {
        let at = node as usize * self.shape.players;
        self.columns.returns[at..at + returns.len()].copy_from_slice(returns);
    }
}
