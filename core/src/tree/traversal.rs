//! Walks over a whole tree: the copy of a subtree as a tree of its own, and the depths of its nodes.

use super::{Node, NodeIndex, Tree, ROOT, UNKNOWN};

impl Tree {
    /// Copies the subtree of `node` to a new tree, restricted to the `legal` actions at the new root if given.
    /// Returns the tree and the new index of each old node, `u32::MAX` where dropped.
    #[must_use]
    pub fn copy_subtree(&self, node: NodeIndex, legal: Option<&[u16]>) -> (Self, Vec<NodeIndex>) {
        let mut new = Self::new(self.shape);
        let mut new_index = vec![u32::MAX; self.num_nodes()];
        new.copy_node(self, node);
        new_index[node as usize] = ROOT;
        let mut queue = vec![node];
        let mut next = 0;
        while next < queue.len() {
            let old = queue[next];
            next += 1;
            let header = *self.node(old);
            let old_edges = self.edges(&header);
            let Some(legal) = legal.filter(|_| old == node) else {
                new.copy_edges(self, &header, new_index[old as usize]);
                let added = *new.node(new_index[old as usize]);
                for (place, link) in old_edges.links.iter().enumerate().take(usize::from(header.opened)) {
                    if let Some(child) = link.child() {
                        new_index[child as usize] = new.copy_node(self, child);
                        new.set_child(added.edge(place), new_index[child as usize]);
                        queue.push(child);
                    }
                }
                new.positions += u32::from(header.opened);
                continue;
            };
            let wanted = |place: &usize| legal.contains(&old_edges.actions[*place]);
            let places: Vec<usize> = (0..old_edges.actions.len()).filter(wanted).collect();
            let actions: Vec<u16> = places.iter().map(|&place| old_edges.actions[place]).collect();
            new.add_edges(new_index[old as usize], &actions);
            let added = *new.node(new_index[old as usize]);
            for (offset, &place) in places.iter().enumerate() {
                let mut link = old_edges.links[place];
                if let Some(child) = link.child() {
                    let index = new.copy_node(self, child);
                    new_index[child as usize] = index;
                    queue.push(child);
                    link = link.with_child(index);
                }
                new.set_edge(added.edge(offset), old_edges.visits[place], old_edges.sums[place], link);
                new.priors_mut(new_index[old as usize])[offset] = old_edges.priors[place];
            }
            let opened = places.iter().filter(|&&place| place < header.opened as usize).count();
            let ordered_prefix = places.iter().filter(|&&place| place < usize::from(header.ordered_prefix)).count();
            let root = new.node_mut(new_index[old as usize]);
            (root.opened, root.ordered_prefix) = (opened as u16, ordered_prefix as u8);
            new.positions += opened as u32;
        }
        (new, new_index)
    }

    /// Copies the edges of `header` in another tree to `node`, child indices unchanged.
    fn copy_edges(&mut self, from: &Self, header: &Node, node: NodeIndex) {
        let first_edge = self.edges.add_copy(&from.edges, header);
        let added = self.node_mut(node);
        (added.first_edge, added.num_edges, added.opened) = (first_edge, header.num_edges, header.opened);
    }

    /// Replaces the root's edges and priors; opened edges keep their statistics.
    pub fn replace_root_edges(&mut self, actions: &[u16], priors: &[f32]) {
        let header = *self.node(ROOT);
        let old = self.edges(&header);
        let tried = |place: usize| (old.actions[place], old.visits[place], old.sums[place], old.links[place]);
        let opened: Vec<_> = (0..header.opened as usize).map(tried).collect();
        let untried = actions.iter().copied().filter(|action| opened.iter().all(|(tried, ..)| tried != action));
        let order: Vec<u16> = opened.iter().map(|(action, ..)| *action).chain(untried).collect();
        self.add_edges(ROOT, &order);
        let added = *self.node(ROOT);
        for (place, &(_, visits, sum, link)) in opened.iter().enumerate() {
            self.set_edge(added.edge(place), visits, sum, link);
        }
        for (prior, action) in self.priors_mut(ROOT).iter_mut().zip(&order) {
            *prior = actions.iter().position(|other| other == action).map_or(0.0, |place| priors[place]);
        }
    }

    /// Copies header and columns of node `old` in `from`, without edges.
    fn copy_node(&mut self, from: &Self, old: NodeIndex) -> NodeIndex {
        let header = *from.node(old);
        let index = self.add_node(header.to_play);
        *self.node_mut(index) = Node { first_edge: 0, num_edges: 0, opened: 0, max_untried_prior: UNKNOWN, ..header };
        if let Some(slot) = from.slot(old) {
            self.set_slot(index, slot);
        }
        if self.shape.reward_width > 0 {
            self.set_rewards(index, from.rewards(old));
        }
        if self.shape.model_columns {
            let (reward, discount) = from.reward_discount(old);
            self.set_reward_discount(index, reward, discount, from.pruned_prior_mass(old) as f32);
        }
        if self.shape.player_values {
            self.set_returns(index, from.returns(old));
        }
        index
    }
}

/// Returns the depth of each node below the root; 0 for unreachable nodes too. O(nodes).
#[must_use]
pub(crate) fn node_depths(tree: &Tree) -> Vec<u16> {
    // A child has a higher index than its parent.
    let mut depths = vec![0_u16; tree.num_nodes()];
    for index in tree.indices() {
        let depth = depths[index as usize];
        if depth > 0 || index == ROOT {
            for child in tree.edges(tree.node(index)).links.iter().filter_map(|link| link.child()) {
                depths[child as usize] = depth.saturating_add(1);
            }
        }
    }
    depths
}

/// Returns the mean depth of the simulations in the tree and the depth of the deepest position, in plies. O(nodes).
///
/// A simulation visits one edge per depth, so the mean is the visits of all edges over those of the root's edges.
#[must_use]
pub(crate) fn depths(tree: &Tree) -> (f64, u32) {
    let (mut visits, mut deepest) = (0_u64, 0);
    for (index, depth) in tree.indices().zip(node_depths(tree)) {
        if depth == 0 && index != ROOT {
            continue;
        }
        let node = tree.node(index);
        let edges = tree.edges(node);
        let opened = usize::from(node.opened).min(edges.visits.len());
        visits += edges.visits[..opened].iter().map(|&tried| u64::from(tried)).sum::<u64>();
        if opened > 0 {
            deepest = deepest.max(depth.saturating_add(1));
        }
    }
    let simulations: u64 = tree.edges(tree.node(ROOT)).visits.iter().map(|&visits| u64::from(visits)).sum();
    let mean = if simulations == 0 { 0.0 } else { visits as f64 / simulations as f64 };
    (mean, u32::from(deepest))
}
