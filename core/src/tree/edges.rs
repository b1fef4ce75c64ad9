//! The edge arena. The edges of a node are one run, stored field by field without gaps, so that a node touches few cache lines.

use bytemuck::{cast_slice, cast_slice_mut};

use super::node::{Link, Node};
use super::Tree;
use crate::memory::block::{Block, Element};
use crate::memory::slab::Pool;

/// Minimum log2 of the 8-byte words of a block.
const BLOCK_BITS: u32 = 10;

impl Element for u64 {
    #[inline]
    fn pool(capacity: usize) -> Option<&'static Pool<Self>> {
        const fn sized(bits: u32) -> Pool<u64> {
            Pool::new(1 << bits)
        }
        // The largest are for nodes with thousands of edges.
        const SMALLEST: u32 = BLOCK_BITS;
        static POOLS: [Pool<u64>; 7] = [
            sized(SMALLEST),
            sized(SMALLEST + 1),
            sized(SMALLEST + 2),
            sized(SMALLEST + 3),
            sized(SMALLEST + 4),
            sized(SMALLEST + 5),
            sized(SMALLEST + 6),
        ];
        let bits = capacity.trailing_zeros();
        let place = bits.checked_sub(SMALLEST).filter(|_| capacity.is_power_of_two())?;
        POOLS.get(place as usize)
    }
}

/// Address of an edge: the first word of its run, the run's length, and its place (the index of an edge in its node, opened edges
/// first).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    first: u32,
    count: u16,
    place: u16,
}

impl Node {
    /// Returns the edge at `place`.
    #[inline]
    #[must_use]
    pub fn edge(&self, place: usize) -> Edge {
        Edge { first: self.first_edge, count: self.num_edges, place: place as u16 }
    }
}

/// The edges of one node. `in_flight` is empty unless the tree counts leaves in flight.
#[derive(Clone, Copy, Debug)]
pub struct Edges<'a> {
    /// W for the chooser.
    pub sums: &'a [f64],
    /// N.
    pub visits: &'a [u32],
    /// P.
    pub priors: &'a [f32],
    /// Links.
    pub links: &'a [Link],
    /// Actions.
    pub actions: &'a [u16],
    /// Leaves in flight.
    pub in_flight: &'a [u16],
}

impl<'a> Edges<'a> {
    /// Returns N, W and P.
    #[inline]
    #[must_use]
    pub fn statistics(&self) -> Statistics<'a> {
        Statistics { sums: self.sums, visits: self.visits, priors: self.priors }
    }
}

/// N, W and P of the edges of a node.
#[derive(Clone, Copy, Debug)]
pub struct Statistics<'a> {
    /// W.
    pub sums: &'a [f64],
    /// N.
    pub visits: &'a [u32],
    /// P.
    pub priors: &'a [f32],
}

/// An untried edge, as `Tree::order_edges` writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderedEdge {
    /// Action.
    pub action: u16,
    /// P.
    pub prior: f32,
    /// Tag (`Link::tag`).
    pub tag: u8,
}

/// The extent of the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    used: u32,
    stored: u32,
    longest_run: u32,
}

/// Runs of edges in blocks of words. A run of n edges at word w has, in elements of each type, W at w, N at 2w + 2n,
/// P at 2w + 3n, links at 2w + 4n, actions at 4w + 10n, leaves in flight at 4w + 11n.
///
/// A run longer than a block (a chance node may have more outcomes than a node has actions) is alone in a longer block; empty blocks
/// behind it keep the index of every later word.
#[derive(Clone, Debug)]
pub(super) struct EdgeArena {
    /// Unused parts are never touched.
    blocks: Vec<Block<u64>>,
    block_bits: u32,
    /// Words in use, unused ends of blocks included.
    used: u32,
    /// Edges in use.
    stored: u32,
    longest_run: usize,
    /// Upper bound of the words of a run, except for outcomes of chance.
    usual_run: usize,
    /// Whether a run is longer than a block.
    has_long_runs: bool,
    counts_in_flight: bool,
}

