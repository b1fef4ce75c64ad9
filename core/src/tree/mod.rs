//! The arena of one tree. It knows no game and no search: nodes, edges, and the few numbers on them.
//!
//! ```text
//! node (28 bytes)                 its edges: one run in a block, field after field, 22 bytes an edge
//! +-------------------------+    +------------------+--------------+--------------+--------------+-------------+
//! | raw value, first_edge --+--> | W  f64 x n       | N  u32 x n   | P  f32 x n   | links u32 x n| actions u16 |
//! | num_edges n, opened     |    | for the chooser  |              |              | child, proof |             |
//! | to_play, end, proven    |    +------------------+--------------+--------------+--------------+-------------+
//! +-------------------------+      opened edges stand first, in the order of opening; the rest was never tried
//! ```
//!
//! A block holds the runs of many nodes; nothing ever moves, so growing costs no copy and wastes at most one block.

mod columns;
mod edges;
mod exported;
pub(crate) mod journal;
mod node;
mod prefetch;
mod traversal;
mod untried;

use crate::memory::block::{Block, Element};
use crate::memory::slab::Pool;
use columns::Columns;
use edges::EdgeArena;
pub use edges::{Edge, Edges, OrderedEdge, Statistics};
pub use exported::TreeColumns;
pub use traversal::depths;

pub use node::{Link, Node, UNPROVEN};
use node::{EMPTY_NODE, UNKNOWN};

/// Index of a node.
pub type NodeIndex = u32;

/// The root is always the first node.
pub const ROOT: NodeIndex = 0;

/// Small blocks: with many small trees, large ones lie so far apart that they fight for the same places in the cache.
const BLOCK_BITS: u32 = 6;
const NODE_BLOCK: usize = 1 << BLOCK_BITS;

impl Element for Node {
    #[inline]
    fn pool(capacity: usize) -> Option<&'static Pool<Self>> {
        static POOL: Pool<Node> = Pool::new(NODE_BLOCK);
        (capacity == NODE_BLOCK).then_some(&POOL)
    }
}

/// What a tree stores, fixed at its start.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// No node has more edges than this.
    pub max_edges: usize,
    /// Number of players.
    pub players: usize,
    /// Count leaves in flight on the edges.
    pub count_in_flight: bool,
    /// Keep a slot per node (external worlds).
    pub slots: bool,
    /// Rewards kept per node: one for each player, or none.
    pub rewards: usize,
    /// Keep reward and discount of each node, and the prior of moves it does not keep (history_table models).
    pub discounts: bool,
    /// Keep the values of nodes per player (all but two-player zero-sum games and history_table models).
    pub returns: bool,
}

/// One tree. What every simulation looks at comes first, so that it lies in few cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Tree {
    nodes: Vec<Block<Node>>,
    edges: EdgeArena,
    num_nodes: u32,
    /// N of the root: visits of its edges, and one for its own evaluation if it had one.
    pub root_visits: u32,
    /// Positions in the tree: the root and every opened edge.
    pub positions: u32,
    /// The lowest and highest Q that was backed up, where the search asks for it; without any, the first is above the second.
    pub bounds: (f64, f64),
    shape: Shape,
    columns: Columns,
    /// The moves to the mate that decided the root, with the best play of both sides; empty where none did.
    pub mating_line: Vec<u16>,
    /// The priors of the root without noise, by action; empty where there is no noise.
    pub clean_priors: Vec<(u16, f32)>,
}

/// How far a tree had grown, to cut it back to there.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    num_nodes: u32,
    edges: edges::Mark,
    /// Wider than in the tree, so that it is read by itself: it has just been written there, and a processor that reads two fields
    /// at once, of which one is on its way to memory, waits until it has arrived.
    root_visits: u64,
    positions: u32,
    bounds: (f64, f64),
}

/// Bounds that nothing has widened yet.
pub const NO_BOUNDS: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

