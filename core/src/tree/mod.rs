//! The arena of one search tree: nodes, edges and their statistics. Generic in game and search algorithm.
//!
//! ```text
//! node (28 bytes)                 its edges: one run in a block, field after field, 22 bytes an edge
//! +-------------------------+    +------------------+--------------+--------------+--------------+-------------+
//! | raw value, first_edge --+--> | W  f64 x n       | N  u32 x n   | P  f32 x n   | links u32 x n| actions u16 |
//! | num_edges n, opened     |    | for the chooser  |              |              | child, proof |             |
//! | to_play, terminal, proof|    +------------------+--------------+--------------+--------------+-------------+
//! +-------------------------+      opened edges come first, in the order of opening; the others are untried
//! ```
//!
//! A block holds the edge runs of many nodes. Nothing moves once it is stored: growth copies nothing and wastes at most one block.

mod columns;
mod edges;
mod exported;
pub(crate) mod journal;
mod node;
mod traversal;
mod untried;
mod window;

use crate::memory::block::{Block, Element};
use crate::memory::slab::Pool;
use columns::Columns;
use edges::EdgeArena;
pub(crate) use edges::OrderedEdge;
pub use edges::{Edge, Edges, Statistics};
pub use exported::TreeColumns;
pub(crate) use traversal::depths;
pub(crate) use traversal::node_depths;

pub(crate) use node::{owner, CHANCE};
pub use node::{Link, Node, UNPROVEN};
use node::{EMPTY_NODE, UNKNOWN};
pub use window::{WindowOptions, WindowRow};

/// Index of a node.
pub type NodeIndex = u32;

/// The root is the first node.
pub const ROOT: NodeIndex = 0;

/// Blocks are small: with many small trees, large blocks would map to the same cache sets.
const BLOCK_BITS: u32 = 6;
const NODE_BLOCK: usize = 1 << BLOCK_BITS;

/// Bytes that a restored tree may reserve in any case (`Tree::grow_to`).
const MAX_UNUSED_BYTES: usize = 1 << 26;

impl Element for Node {
    #[inline]
    fn pool(capacity: usize) -> Option<&'static Pool<Self>> {
        static POOL: Pool<Node> = Pool::new(NODE_BLOCK);
        (capacity == NODE_BLOCK).then_some(&POOL)
    }
}

/// What an expanded node is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backup {
    /// The mean of its visits.
    #[default]
    Mean,
    /// Its best visited edge (MaxUCT).
    Max,
}

impl Backup {
    /// The kinds by name.
    pub const NAMES: [(Option<&'static str>, Self); 2] = [(Some("mean"), Self::Mean), (Some("max"), Self::Max)];
}

/// What a tree stores; fixed when the tree is created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Upper bound of the edges of a node, except for outcomes of chance.
    pub max_edges: usize,
    /// Number of players.
    pub players: usize,
    /// Whether edges count the leaves in flight below them.
    pub count_in_flight: bool,
    /// Whether nodes have a slot (external worlds).
    pub slots: bool,
    /// Rewards per node: one for each player, or 0.
    pub reward_width: usize,
    /// Whether nodes have a reward, a discount and a pruned prior mass (learned models).
    pub model_columns: bool,
    /// Whether nodes have values per player (all but two-player zero-sum games and learned models).
    pub player_values: bool,
    /// Discount per move (learned models: 1, as their nodes have their own).
    pub discount: f64,
    /// What an expanded node is worth: W of an edge is N times what the move leads to.
    pub backup: Backup,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            max_edges: 0,
            players: 0,
            count_in_flight: false,
            slots: false,
            reward_width: 0,
            model_columns: false,
            player_values: false,
            discount: 1.0,
            backup: Backup::Mean,
        }
    }
}

/// One tree.
#[derive(Clone, Debug)]
pub struct Tree {
    shape: Shape,
    nodes: Vec<Block<Node>>,
    num_nodes: u32,
    edges: EdgeArena,
    columns: Columns,
    /// N of the root: the visits of its edges, plus 1 if the root was evaluated.
    pub root_visits: u32,
    /// Number of positions: the root and every opened edge.
    pub positions: u32,
}

