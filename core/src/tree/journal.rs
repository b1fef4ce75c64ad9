//! Undo log of a batch: the changes to a tree between `gather` and `apply`, so that a batch can be rolled back.

use crate::tree::{Edge, Link, Mark, Node, NodeIndex, Tree};

#[derive(Clone, Copy, Debug)]
enum Change {
    Edge { edge: Edge, visits: u32, sum: f64, link: Link },
    Node { index: NodeIndex, node: Node },
    Swap { a: Edge, b: Edge },
}

/// Changes since a mark, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    mark: Option<Mark>,
    changes: Vec<Change>,
    simulations: u64,
    bounds: (f64, f64),
}

impl Journal {
    /// Opens the journal unless it is open, with the number of simulations and the bounds of the values as they are.
    pub(crate) fn begin(&mut self, tree: &Tree, simulations: u64, bounds: (f64, f64)) {
        if self.mark.is_none() {
            self.mark = Some(tree.mark());
            (self.simulations, self.bounds) = (simulations, bounds);
        }
    }

    /// Closes the journal and keeps the changes.
    pub(crate) fn commit(&mut self) {
        self.mark = None;
        self.changes.clear();
    }

    /// Returns whether changes are recorded.
    #[inline]
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.mark.is_some()
    }

    /// Records an edge before it changes.
    #[inline]
    pub(crate) fn edge(&mut self, tree: &Tree, edge: Edge) {
        if self.is_open() {
            self.record_edge(tree, edge);
        }
    }

    fn record_edge(&mut self, tree: &Tree, edge: Edge) {
        let (visits, sum, link) = tree.edge(edge);
        self.changes.push(Change::Edge { edge, visits, sum, link });
    }

    /// Records a node before it changes.
    #[inline]
    pub(crate) fn node(&mut self, tree: &Tree, index: NodeIndex) {
        if self.is_open() {
            self.changes.push(Change::Node { index, node: *tree.node(index) });
        }
    }

    /// Records a swap of untried edges.
    #[inline]
    pub(crate) fn swap(&mut self, a: Edge, b: Edge) {
        if self.is_open() {
            self.changes.push(Change::Swap { a, b });
        }
    }

    /// Reverts all changes; returns the number of simulations and the bounds at the mark.
    pub(crate) fn roll_back(&mut self, tree: &mut Tree) -> Option<(u64, (f64, f64))> {
        let mark = self.mark.take()?;
        for change in self.changes.drain(..).rev() {
            match change {
                Change::Edge { edge, visits, sum, link } => tree.set_edge(edge, visits, sum, link),
                Change::Node { index, node } => *tree.node_mut(index) = node,
                Change::Swap { a, b } => tree.swap_untried(a, b),
            }
        }
        tree.truncate(mark);
        Some((self.simulations, self.bounds))
    }
}
