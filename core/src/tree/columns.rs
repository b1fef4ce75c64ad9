//! What only some worlds keep beside each node: a slot, the rewards of the move that led there, the returns of an end.

use super::{NodeIndex, Shape, Tree};

/// One entry a node (and player), or nothing where the world has no use for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    slots: Vec<u32>,
    rewards: Vec<f64>,
    returns: Vec<f64>,
}

impl Columns {
    /// Makes room for `nodes`, or forgets what is beyond.
    pub(super) fn fit(&mut self, shape: Shape, nodes: usize) {
        if shape.slots {
            self.slots.resize(nodes, u32::MAX);
        }
        if shape.rewards {
            self.rewards.resize(nodes * shape.players, 0.0);
        }
        if shape.returns {
            self.returns.resize(nodes * shape.players, 0.0);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * 4 + (self.rewards.capacity() + self.returns.capacity()) * 8
    }

    pub(super) fn bytes_per_node(shape: Shape) -> usize {
        4 * usize::from(shape.slots) + 8 * shape.players * (usize::from(shape.rewards) + usize::from(shape.returns))
    }

    #[inline]
    fn row(column: &[f64], node: NodeIndex, players: usize) -> &[f64] {
        column.get(node as usize * players..(node as usize + 1) * players).unwrap_or(&[])
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

    /// The rewards, per player, of the move that led to `node`; empty where there are none.
    #[inline]
    #[must_use]
    pub fn rewards(&self, node: NodeIndex) -> &[f64] {
        Columns::row(&self.columns.rewards, node, self.shape.players)
    }

    /// Sets the rewards of a node.
    pub fn set_rewards(&mut self, node: NodeIndex, rewards: &[f64]) {
        let at = node as usize * self.shape.players;
        self.columns.rewards[at..at + rewards.len()].copy_from_slice(rewards);
    }

    /// The returns, per player, of an end; empty in two-player zero-sum games, whose `raw` says it all.
    #[must_use]
    pub fn returns(&self, node: NodeIndex) -> &[f64] {
        Columns::row(&self.columns.returns, node, self.shape.players)
    }

    /// Sets the returns of an end.
    pub fn set_returns(&mut self, node: NodeIndex, returns: &[f64]) {
        let at = node as usize * self.shape.players;
        self.columns.returns[at..at + returns.len()].copy_from_slice(returns);
    }
}
