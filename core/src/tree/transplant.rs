//! Keeping a part of a tree: the subtree below a move becomes a tree of its own.

use super::{Node, NodeIndex, Tree, ROOT};

impl Tree {
    /// A new tree whose root is `node` of this one, with all below it; `kept[old] = new` index, `u32::MAX` where dropped.
    #[must_use]
    pub fn transplant(&self, node: NodeIndex) -> (Self, Vec<NodeIndex>) {
        let mut new = Self::new(self.shape);
        let mut kept = vec![u32::MAX; self.num_nodes()];
        new.copy_node(self, node);
        kept[node as usize] = ROOT;
        let mut queue = vec![node];
        let mut next = 0;
        while next < queue.len() {
            let old = queue[next];
            next += 1;
            let header = *self.node(old);
            let old_edges = self.edges(&header);
            new.add_edges(kept[old as usize], old_edges.actions);
            let added = *new.node(kept[old as usize]);
            for (offset, link) in old_edges.links.iter().enumerate() {
                let edge = added.edge(offset);
                let mut new_link = *link;
                if let Some(child) = link.child() {
                    let index = new.copy_node(self, child);
                    kept[child as usize] = index;
                    queue.push(child);
                    new_link = new_link.with_child(index);
                }
                new.set_edge(edge, old_edges.visits[offset], old_edges.sums[offset], new_link);
            }
            new.priors_mut(kept[old as usize]).copy_from_slice(old_edges.priors);
            let opened = header.opened;
            new.node_mut(kept[old as usize]).opened = opened;
            new.positions += u32::from(opened);
        }
        (new, kept)
    }

    /// Copies the header and columns of `old` in `from`, without edges.
    fn copy_node(&mut self, from: &Self, old: NodeIndex) -> NodeIndex {
        let header = *from.node(old);
        let index = self.add_node(header.to_play, header.forced_depth_left);
        *self.node_mut(index) = Node { first_edge: 0, num_edges: 0, opened: 0, ..header };
        if let Some(slot) = from.slot(old) {
            self.set_slot(index, slot);
        }
        if self.shape.rewards {
            self.set_rewards(index, from.rewards(old));
        }
        if self.shape.returns {
            self.set_returns(index, from.returns(old));
        }
        index
    }
}
