//! What a batch has changed in a tree before its evaluations arrive, so that a dropped batch can be taken back whole.

use crate::search::backup::Step;
use crate::tree::{Edge, Link, Mark, Node, NodeIndex, Tree};

#[derive(Clone, Copy, Debug)]
enum Change {
    Edge { edge: Edge, visits: u32, sum: f64, link: Link },
    Node { index: NodeIndex, node: Node },
    Swap { a: Edge, b: Edge },
}

/// The changes since a mark, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    mark: Option<Mark>,
    changes: Vec<Change>,
    simulations: u64,
}

impl Journal {
    /// Begins, unless already begun.
    pub fn begin(&mut self, tree: &Tree, simulations: u64) {
        if self.mark.is_none() {
            self.mark = Some(tree.mark());
            self.simulations = simulations;
        }
    }

    /// Forgets: what was changed stays.
    pub fn commit(&mut self) {
        self.mark = None;
        self.changes.clear();
    }

    /// Whether changes are being noted.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.mark.is_some()
    }

    /// Notes an edge before it changes.
    pub fn edge(&mut self, tree: &Tree, edge: Edge) {
        if self.is_open() {
            let (visits, sum, link) = tree.edge(edge);
            self.changes.push(Change::Edge { edge, visits, sum, link });
        }
    }

    /// Notes a node before it changes.
    #[inline]
    pub fn node(&mut self, tree: &Tree, index: NodeIndex) {
        if self.is_open() {
            self.changes.push(Change::Node { index, node: *tree.node(index) });
        }
    }

    /// Notes a swap of untried edges.
    #[inline]
    pub fn swap(&mut self, a: Edge, b: Edge) {
        if self.is_open() {
            self.changes.push(Change::Swap { a, b });
        }
    }

    /// Notes every edge of a path before a backup.
    pub fn path(&mut self, tree: &Tree, path: &[Step]) {
        for step in path {
            self.edge(tree, step.edge);
        }
    }

    /// Takes everything back; the number of simulations the tree had then.
    pub fn roll_back(&mut self, tree: &mut Tree) -> Option<u64> {
        let mark = self.mark.take()?;
        for change in self.changes.drain(..).rev() {
            match change {
                Change::Edge { edge, visits, sum, link } => tree.set_edge(edge, visits, sum, link),
                Change::Node { index, node } => *tree.node_mut(index) = node,
                Change::Swap { a, b } => tree.swap_untried(a, b),
            }
        }
        tree.truncate(mark);
        Some(self.simulations)
    }
}
