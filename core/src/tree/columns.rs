//! Optional per-node columns: slot, rewards, values per player; for learned models reward, discount and pruned prior mass.

use super::{NodeIndex, Shape, Tree};

/// One entry per node (and player); empty unless `Shape` has the column.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    pub(super) slots: Vec<u32>,
    pub(super) rewards: Vec<f64>,
    pub(super) returns: Vec<f64>,
    pub(super) reward_discounts: Vec<RewardDiscount>,
    pub(super) pruned_prior_mass: Vec<f32>,
}

/// Reward and discount of the move to a node; adjacent, because a backup reads both at every node of its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RewardDiscount {
    pub(super) reward: f64,
    pub(super) discount: f64,
}

impl Columns {
    /// Grows or truncates the columns to `nodes` entries.
    #[inline]
    pub(super) fn fit(&mut self, shape: &Shape, nodes: usize) {
        if shape.slots | (shape.reward_width > 0) | shape.player_values | shape.model_columns {
            self.resize(shape, nodes);
        }
    }

    fn resize(&mut self, shape: &Shape, nodes: usize) {
        if shape.slots {
            self.slots.resize(nodes, u32::MAX);
        }
        if shape.reward_width > 0 {
            self.rewards.resize(nodes * shape.reward_width, 0.0);
        }
        if shape.player_values {
            self.returns.resize(nodes * shape.players, 0.0);
        }
        if shape.model_columns {
            self.reward_discounts.resize(nodes, RewardDiscount { reward: 0.0, discount: 1.0 });
            self.pruned_prior_mass.resize(nodes, 0.0);
        }
    }

    /// Returns the capacity of each column.
    pub(super) fn capacities(&self) -> [usize; 5] {
        let Self { slots, rewards, returns, reward_discounts, pruned_prior_mass } = self;
        [slots.capacity(), rewards.capacity(), returns.capacity(), reward_discounts.capacity(), pruned_prior_mass.capacity()]
    }

    /// Reserves the capacity of each column, up to `most` bytes.
    pub(super) fn grow_to(&mut self, capacities: [usize; 5], most: usize) {
        fn grow<T>(column: &mut Vec<T>, capacity: usize, most: usize) {
            column.reserve_exact(capacity.min(most / size_of::<T>()).saturating_sub(column.len()));
        }
        grow(&mut self.slots, capacities[0], most);
        grow(&mut self.rewards, capacities[1], most);
        grow(&mut self.returns, capacities[2], most);
        grow(&mut self.reward_discounts, capacities[3], most);
        grow(&mut self.pruned_prior_mass, capacities[4], most);
    }

    pub(super) fn bytes(&self) -> usize {
        (self.slots.capacity() + self.pruned_prior_mass.capacity()) * 4
            + (self.rewards.capacity() + self.returns.capacity() + 2 * self.reward_discounts.capacity()) * 8
    }

    /// Returns the bytes that the columns grow by for `nodes` nodes: a full vector doubles.
    pub(super) fn growth(&self, shape: Shape, nodes: usize) -> usize {
        let doubled = |capacity: usize, needed: usize| if needed > capacity { capacity.max(needed - capacity) } else { 0 };
        let [slots, rewards, returns, reward_discounts, masses] = self.capacities();
        let doubles = doubled(rewards, nodes * shape.reward_width)
            + doubled(returns, nodes * shape.players * usize::from(shape.player_values))
            + 2 * doubled(reward_discounts, nodes * usize::from(shape.model_columns));
        let words = doubled(slots, nodes * usize::from(shape.slots)) + doubled(masses, nodes * usize::from(shape.model_columns));
        8 * doubles + 4 * words
    }

    pub(super) fn bytes_per_node(shape: Shape) -> usize {
        4 * usize::from(shape.slots)
            + 8 * (shape.reward_width + shape.players * usize::from(shape.player_values))
            + 20 * usize::from(shape.model_columns)
    }

    #[inline]
    fn row(column: &[f64], node: NodeIndex, width: usize) -> &[f64] {
        column.get(node as usize * width..(node as usize + 1) * width).unwrap_or(&[])
    }
}

impl Tree {
    /// Returns the slot of a node (external worlds).
    #[must_use]
    pub fn slot(&self, node: NodeIndex) -> Option<u32> {
        self.columns.slots.get(node as usize).copied().filter(|&slot| slot != u32::MAX)
    }

    /// Sets the slot of a node.
    pub fn set_slot(&mut self, node: NodeIndex, slot: u32) {
        self.columns.slots[node as usize] = slot;
    }

    /// Returns the rewards of the move to `node`: per player, or for its chooser alone (learned models); empty without rewards.
    #[inline]
    #[must_use]
    pub fn rewards(&self, node: NodeIndex) -> &[f64] {
        match self.columns.reward_discounts.get(node as usize) {
            Some(gain) => std::slice::from_ref(&gain.reward),
            None => Columns::row(&self.columns.rewards, node, self.shape.reward_width),
        }
    }

    /// Sets the rewards of a node.
    pub fn set_rewards(&mut self, node: NodeIndex, rewards: &[f64]) {
        let at = node as usize * self.shape.reward_width;
        self.columns.rewards[at..at + rewards.len()].copy_from_slice(rewards);
    }

    /// Returns the reward of the move to `node` and the discount of the node's value (learned models).
    #[inline]
    #[must_use]
    pub fn reward_discount(&self, node: NodeIndex) -> (f64, f64) {
        self.columns.reward_discounts.get(node as usize).map_or((0.0, 1.0), |gain| (gain.reward, gain.discount))
    }

    /// Returns the sum of the priors of actions that `node` has no edges for.
    #[inline]
    #[must_use]
    pub fn pruned_prior_mass(&self, node: NodeIndex) -> f64 {
        self.columns.pruned_prior_mass.get(node as usize).map_or(0.0, |&mass| f64::from(mass))
    }

    /// Sets reward, discount and pruned prior mass of a node.
    pub fn set_reward_discount(&mut self, node: NodeIndex, reward: f64, discount: f64, pruned_prior_mass: f32) {
        self.columns.reward_discounts[node as usize] = RewardDiscount { reward, discount };
        self.columns.pruned_prior_mass[node as usize] = pruned_prior_mass;
    }

    /// Returns the values of a node per player: terminal returns or evaluation. Empty in two-player zero-sum games and learned models,
    /// where `raw_value` suffices.
    #[must_use]
    pub fn returns(&self, node: NodeIndex) -> &[f64] {
        Columns::row(&self.columns.returns, node, self.shape.players)
    }

    /// Sets the values of a node per player.
    pub fn set_returns(&mut self, node: NodeIndex, returns: &[f64]) {
        let at = node as usize * self.shape.players;
        self.columns.returns[at..at + returns.len()].copy_from_slice(returns);
    }
}