impl Tree {
    /// An empty tree: the first node added is its root.
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
            bounds: NO_BOUNDS,
            mating_line: Vec::new(),
            clean_priors: Vec::new(),
        }
    }

    /// What the tree stores.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether leaves in flight are counted on the edges.
    #[inline]
    #[must_use]
    pub fn counts_in_flight(&self) -> bool {
        self.shape.count_in_flight
    }

    /// Number of nodes kept.
    #[must_use]
    pub fn num_nodes(&self) -> usize {
        self.num_nodes as usize
    }

    /// Number of edges kept.
    #[must_use]
    pub fn num_edges(&self) -> usize {
        self.edges.stored()
    }

    /// Memory in use, capacity counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.len() * NODE_BLOCK * size_of::<Node>() + self.edges.bytes() + self.columns.bytes()
    }

    /// Whether `nodes` more nodes, each with the most edges possible, fit into `max_bytes` and `max_positions`.
    /// The tree of a root alone always fits.
    #[must_use]
    pub fn has_room(&self, nodes: usize, max_bytes: usize, max_positions: usize) -> bool {
        if self.positions as usize + nodes > max_positions {
            return false;
        }
        let free_nodes = self.nodes.len() * NODE_BLOCK - self.num_nodes as usize;
        let edge_blocks = self.edges.new_blocks(nodes);
        if nodes <= free_nodes && edge_blocks == 0 {
            return true;
        }
        let node_blocks = nodes.saturating_sub(free_nodes).div_ceil(NODE_BLOCK);
        let grown = node_blocks * NODE_BLOCK * (size_of::<Node>() + 2 * Columns::bytes_per_node(self.shape))
            + edge_blocks * self.edges.block_bytes();
        let indices_left = (self.num_nodes as usize + nodes) < Link::INDEX as usize && self.edges.has_indices(edge_blocks);
        indices_left && self.bytes() + grown <= max_bytes
    }

    /// Node `index`.
    #[inline]
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[(index >> BLOCK_BITS) as usize][index as usize & (NODE_BLOCK - 1)]
    }

    /// Node `index`, to change it.
    #[inline]
    pub fn node_mut(&mut self, index: NodeIndex) -> &mut Node {
        &mut self.nodes[(index >> BLOCK_BITS) as usize][index as usize & (NODE_BLOCK - 1)]
    }

    /// Adds a node without edges.
    pub fn add_node(&mut self, to_play: u8, forced_depth_left: u8) -> NodeIndex {
        let index = self.num_nodes;
        if index as usize == self.nodes.len() * NODE_BLOCK {
            self.nodes.push(Block::new(NODE_BLOCK));
        }
        self.num_nodes += 1;
        *self.node_mut(index) = Node { to_play, forced_depth_left, ..EMPTY_NODE };
        self.columns.fit(self.shape, self.num_nodes());
        index
    }

    /// Gives `node` its edges, one per action, all untried.
    pub fn add_edges(&mut self, node: NodeIndex, actions: &[u16]) {
        debug_assert!(actions.len() <= self.shape.max_edges);
        let first_edge = self.edges.add(actions);
        let header = self.node_mut(node);
        header.max_untried_prior = UNKNOWN;
        header.first_edge = first_edge;
        header.num_edges = actions.len() as u16;
    }

    /// The edges of a node.
    #[inline]
    #[must_use]
    pub fn edges(&self, node: &Node) -> Edges<'_> {
        self.edges.view(node)
    }

    /// N, W and P of a node's edges.
    #[inline]
    #[must_use]
    pub fn statistics(&self, node: &Node) -> Statistics<'_> {
        self.edges.statistics(node)
    }

    /// N, W and link of an edge.
    #[inline]
    #[must_use]
    pub fn edge(&self, edge: Edge) -> (u32, f64, Link) {
        self.edges.get(edge)
    }

    /// N and link of an edge.
    #[inline]
    #[must_use]
    pub fn visits_and_link(&self, edge: Edge) -> (u32, Link) {
        self.edges.visits_and_link(edge)
    }

    /// The move of an edge.
    #[inline]
    #[must_use]
    pub fn action(&self, edge: Edge) -> u16 {
        self.edges.action(edge)
    }

    /// Puts back N, W and link of an edge.
    pub fn set_edge(&mut self, edge: Edge, visits: u32, sum: f64, link: Link) {
        self.edges.set(edge, visits, sum, link);
    }

    /// One more visit, worth `value` to the player who chose the edge: N and W after it.
    #[inline]
    pub fn visit(&mut self, edge: Edge, value: f64) -> (u32, f64) {
        self.edges.visit(edge, value)
    }

    /// Hangs `child` under `edge`.
    #[inline]
    pub fn set_child(&mut self, edge: Edge, child: NodeIndex) {
        let link = self.edges.link_mut(edge);
        *link = link.with_child(child);
    }

    /// Notes what is proven of `edge`, for its chooser.
    pub fn set_proven(&mut self, edge: Edge, value: i8) {
        let link = self.edges.link_mut(edge);
        *link = link.with_proven(value);
    }

    /// The priors of a node's edges, to be set.
    pub fn priors_mut(&mut self, node: NodeIndex) -> &mut [f32] {
        let header = self.node_mut(node);
        header.max_untried_prior = UNKNOWN;
        let header = *header;
        self.edges.priors_mut(&header)
    }

    /// Puts the moves of a node of which none was tried into this order; the first `ordered_prefix` are opened before any is scored.
    pub fn order_edges(&mut self, node: NodeIndex, moves: &[OrderedEdge], ordered_prefix: u8) {
        let header = *self.node(node);
        debug_assert_eq!((header.num_edges as usize, header.opened), (moves.len(), 0));
        self.edges.order_edges(&header, moves);
        let header = self.node_mut(node);
        (header.ordered_prefix, header.max_untried_prior) = (ordered_prefix, UNKNOWN);
    }

    /// Notes the tag of an edge's move.
    pub fn set_tag(&mut self, edge: Edge, tag: u8) {
        let link = self.edges.link_mut(edge);
        *link = link.with_tag(tag);
    }

    /// Leaves in flight through an edge.
    #[inline]
    #[must_use]
    pub fn in_flight(&self, edge: Edge) -> u16 {
        self.edges.in_flight(edge)
    }

    /// Adds to the leaves in flight through an edge.
    #[inline]
    pub fn add_in_flight(&mut self, edge: Edge, change: i16) {
        self.edges.add_in_flight(edge, change);
    }

    /// Swaps two untried edges of one node (their moves, priors and categories; they have nothing else).
    #[inline]
    pub fn swap_untried(&mut self, a: Edge, b: Edge) {
        if a != b {
            self.edges.swap_untried(a, b);
        }
    }

    /// The indices of all nodes.
    pub fn indices(&self) -> std::ops::Range<NodeIndex> {
        0..self.num_nodes
    }

    /// Where the tree has grown to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            num_nodes: self.num_nodes,
            edges: self.edges.mark(),
            root_visits: u64::from(self.root_visits),
            positions: self.positions,
            bounds: self.bounds,
        }
    }

    /// Cuts the tree back to `mark`.
    pub fn truncate(&mut self, mark: Mark) {
        self.num_nodes = mark.num_nodes;
        self.edges.truncate(mark.edges);
        self.root_visits = mark.root_visits as u32;
        self.positions = mark.positions;
        self.bounds = mark.bounds;
        self.columns.fit(self.shape, self.num_nodes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_nodes_are_valid_from_the_start() {
        let blocks: Vec<Block<Node>> = (0..2_000).map(|_| Block::new(NODE_BLOCK)).collect();
        assert!(blocks.iter().all(|block| block.len() == NODE_BLOCK));
        let starts: std::collections::HashSet<usize> = blocks.iter().map(|block| block.as_ptr() as usize).collect();
        assert_eq!(starts.len(), blocks.len());
    }
}
