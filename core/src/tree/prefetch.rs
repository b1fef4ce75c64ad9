//! Software prefetch of tree data: with many trees in turn, none of it is in the cache when its tree is next.

use super::edges::EdgeArena;
use super::{Edge, Node, NodeIndex, Tree};
use crate::runtime::prefetch;

/// Words per cache line.
const WORDS_OF_A_LINE: usize = 8;
/// Cache lines prefetched around the end of the arena: the run added last, which waits for its priors, and the next one.
const LINES_AT_THE_END: usize = 5;
const LINES_BEFORE_THE_END: usize = 2;

impl EdgeArena {
    pub(super) fn prefetch_blocks(&self) {
        prefetch::slice(&self.blocks);
    }

    /// Returns the address of a run.
    #[inline(always)]
    fn address(&self, first: u32) -> *const u64 {
        let block = &self.blocks[(first >> self.block_bits) as usize];
        block.as_ptr().wrapping_add(first as usize & ((1 << self.block_bits) - 1))
    }

    /// Prefetches the end of the last run and the beginning of the next.
    #[inline]
    fn prefetch_end(&self) {
        if let Some(block) = self.blocks.get((self.used() >> self.block_bits) as usize) {
            let end = block.as_ptr().wrapping_add(self.used() as usize & ((1 << self.block_bits) - 1));
            for line in 0..LINES_AT_THE_END {
                prefetch::address(end.wrapping_add(line * WORDS_OF_A_LINE).wrapping_sub(LINES_BEFORE_THE_END * WORDS_OF_A_LINE));
            }
        }
    }

    /// Prefetches W and N of an edge.
    #[inline]
    pub(super) fn prefetch_visit(&self, edge: Edge) {
        let (run, count, place) = (self.address(edge.first), edge.count as usize, edge.place as usize);
        prefetch::address(run.wrapping_add(place));
        prefetch::address(run.wrapping_add(count + place / 2));
    }

    /// Prefetches all fields of the opened edges of a node.
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
        // Behind W (one word an edge) lie N, P and links (half a word each), then actions (a quarter).
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
    /// Prefetches the block lists.
    #[inline]
    pub(crate) fn prefetch_blocks(&self) {
        prefetch::slice(&self.nodes);
        self.edges.prefetch_blocks();
    }

    /// Prefetches a node and W and N of one of its edges.
    #[inline]
    pub(crate) fn prefetch_choice(&self, node: NodeIndex, edge: Edge) {
        self.prefetch_node(node);
        self.edges.prefetch_visit(edge);
    }

    /// Prefetches the tree's header; with `columns`, that of the optional columns too.
    #[inline]
    pub(crate) fn prefetch_header(&self, columns: bool) {
        let bytes = if columns { size_of::<Self>() } else { std::mem::offset_of!(Self, shape) };
        prefetch::bytes(std::ptr::from_ref(self), bytes);
    }

    /// Prefetches a node that waits for its value, and the memory of the next node and its edges.
    #[inline]
    pub(crate) fn prefetch_growth(&self, node: NodeIndex) {
        let waiting = std::ptr::from_ref(self.node(node));
        prefetch::address(waiting);
        // The next node follows, unless the block ends.
        prefetch::address(waiting.wrapping_add(2).cast::<u8>().wrapping_sub(1));
        self.edges.prefetch_end();
    }

    /// Prefetches a node.
    #[inline]
    pub(crate) fn prefetch_node(&self, node: NodeIndex) {
        prefetch::value(self.node(node));
    }

    /// Prefetches the opened edges of a cached node.
    #[inline(always)]
    pub(crate) fn prefetch_tried(&self, node: NodeIndex) {
        self.edges.prefetch_tried(self.node(node));
    }
}
