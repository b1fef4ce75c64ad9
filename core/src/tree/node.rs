//! The node header, and the link of an edge.

use bytemuck::{Pod, Zeroable};

use super::NodeIndex;

/// `Node::proven` without a proven result.
pub const UNPROVEN: i8 = 2;

/// `Node::to_play` of a chance node.
pub(crate) const CHANCE: u8 = u8::MAX;

/// Child index (26 bits), tag (4 bits) and proven result for the chooser (2 bits) of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Link(u32);

impl Link {
    /// Mask of the child index; all bits set: no child.
    pub(super) const INDEX: u32 = (1 << Self::INDEX_BITS) - 1;
    const INDEX_BITS: u32 = 26;
    /// No child, tag 0, no proven result.
    pub const NONE: Self = Self(Self::INDEX);

    #[inline]
    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the child node.
    #[inline]
    #[must_use]
    pub fn child(self) -> Option<NodeIndex> {
        let index = self.0 & Self::INDEX;
        (index != Self::INDEX).then_some(index)
    }

    /// Returns the proven result for the chooser: +1, 0 or -1.
    #[inline]
    #[must_use]
    pub fn proven(self) -> Option<i8> {
        match self.0 >> 30 {
            0 => None,
            tag => Some(2 - tag as i8),
        }
    }

    /// Returns whether the edge is a proven loss for the chooser.
    #[inline]
    #[must_use]
    pub fn is_loss(self) -> bool {
        self.0 >> 30 == 3
    }

    /// Returns the tag: 4 bits, opaque to the tree.
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

/// A visited position.
///
/// `packed(4)` keeps it at 28 bytes; with `raw_value` aligned to 8 bytes it would have 32.
#[derive(Clone, Copy, Debug, Zeroable)]
#[repr(C, packed(4))]
pub struct Node {
    /// The value of its evaluation (terminal: its exact value) for the player to move.
    pub raw_value: f64,
    /// First word of its edge run.
    pub first_edge: u32,
    /// Number of edges.
    pub num_edges: u16,
    /// Number of opened edges; they come first.
    pub opened: u16,
    /// Plies to the end of the game where a result is proven.
    pub distance: u16,
    /// The player to move, or `CHANCE`.
    pub to_play: u8,
    /// Whether the position is terminal.
    pub terminal: bool,
    /// The proven result for the player to move: -1, 0, +1 or `UNPROVEN`.
    pub proven: i8,
    /// Whether any edge has a proven result.
    pub has_proven_edge: bool,
    /// Number of edges that are opened in stored order before edges are scored.
    pub ordered_prefix: u8,
    /// Cached maximum of the priors of untried edges; negative when invalid.
    pub(super) max_untried_prior: f32,
}

const _: () = assert!(size_of::<Node>() == 28);

impl Node {
    /// Returns whether this is a chance node: its edges are outcomes, and it has no evaluation.
    #[inline]
    #[must_use]
    pub fn is_chance(&self) -> bool {
        self.to_play == CHANCE
    }

    /// Returns the player whose values the node has, and whose W its edges have: the player to move; player 0 at a chance node.
    #[inline]
    #[must_use]
    pub fn owner(&self) -> u8 {
        owner(self.to_play)
    }

    /// Returns whether the value is exact: terminal or proven. Such a node is not searched further.
    #[inline]
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.terminal || self.proven != UNPROVEN
    }

    /// Returns the exact value for the player to move; requires `is_exact`.
    #[inline]
    #[must_use]
    pub fn exact(&self) -> f64 {
        if self.terminal {
            self.raw_value
        } else {
            f64::from(self.proven)
        }
    }
}

/// Returns the player for whom values are stored where `to_play` is to move: player 0 where chance is.
#[inline]
#[must_use]
pub(crate) fn owner(to_play: u8) -> u8 {
    if to_play == CHANCE {
        0
    } else {
        to_play
    }
}

/// `Node::max_untried_prior` is invalid.
pub(super) const UNKNOWN: f32 = -1.0;

/// A node without edges, value or proven result.
pub(super) const EMPTY_NODE: Node = Node {
    raw_value: 0.0,
    first_edge: 0,
    num_edges: 0,
    opened: 0,
    distance: 0,
    to_play: 0,
    terminal: false,
    proven: UNPROVEN,
    has_proven_edge: false,
    max_untried_prior: UNKNOWN,
    ordered_prefix: 0,
};
