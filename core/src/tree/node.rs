//! What stands on one node, and the link of an edge.

use bytemuck::{Pod, Zeroable};

use super::NodeIndex;

/// "No result is proven" in `Node::proven`.
pub const UNPROVEN: i8 = 2;

/// The child of an edge, the tag of its move, and what is proven of it for the player who chooses the edge: 26 + 4 + 2 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Link(u32);

impl Link {
    /// The bits of the child's index; all set means there is none.
    pub(super) const INDEX: u32 = (1 << Self::INDEX_BITS) - 1;
    const INDEX_BITS: u32 = 26;
    /// An edge without a child node, nothing proven.
    pub const NONE: Self = Self(Self::INDEX);

    #[inline]
    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The child node, if there is one.
    #[inline]
    #[must_use]
    pub fn child(self) -> Option<NodeIndex> {
        let index = self.0 & Self::INDEX;
        (index != Self::INDEX).then_some(index)
    }

    /// What is proven: +1, 0 or -1 for the chooser.
    #[inline]
    #[must_use]
    pub fn proven(self) -> Option<i8> {
        match self.0 >> 30 {
            0 => None,
            tag => Some(2 - tag as i8),
        }
    }

    /// Whether the edge is a proven loss for the chooser.
    #[inline]
    #[must_use]
    pub fn is_loss(self) -> bool {
        self.0 >> 30 == 3
    }

    /// The tag of the move, in searches that have them; 0 elsewhere.
    #[inline]
    #[must_use]
    pub fn tag(self) -> u8 {
        (self.0 >> Self::INDEX_BITS & 15) as u8
    }

    #[inline]
    #[must_use]
    pub(super) fn with_tag(self, tag: u8) -> Self {
        Self((self.0 & !(15 << Self::INDEX_BITS)) | (u32::from(tag & 15) << Self::INDEX_BITS))
    }

    #[inline]
    #[must_use]
    pub(super) fn with_child(self, child: NodeIndex) -> Self {
        Self((self.0 & !Self::INDEX) | child)
    }

    #[inline]
    #[must_use]
    pub(super) fn with_proven(self, value: i8) -> Self {
        Self((self.0 & !(3 << 30)) | (((2 - value) as u32) << 30))
    }
}

/// A position that has been looked at.
///
/// Its 28 bytes would be 32 if `raw` had to begin at a multiple of 8, and there are as many nodes as simulations.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C, packed(4))]
pub struct Node {
    /// The value it was given when it was evaluated (an end: its exact value), for the player to move here.
    pub raw: f64,
    /// Where its edges begin.
    pub first_edge: u32,
    /// How many edges it has.
    pub num_edges: u16,
    /// How many of them have been tried; they stand first.
    pub opened: u16,
    /// Plies to the end, where a result is proven.
    pub distance: u16,
    /// Who moves here.
    pub to_play: u8,
    /// Whether the game is over here.
    pub end: bool,
    /// The proven result for the player to move here: -1, 0, +1 or `UNPROVEN`.
    pub proven: i8,
    /// Whether a result is proven for any of its edges.
    pub has_proven_edge: bool,
    /// For how many more plies forced moves are looked for (seed 3).
    pub forced_depth_left: u8,
    /// So many edges are opened in their order before any score is asked (seed 4: moves by tag).
    pub ordered_prefix: u8,
    /// The highest prior of an edge never tried; below 0 where it has to be looked for again.
    pub(super) max_untried_prior: f32,
}

const _: () = assert!(size_of::<Node>() == 28);

impl Node {
    /// Whether the exact value is registered, so that nothing below is ever searched again.
    #[inline]
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.end || self.proven != UNPROVEN
    }

    /// The exact value for the player to move here, where `is_exact`.
    #[inline]
    #[must_use]
    pub fn exact(&self) -> f64 {
        if self.end {
            self.raw
        } else {
            f64::from(self.proven)
        }
    }
}

/// In `Node::max_untried_prior`: something has changed since it was looked for.
pub(super) const UNKNOWN: f32 = -1.0;

/// A node as it is before anything is registered.
pub(super) const EMPTY_NODE: Node = Node {
    raw: 0.0,
    first_edge: 0,
    num_edges: 0,
    opened: 0,
    distance: 0,
    to_play: 0,
    end: false,
    proven: UNPROVEN,
    has_proven_edge: false,
    forced_depth_left: 0,
    max_untried_prior: UNKNOWN,
    ordered_prefix: 0,
};
