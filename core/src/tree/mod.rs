//! The arena of one tree. It knows no game and no search: nodes, edges, and the few numbers on them.
//!
//! ```text
//! node (24 bytes)                       its edges: one contiguous run of a block, split by field
//! +----------------------------+        visits   [ 12 | 3 | 1 | 0 | 0 ]   N   u32
//! | raw value, first_edge -----+------> sums     [ .. | . | . | 0 | 0 ]   W   f64, for the player who chooses here
//! | num_edges, opened = 3      |        priors   [ .. | . | . | . | . ]   P   f32
//! | to_play, end, proven ...   |        links    [  7 | 9 | - | - | - ]   child node and what is proven of it
//! +----------------------------+        actions  [  2 | 5 | 0 | 1 | 6 ]
//!                                         opened: 3 ----^   the rest has never been tried
//! ```
//!
//! The opened edges of a node always stand first, in the order in which they were opened. A block holds the edges of many
//! nodes; nothing ever moves, so growing costs no copy and wastes at most one block.

mod columns;
mod node;
mod transplant;

use columns::Columns;

use node::EMPTY_NODE;
pub use node::{Link, Node, UNPROVEN};

/// Index of a node.
pub type NodeIndex = u32;
/// Index of an edge: block number and place in the block.
pub type EdgeIndex = u32;

/// The root is always the first node.
pub const ROOT: NodeIndex = 0;

const BLOCK_BITS: u32 = 10;
/// Edges are scored this many at a time. A block has room for one such group beyond its end, so that the last group of a
/// node may always be read whole; what stands there belongs to others and is not looked at.
pub const LANES: usize = 4;
const NODE_BLOCK: usize = 1 << BLOCK_BITS;

/// A run of edges, split by field.
#[derive(Clone, Debug)]
struct EdgeBlock {
    visits: Box<[u32]>,
    sums: Box<[f64]>,
    priors: Box<[f32]>,
    links: Box<[Link]>,
    actions: Box<[u16]>,
    /// Leaves under way through each edge; empty in a tree that never has more than one.
    in_flight: Box<[u16]>,
}

/// The edges of one node, read only. `in_flight` is empty where the tree does not count it.
#[derive(Clone, Copy, Debug)]
pub struct Edges<'a> {
    /// N.
    pub visits: &'a [u32],
    /// W, for the player who chooses.
    pub sums: &'a [f64],
    /// P.
    pub priors: &'a [f32],
    /// Children.
    pub links: &'a [Link],
    /// The moves.
    pub actions: &'a [u16],
    /// Leaves under way.
    pub in_flight: &'a [u16],
}

/// The edges of one node in whole groups, for scoring.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<'a> {
    /// N.
    pub visits: &'a [u32],
    /// W.
    pub sums: &'a [f64],
    /// P.
    pub priors: &'a [f32],
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
    /// Keep rewards per node and player.
    pub rewards: bool,
    /// Keep the returns of ends per player (all but two-player zero-sum games).
    pub returns: bool,
}

/// One tree.
#[derive(Clone, Debug)]
pub struct Tree {
    shape: Shape,
    block_bits: u32,
    nodes: Vec<Box<[Node]>>,
    num_nodes: u32,
    edges: Vec<EdgeBlock>,
    num_edges: u32,
    /// Edges in use, without the unused tails of blocks.
    stored_edges: u32,
    columns: Columns,
    /// N of the root: visits of its edges, and one for its own evaluation if it had one.
    pub root_visits: u32,
    /// Positions in the tree: the root and every opened edge.
    pub positions: u32,
    /// The priors of the root without noise, by action; empty where there is no noise.
    pub clean_priors: Vec<(u16, f32)>,
}

/// How far a tree had grown, to cut it back to there.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    num_nodes: u32,
    num_edges: u32,
    stored_edges: u32,
    root_visits: u32,
    positions: u32,
}

impl Tree {
    /// An empty tree: the first node added is its root.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let wanted = usize::BITS - shape.max_edges.saturating_sub(1).leading_zeros();
        Self {
            shape,
            block_bits: wanted.max(BLOCK_BITS),
            nodes: Vec::new(),
            num_nodes: 0,
            edges: Vec::new(),
            num_edges: 0,
            stored_edges: 0,
            columns: Columns::default(),
            root_visits: 0,
            positions: 1,
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
        self.stored_edges as usize
    }