/// The extent of a tree at one time, for `Tree::truncate`.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    num_nodes: u32,
    edges: edges::Mark,
    /// Wider than in the tree, so that the copy reads this field alone: one load across it and its neighbour, just after a store
    /// to it, would fail store-to-load forwarding and stall.
    root_visits: u64,
    positions: u32,
}

impl Tree {
    /// Creates an empty tree; the first node added is its root.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            nodes: Vec::new(),
            num_nodes: 0,
            edges: EdgeArena::new(shape.max_edges, shape.count_in_flight),
            columns: Columns::default(),
            root_visits: 0,
            positions: 1,
        }
    }

    /// Returns what the tree stores.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns whether edges count leaves in flight.
    #[inline]
    #[must_use]
    pub fn counts_in_flight(&self) -> bool {
        self.shape.count_in_flight
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn num_nodes(&self) -> usize {
        self.num_nodes as usize
    }

    /// Returns the number of stored edges, untried ones included.
    #[must_use]
    pub fn num_edges(&self) -> usize {
        self.edges.stored()
    }

    /// Returns the bytes in use, spare capacity included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.len() * NODE_BLOCK * size_of::<Node>() + self.edges.bytes() + self.columns.bytes()
    }

    /// Returns whether `nodes` more nodes with `Shape::max_edges` edges each fit into `max_bytes` and `max_positions`.
    /// A tree that consists of its root always fits.
    #[inline]
    #[must_use]
    pub fn has_room(&self, nodes: usize, max_bytes: usize, max_positions: usize) -> bool {
        let free_nodes = self.nodes.len() * NODE_BLOCK - self.num_nodes as usize;
        let is_within = self.positions as usize + nodes <= max_positions;
        is_within && ((nodes <= free_nodes && self.edges.new_blocks(nodes) == 0) || self.can_grow(nodes, max_bytes))
    }

    /// `has_room` where new blocks are needed.
    #[cold]
    #[inline(never)]
    fn can_grow(&self, nodes: usize, max_bytes: usize) -> bool {
        let free_nodes = self.nodes.len() * NODE_BLOCK - self.num_nodes as usize;
        let edge_blocks = self.edges.new_blocks(nodes);
        let node_blocks = nodes.saturating_sub(free_nodes).div_ceil(NODE_BLOCK);
        let columns = (node_blocks * NODE_BLOCK * 2 * Columns::bytes_per_node(self.shape)).max(if node_blocks > 0 {
            self.columns.growth(self.shape, self.num_nodes() + nodes)
        } else {
            0
        });
        let grown = node_blocks * NODE_BLOCK * size_of::<Node>() + columns + edge_blocks * self.edges.block_bytes();
        let indices_left = (self.num_nodes as usize + nodes) < Link::INDEX as usize && self.edges.has_indices(edge_blocks);
        indices_left && self.bytes() + grown <= max_bytes
    }

    /// Returns what `bytes` and `has_room` depend on beside nodes and edges: blocks of nodes and of edges, words of edges in use, and
    /// the capacities of the columns.
    #[must_use]
    pub fn extent(&self) -> [u64; 8] {
        let [slots, rewards, returns, reward_discounts, masses] = self.columns.capacities();
        let [edge_blocks, edge_words] = self.edges.extent();
        [self.nodes.len(), edge_blocks, edge_words, slots, rewards, returns, reward_discounts, masses].map(|number| number as u64)
    }

    /// Reserves as much as another tree with the same nodes had (`extent`), up to `MAX_UNUSED_BYTES` beyond four times what it has.
    pub fn grow_to(&mut self, extent: [u64; 8]) {
        let [node_blocks, edge_blocks, edge_words, columns @ ..] = extent.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let most = 4 * self.bytes() + MAX_UNUSED_BYTES;
        let node_blocks = node_blocks.min(most / (NODE_BLOCK * size_of::<Node>()));
        while self.nodes.len() < node_blocks {
            self.nodes.push(Block::new(NODE_BLOCK));
        }
        self.edges.grow_to(edge_blocks.min(most / self.edges.block_bytes()), edge_words);
        self.columns.grow_to(columns, most);
    }

    /// Returns node `index`.
    #[inline]
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[(index >> BLOCK_BITS) as usize][index as usize & (NODE_BLOCK - 1)]
    }

    /// Returns node `index` for mutation.
    #[inline]
    pub fn node_mut(&mut self, index: NodeIndex) -> &mut Node {
        &mut self.nodes[(index >> BLOCK_BITS) as usize][index as usize & (NODE_BLOCK - 1)]
    }

    /// Adds a node without edges.
    #[inline]
    pub fn add_node(&mut self, to_play: u8) -> NodeIndex {
        let index = self.num_nodes;
        if index as usize == self.nodes.len() * NODE_BLOCK {
            self.nodes.push(Block::new(NODE_BLOCK));
        }
        self.num_nodes += 1;
        *self.node_mut(index) = Node { to_play, ..EMPTY_NODE };
        self.columns.fit(&self.shape, self.num_nodes());
        index
    }

    /// Adds the untried edges of `node`, one per action; at a chance node one per outcome, which may be more than
    /// `Shape::max_edges`.
    pub fn add_edges(&mut self, node: NodeIndex, actions: &[u16]) {
        debug_assert!(actions.len() <= self.shape.max_edges || self.node(node).is_chance());
        let first_edge = self.edges.add(actions);
        let header = self.node_mut(node);
        header.max_untried_prior = UNKNOWN;
        header.first_edge = first_edge;
        header.num_edges = actions.len() as u16;
    }

    /// Links `child` to `edge`.
    #[inline]
    pub fn set_child(&mut self, edge: Edge, child: NodeIndex) {
        let link = self.edges.link_mut(edge);
        *link = link.with_child(child);
    }

    /// Sets the proven result of `edge` for its chooser.
    pub fn set_proven(&mut self, edge: Edge, value: i8) {
        let link = self.edges.link_mut(edge);
        *link = link.with_proven(value);
    }

    /// Returns the priors of a node's edges for mutation; invalidates the cached maximum.
    pub fn priors_mut(&mut self, node: NodeIndex) -> &mut [f32] {
        let header = self.node_mut(node);
        header.max_untried_prior = UNKNOWN;
        let header = *header;
        self.edges.priors_mut(&header)
    }

    /// Rewrites the edges of a node with no opened edge in this order; the first `ordered_prefix` are opened before edges are scored.
    pub fn order_edges(&mut self, node: NodeIndex, moves: &[OrderedEdge], ordered_prefix: u8) {
        let header = *self.node(node);
        debug_assert_eq!((header.num_edges as usize, header.opened), (moves.len(), 0));
        self.edges.order_edges(&header, moves);
        let header = self.node_mut(node);
        (header.ordered_prefix, header.max_untried_prior) = (ordered_prefix, UNKNOWN);
    }

    /// Sets the tag of an edge.
    pub fn set_tag(&mut self, edge: Edge, tag: u8) {
        let link = self.edges.link_mut(edge);
        *link = link.with_tag(tag);
    }

    /// Returns the indices of all nodes.
    pub fn indices(&self) -> std::ops::Range<NodeIndex> {
        0..self.num_nodes
    }

    /// Returns the current extent.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { num_nodes: self.num_nodes, edges: self.edges.mark(), root_visits: u64::from(self.root_visits), positions: self.positions }
    }

    /// Drops everything added since `mark`.
    pub fn truncate(&mut self, mark: Mark) {
        self.num_nodes = mark.num_nodes;
        self.edges.truncate(mark.edges);
        self.root_visits = mark.root_visits as u32;
        self.positions = mark.positions;
        self.columns.fit(&self.shape, self.num_nodes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_node_blocks_are_distinct_and_whole() {
        let blocks: Vec<Block<Node>> = (0..2_000).map(|_| Block::new(NODE_BLOCK)).collect();
        assert!(blocks.iter().all(|block| block.len() == NODE_BLOCK));
        let starts: std::collections::HashSet<usize> = blocks.iter().map(|block| block.as_ptr() as usize).collect();
        assert_eq!(starts.len(), blocks.len());
    }
}