impl EdgeArena {
    pub(super) fn new(max_edges: usize, counts_in_flight: bool) -> Self {
        let longest_run = words(max_edges, counts_in_flight).max(1);
        let wanted = usize::BITS - (longest_run - 1).leading_zeros();
        Self {
            blocks: Vec::new(),
            // At least twice the longest run, to limit the unused ends of blocks.
            block_bits: (wanted + 1).max(BLOCK_BITS),
            used: 0,
            stored: 0,
            longest_run,
            usual_run: longest_run,
            has_long_runs: false,
            counts_in_flight,
        }
    }

    /// Returns the number of blocks and the words in use.
    pub(super) fn extent(&self) -> [usize; 2] {
        [self.blocks.len(), self.used as usize]
    }

    /// Adds blocks up to `blocks`, and counts `words` of them as used, unless more are.
    pub(super) fn grow_to(&mut self, blocks: usize, words: usize) {
        while self.blocks.len() < blocks {
            self.blocks.push(Block::new(1 << self.block_bits));
        }
        self.used = self.used.max(words.min(self.blocks.len() << self.block_bits).min(u32::MAX as usize) as u32);
    }

    pub(super) fn stored(&self) -> usize {
        self.stored as usize
    }

    pub(super) fn block_bytes(&self) -> usize {
        8 << self.block_bits
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.len() * self.block_bytes()
    }

    /// Returns an upper bound of the blocks that `runs` more runs need.
    #[inline]
    pub(super) fn new_blocks(&self, runs: usize) -> usize {
        let free = (self.blocks.len() << self.block_bits) - self.used as usize;
        if runs == 1 && free >= self.longest_run {
            return 0; // the common case, once per simulation
        }
        self.more_blocks(runs, free)
    }

    /// `new_blocks` beside `free` words.
    #[cold]
    fn more_blocks(&self, runs: usize, free: usize) -> usize {
        let per_block = (1usize << self.block_bits) / self.longest_run;
        if per_block == 0 {
            return runs * self.longest_run.div_ceil(1 << self.block_bits);
        }
        runs.saturating_sub(free / self.longest_run).div_ceil(per_block)
    }

    pub(super) fn has_indices(&self, new_blocks: usize) -> bool {
        ((self.blocks.len() + new_blocks) << self.block_bits) <= u32::MAX as usize
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { used: self.used, stored: self.stored, longest_run: self.longest_run as u32 }
    }

    pub(super) fn truncate(&mut self, mark: Mark) {
        self.used = mark.used;
        self.stored = mark.stored;
        self.longest_run = mark.longest_run as usize;
        if self.has_long_runs {
            // The place of a dropped long run holds a long block, or none.
            self.blocks.truncate(self.used.div_ceil(1 << self.block_bits) as usize);
            self.has_long_runs = self.blocks.iter().any(|block| block.is_empty());
        }
    }

    /// Reserves a run; returns its first word.
    fn reserve(&mut self, count: usize) -> u32 {
        let words = words(count, self.counts_in_flight);
        let block_words = 1usize << self.block_bits;
        if words > self.usual_run {
            self.longest_run = self.longest_run.max(words);
            if words > block_words {
                return self.reserve_long(count, words);
            }
        }
        if (self.used as usize & (block_words - 1)) + words > block_words {
            // A run must not straddle two blocks: the end of this one stays unused.
            self.used = ((self.used >> self.block_bits) + 1) << self.block_bits;
        }
        while (self.blocks.len() << self.block_bits) < self.used as usize + words {
            self.blocks.push(Block::new(block_words));
        }
        let first = self.used;
        self.used += words as u32;
        self.stored += count as u32;
        first
    }

    /// Reserves a run longer than a block; returns its first word. The rest of its blocks stays unused.
    #[cold]
    fn reserve_long(&mut self, count: usize, words: usize) -> u32 {
        let block_words = 1usize << self.block_bits;
        let first = (self.used as usize).div_ceil(block_words);
        let number = words.div_ceil(block_words);
        // Blocks beyond those in use may be there, but not contiguous ones.
        self.blocks.truncate(first);
        self.blocks.push(Block::new(number * block_words));
        self.blocks.extend((1..number).map(|_| Block::new(0)));
        self.has_long_runs = true;
        self.used = ((first + number) << self.block_bits) as u32;
        self.stored += count as u32;
        (first << self.block_bits) as u32
    }

