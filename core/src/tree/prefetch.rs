//! Asking memory for what a search will look at soon: of many trees in turn, nothing is in the cache when it is needed.

use super::edges::EdgeArena;
use super::{Edge, Node, NodeIndex, Tree};
use crate::runtime::prefetch;

/// Words that come from memory at once.
const WORDS_OF_A_LINE: usize = 8;
/// Of the run added last, which waits for its priors, and of the next one, so many lines are asked for: all, where moves are few.
const LINES_AT_THE_END: usize = 5;
const LINES_BEFORE_THE_END: usize = 2;

impl EdgeArena {
    pub(super) fn prefetch_blocks(&self) {
        prefetch::slice(&self.blocks);
    }

    /// Where a run begins.
    #[inline(always)]
    fn address(&self, first: u32) -> *const u64 {
        let block = &self.blocks[(first >> self.block_bits) as usize];
        block.as_ptr().wrapping_add(first as usize & ((1 << self.block_bits) - 1))
    }

    /// Asks for where the last run ends and the next will begin.
    #[inline]
    fn prefetch_end(&self) {
        if let Some(block) = self.blocks.get((self.used() >> self.block_bits) as usize) {
            let end = block.as_ptr().wrapping_add(self.used() as usize & ((1 << self.block_bits) - 1));
            for line in 0..LINES_AT_THE_END {
                prefetch::address(end.wrapping_add(line * WORDS_OF_A_LINE).wrapping_sub(LINES_BEFORE_THE_END * WORDS_OF_A_LINE));
            }
        }
    }

    /// Asks for W and N of an edge: what a visit changes.
    #[inline]
    pub(super) fn prefetch_visit(&self, edge: Edge) {
        let (run, count, place) = (self.address(edge.first), edge.count as usize, edge.place as usize);
        prefetch::address(run.wrapping_add(place));
        prefetch::address(run.wrapping_add(count + place / 2));
    }

    /// Asks for W, N, P, links and actions of the tried edges of a node: what a choice looks at.
    #[inline(always)]
    pub(super) fn prefetch_tried(&self, node: &Node) {
        if node.num_edges == 0 {
            return;
        }
        let (run, count, opened) = (self.address(node.first_edge), node.num_edges as usize, node.opened as usize);
        if opened <= WORDS_OF_A_LINE {
            for word in [0, count, count + count / 2, 2 * count, 2 * count + count / 2] {
                prefetch::address(run.wrapping_add(word));
            }
            return;
        }
        let halves = opened.div_ceil(2);
        // N, P and links, each a half of a word for every edge, follow W; then actions, a quarter.
        let quarters = (2 * count + count / 2, opened.div_ceil(4));
        for (first, length) in [(0, opened), (count, halves), (count + count / 2, halves), (2 * count, halves), quarters] {
            let mut word = first;
            while word <= first + length {
                prefetch::address(run.wrapping_add(word));
                word += WORDS_OF_A_LINE;
            }
        }
    }
}

impl Tree {
    /// Asks memory for the lists of blocks.
    #[inline]
    pub(crate) fn prefetch_blocks(&self) {
        prefetch::slice(&self.nodes);
        self.edges.prefetch_blocks();
    }

    /// Asks memory for what a visit of an edge changes, and for the node it is of.
    #[inline]
    pub(crate) fn prefetch_choice(&self, node: NodeIndex, edge: Edge) {
        self.prefetch_node(node);
        self.edges.prefetch_visit(edge);
    }

    /// Asks memory for the tree's own fields, those of some worlds only if they are `wanted`.
    #[inline]
    pub(crate) fn prefetch_header(&self, wanted: bool) {
        let bytes = if wanted { size_of::<Self>() } else { std::mem::offset_of!(Self, shape) };
        prefetch::bytes(std::ptr::from_ref(self), bytes);
    }

    /// Asks memory for a node that waits for its value, and for where the next node and its edges will be made.
    #[inline]
    pub(crate) fn prefetch_growth(&self, node: NodeIndex) {
        let waiting = std::ptr::from_ref(self.node(node));
        prefetch::address(waiting);
        // The next lies behind it, unless a block ends.
        prefetch::address(waiting.wrapping_add(2).cast::<u8>().wrapping_sub(1));
        self.edges.prefetch_end();
    }

    /// Asks memory for a node.
    #[inline]
    pub(crate) fn prefetch_node(&self, node: NodeIndex) {
        prefetch::value(self.node(node));
    }

    /// Asks memory for what a choice at a node, which is at hand, looks at.
    #[inline(always)]
    pub(crate) fn prefetch_tried(&self, node: NodeIndex) {
        self.edges.prefetch_tried(self.node(node));
    }
}