    fn edge_block_bytes(&self) -> usize {
        ((4 + 8 + 4 + 4 + 2 + if self.shape.count_in_flight { 2 } else { 0 }) << self.block_bits) + LANES * (4 + 8 + 4)
    }

    /// Memory in use, capacity counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.len() * NODE_BLOCK * size_of::<Node>() + self.edges.len() * self.edge_block_bytes() + self.columns.bytes()
    }

    /// Whether `nodes` more nodes, each with the most edges possible, fit into `max_bytes` and `max_positions`.
    /// The tree of a root alone always fits.
    #[must_use]
    pub fn has_room(&self, nodes: usize, max_bytes: usize, max_positions: usize) -> bool {
        if self.positions as usize + nodes > max_positions {
            return false;
        }
        let free_nodes = self.nodes.len() * NODE_BLOCK - self.num_nodes as usize;
        let block = 1usize << self.block_bits;
        let free_edges = (self.edges.len() << self.block_bits) - self.num_edges as usize;
        if nodes <= free_nodes && nodes * self.shape.max_edges <= free_edges {
            return true;
        }
        let node_blocks = nodes.saturating_sub(free_nodes).div_ceil(NODE_BLOCK);
        let edge_blocks = (nodes * self.shape.max_edges).saturating_sub(free_edges).div_ceil(block);
        let grown = node_blocks * NODE_BLOCK * (size_of::<Node>() + 2 * Columns::bytes_per_node(self.shape))
            + edge_blocks * self.edge_block_bytes();
        let indices_left = (self.num_nodes as usize + nodes) < Link::INDEX as usize
            && ((self.edges.len() + edge_blocks) << self.block_bits) <= u32::MAX as usize;
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
            self.nodes.push(vec![EMPTY_NODE; NODE_BLOCK].into_boxed_slice());
        }
        self.num_nodes += 1;
        *self.node_mut(index) = Node { to_play, forced_depth_left, ..EMPTY_NODE };
        self.columns.fit(self.shape, self.num_nodes());
        index
    }

    /// Gives `node` its edges, one per action, all untried.
    pub fn add_edges(&mut self, node: NodeIndex, actions: &[u16]) {
        debug_assert!(actions.len() <= self.shape.max_edges);
        let block_len = 1usize << self.block_bits;
        let count = actions.len();
        if (self.num_edges as usize & (block_len - 1)) + count > block_len {
            // The run must not straddle two blocks: leave the tail of this one unused.
            self.num_edges = ((self.num_edges >> self.block_bits) + 1) << self.block_bits;
        }
        while (self.edges.len() << self.block_bits) < self.num_edges as usize + count {
            self.edges.push(EdgeBlock {
                visits: vec![0; block_len + LANES].into_boxed_slice(),
                sums: vec![0.0; block_len + LANES].into_boxed_slice(),
                priors: vec![0.0; block_len + LANES].into_boxed_slice(),
                links: vec![Link::NONE; block_len].into_boxed_slice(),
                actions: vec![0; block_len].into_boxed_slice(),
                in_flight: vec![0; if self.shape.count_in_flight { block_len } else { 0 }].into_boxed_slice(),
            });
        }
        let first = self.num_edges;
        self.num_edges += count as u32;
        self.stored_edges += count as u32;
        let header = self.node_mut(node);
        header.first_edge = first;
        header.num_edges = count as u16;
        if count == 0 {
            return;
        }
        let (block, start) = self.place_mut(first);
        let run = start..start + count;
        block.visits[run.clone()].fill(0);
        block.sums[run.clone()].fill(0.0);
        block.priors[run.clone()].fill(0.0);
        block.links[run.clone()].fill(Link::NONE);
        if !block.in_flight.is_empty() {
            block.in_flight[run.clone()].fill(0);
        }
        block.actions[run].copy_from_slice(actions);
    }

    #[inline]
    fn place(&self, edge: EdgeIndex) -> (&EdgeBlock, usize) {
        (&self.edges[(edge >> self.block_bits) as usize], edge as usize & ((1 << self.block_bits) - 1))
    }

    #[inline]
    fn place_mut(&mut self, edge: EdgeIndex) -> (&mut EdgeBlock, usize) {
        let mask = (1usize << self.block_bits) - 1;
        (&mut self.edges[(edge >> self.block_bits) as usize], edge as usize & mask)
    }

    /// The edges of a node.
    #[inline]
    #[must_use]
    pub fn edges(&self, node: &Node) -> Edges<'_> {
        if node.num_edges == 0 {
            return Edges { visits: &[], sums: &[], priors: &[], links: &[], actions: &[], in_flight: &[] };
        }
        let (block, start) = self.place(node.first_edge);
        let run = start..start + node.num_edges as usize;
        Edges {
            visits: &block.visits[run.clone()],
            sums: &block.sums[run.clone()],
            priors: &block.priors[run.clone()],
            links: &block.links[run.clone()],
            actions: &block.actions[run.clone()],
            in_flight: if block.in_flight.is_empty() { &[] } else { &block.in_flight[run] },
        }
    }

    /// N, W and P of a node's edges, in whole groups of `LANES`: entries beyond `num_edges` mean nothing.
    #[inline]
    #[must_use]
    pub fn lanes(&self, node: &Node) -> Lanes<'_> {
        let (block, start) = self.place(node.first_edge);
        let run = start..start + (node.num_edges as usize).next_multiple_of(LANES);
        Lanes { visits: &block.visits[run.clone()], sums: &block.sums[run.clone()], priors: &block.priors[run] }
    }

    /// N, W and link of an edge.
    #[inline]
    #[must_use]
    pub fn edge(&self, edge: EdgeIndex) -> (u32, f64, Link) {
        let (block, at) = self.place(edge);
        (block.visits[at], block.sums[at], block.links[at])
    }

    /// The move of an edge.
    #[inline]
    #[must_use]
    pub fn action(&self, edge: EdgeIndex) -> u16 {
        let (block, at) = self.place(edge);
        block.actions[at]
    }

    /// Puts back N, W and link of an edge.
    pub fn set_edge(&mut self, edge: EdgeIndex, visits: u32, sum: f64, link: Link) {
        let (block, at) = self.place_mut(edge);
        block.visits[at] = visits;
        block.sums[at] = sum;
        block.links[at] = link;
    }

    /// One more visit, worth `value` to the player who chose the edge.
    #[inline]
    pub fn visit(&mut self, edge: EdgeIndex, value: f64) {
        let (block, at) = self.place_mut(edge);
        block.visits[at] += 1;
        block.sums[at] += value;
    }

    /// Hangs `child` under `edge`.
    #[inline]
    pub fn set_child(&mut self, edge: EdgeIndex, child: NodeIndex) {
        let (block, at) = self.place_mut(edge);
        block.links[at] = block.links[at].with_child(child);
    }

    /// Notes what is proven of `edge`, for its chooser.
    pub fn set_proven(&mut self, edge: EdgeIndex, value: i8) {
        let (block, at) = self.place_mut(edge);
        block.links[at] = block.links[at].with_proven(value);
    }

    /// The priors of a node's edges, to be set.
    pub fn priors_mut(&mut self, node: NodeIndex) -> &mut [f32] {
        let header = *self.node(node);
        if header.num_edges == 0 {
            return &mut [];
        }
        let (block, start) = self.place_mut(header.first_edge);
        &mut block.priors[start..start + header.num_edges as usize]
    }

    /// Leaves in flight through an edge.
    #[inline]
    #[must_use]
    pub fn in_flight(&self, edge: EdgeIndex) -> u16 {
        let (block, at) = self.place(edge);
        block.in_flight.get(at).copied().unwrap_or(0)
    }

    /// Adds to the leaves in flight through an edge.
    #[inline]
    pub fn fly(&mut self, edge: EdgeIndex, change: i16) {
        let (block, at) = self.place_mut(edge);
        if let Some(count) = block.in_flight.get_mut(at) {
            *count = count.wrapping_add_signed(change);
        }
    }

    /// Swaps two untried edges (their moves and priors; they have nothing else).
    #[inline]
    pub fn swap_untried(&mut self, a: EdgeIndex, b: EdgeIndex) {
        if a != b {
            let (block, at) = self.place_mut(a);
            let other = at + b as usize - a as usize;
            block.actions.swap(at, other);
            block.priors.swap(at, other);
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
            num_edges: self.num_edges,
            stored_edges: self.stored_edges,
            root_visits: self.root_visits,
            positions: self.positions,
        }
    }

    /// Cuts the tree back to `mark`.
    pub fn cut_back(&mut self, mark: Mark) {
        self.num_nodes = mark.num_nodes;
        self.num_edges = mark.num_edges;
        self.stored_edges = mark.stored_edges;
        self.root_visits = mark.root_visits;
        self.positions = mark.positions;
        self.columns.fit(self.shape, self.num_nodes());
    }
}