    /// Adds a run of untried edges; returns its first word.
    pub(super) fn add(&mut self, actions: &[u16]) -> u32 {
        let count = actions.len();
        let first = self.reserve(count);
        if count > 0 {
            let words = words(count, self.counts_in_flight);
            let (block, at) = self.block_mut(first);
            // A block's initial content is arbitrary, and a rolled-back batch leaves its data.
            let run = &mut block[at..at + words];
            run.fill(0);
            cast_slice_mut::<u64, Link>(run)[4 * count..5 * count].fill(Link::NONE);
            cast_slice_mut::<u64, u16>(run)[10 * count..11 * count].copy_from_slice(actions);
        }
        first
    }

    /// Adds a copy of the edges of `node` in another arena, child indices included; returns its first word.
    pub(super) fn add_copy(&mut self, from: &Self, node: &Node) -> u32 {
        let count = node.num_edges as usize;
        let first = self.reserve(count);
        if count > 0 {
            let (other, at) = from.block(node.first_edge);
            let words = words(count, self.counts_in_flight);
            let run = &other[at..at + words];
            let (block, at) = self.block_mut(first);
            block[at..at + words].copy_from_slice(run);
        }
        first
    }

    /// Returns the block of a run and the run's first word in it.
    #[inline]
    fn block(&self, first: u32) -> (&[u64], usize) {
        (&self.blocks[(first >> self.block_bits) as usize], first as usize & ((1 << self.block_bits) - 1))
    }

    #[inline]
    fn block_mut(&mut self, first: u32) -> (&mut [u64], usize) {
        let at = first as usize & ((1 << self.block_bits) - 1);
        (&mut self.blocks[(first >> self.block_bits) as usize], at)
    }

    #[inline]
    pub(super) fn link_mut(&mut self, edge: Edge) -> &mut Link {
        let (block, at) = self.block_mut(edge.first);
        &mut cast_slice_mut::<u64, Link>(block)[2 * at + 4 * edge.count as usize + edge.place as usize]
    }

    pub(super) fn priors_mut(&mut self, node: &Node) -> &mut [f32] {
        let count = node.num_edges as usize;
        if count == 0 {
            return &mut [];
        }
        let (block, at) = self.block_mut(node.first_edge);
        &mut cast_slice_mut(block)[2 * at + 3 * count..2 * at + 4 * count]
    }

    /// Rewrites the edges of a node, all untried.
    pub(super) fn order_edges(&mut self, node: &Node, moves: &[OrderedEdge]) {
        let count = node.num_edges as usize;
        let (block, at) = self.block_mut(node.first_edge);
        for (place, one) in moves.iter().enumerate().take(count) {
            cast_slice_mut::<u64, f32>(block)[2 * at + 3 * count + place] = one.prior;
            cast_slice_mut::<u64, Link>(block)[2 * at + 4 * count + place] = Link::NONE.with_tag(one.tag);
            cast_slice_mut::<u64, u16>(block)[4 * at + 10 * count + place] = one.action;
        }
    }
}

impl Tree {
    /// Returns the edges of a node.
    #[inline]
    #[must_use]
    pub fn edges(&self, node: &Node) -> Edges<'_> {
        let count = node.num_edges as usize;
        if count == 0 {
            return Edges { sums: &[], visits: &[], priors: &[], links: &[], actions: &[], in_flight: &[] };
        }
        let (block, at) = self.edges.block(node.first_edge);
        let statistics = self.statistics(node);
        let quarters: &[u16] = cast_slice(block);
        Edges {
            sums: statistics.sums,
            visits: statistics.visits,
            priors: statistics.priors,
            links: &cast_slice(block)[2 * at + 4 * count..2 * at + 5 * count],
            actions: &quarters[4 * at + 10 * count..4 * at + 11 * count],
            in_flight: if self.edges.counts_in_flight { &quarters[4 * at + 11 * count..4 * at + 12 * count] } else { &[] },
        }
    }

    /// Returns N, W and P of a node's edges.
    #[inline]
    #[must_use]
    pub fn statistics(&self, node: &Node) -> Statistics<'_> {
        let count = node.num_edges as usize;
        let (block, at) = self.edges.block(node.first_edge);
        Statistics {
            sums: cast_slice(&block[at..at + count]),
            visits: &cast_slice(block)[2 * at + 2 * count..2 * at + 3 * count],
            priors: &cast_slice(block)[2 * at + 3 * count..2 * at + 4 * count],
        }
    }

    /// Returns N, W and link of an edge.
    #[inline]
    #[must_use]
    pub fn edge(&self, edge: Edge) -> (u32, f64, Link) {
        let (block, at) = self.edges.block(edge.first);
        let (count, place) = (edge.count as usize, edge.place as usize);
        let halves: &[u32] = cast_slice(block);
        (halves[2 * at + 2 * count + place], f64::from_bits(block[at + place]), Link::from_bits(halves[2 * at + 4 * count + place]))
    }

    /// Returns action, N and link of an edge.
    #[inline]
    #[must_use]
    pub(crate) fn followed(&self, edge: Edge) -> (u16, u32, Link) {
        let (block, at) = self.edges.block(edge.first);
        let (count, place) = (edge.count as usize, edge.place as usize);
        let (halves, quarters): (&[u32], &[u16]) = (cast_slice(block), cast_slice(block));
        let link = Link::from_bits(halves[2 * at + 4 * count + place]);
        (quarters[4 * at + 10 * count + place], halves[2 * at + 2 * count + place], link)
    }

    /// Returns the action of an edge.
    #[inline]
    #[must_use]
    pub fn action(&self, edge: Edge) -> u16 {
        let (block, at) = self.edges.block(edge.first);
        cast_slice::<u64, u16>(block)[4 * at + 10 * edge.count as usize + edge.place as usize]
    }

    /// Sets N, W and link of an edge.
    pub fn set_edge(&mut self, edge: Edge, visits: u32, sum: f64, link: Link) {
        let (block, at) = self.edges.block_mut(edge.first);
        block[at + edge.place as usize] = sum.to_bits();
        cast_slice_mut::<u64, u32>(block)[2 * at + 2 * edge.count as usize + edge.place as usize] = visits;
        *self.edges.link_mut(edge) = link;
    }

    /// Adds one visit with `value` for the player who chose the edge; returns the new N and W.
    #[inline]
    pub fn visit(&mut self, edge: Edge, value: f64) -> (u32, f64) {
        let (block, at) = self.edges.block_mut(edge.first);
        let (count, place) = (edge.count as usize, edge.place as usize);
        let bits = &mut block[at + place];
        let sum = f64::from_bits(*bits) + value;
        *bits = sum.to_bits();
        let visits = &mut cast_slice_mut::<u64, u32>(block)[2 * at + 2 * count + place];
        *visits += 1;
        (*visits, sum)
    }

    /// Returns the number of leaves in flight below an edge.
    #[inline]
    #[must_use]
    pub fn in_flight(&self, edge: Edge) -> u16 {
        if !self.edges.counts_in_flight {
            return 0;
        }
        let (block, at) = self.edges.block(edge.first);
        cast_slice::<u64, u16>(block)[4 * at + 11 * edge.count as usize + edge.place as usize]
    }

    /// Changes the number of leaves in flight below an edge.
    #[inline]
    pub fn add_in_flight(&mut self, edge: Edge, change: i16) {
        if self.edges.counts_in_flight {
            let (block, at) = self.edges.block_mut(edge.first);
            let count = &mut cast_slice_mut::<u64, u16>(block)[4 * at + 11 * edge.count as usize + edge.place as usize];
            *count = count.wrapping_add_signed(change);
        }
    }

    /// Swaps action, prior and tag of two untried edges of one node.
    #[inline]
    pub fn swap_untried(&mut self, a: Edge, b: Edge) {
        if a == b {
            return;
        }
        let (block, at) = self.edges.block_mut(a.first);
        let (count, first, second) = (a.count as usize, a.place as usize, b.place as usize);
        cast_slice_mut::<u64, u16>(block)[4 * at + 10 * count..4 * at + 11 * count].swap(first, second);
        cast_slice_mut::<u64, f32>(block)[2 * at + 3 * count..2 * at + 4 * count].swap(first, second);
        // Untried edges have no children, but may have tags.
        cast_slice_mut::<u64, Link>(block)[2 * at + 4 * count..2 * at + 5 * count].swap(first, second);
    }
}

/// Words of a run: 22 bytes per edge, 24 with leaves in flight.
#[inline]
fn words(count: usize, counts_in_flight: bool) -> usize {
    if counts_in_flight {
        3 * count
    } else {
        (11 * count).div_ceil(4)
    }
}
