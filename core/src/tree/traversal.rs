//! Walks over a whole tree: the copy of a subtree as a tree of its own, and the depths of its nodes.

use super::{Node, NodeIndex, Tree, ROOT, UNKNOWN};

impl Tree {
    /// A new tree whose root is `node` of this one, with all below it, of the `legal` moves there alone if they are given;
    /// `kept[old] = new` index, `u32::MAX` where dropped.
    #[must_use]
    pub fn transplant(&self, node: NodeIndex, legal: Option<&[u16]>) -> (Self, Vec<NodeIndex>) {
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
            let Some(legal) = legal.filter(|_| old == node) else {
                new.copy_edges(self, &header, kept[old as usize]);
                let added = *new.node(kept[old as usize]);
                for (place, link) in old_edges.links.iter().enumerate().take(usize::from(header.opened)) {
                    if let Some(child) = link.child() {
                        kept[child as usize] = new.copy_node(self, child);
                        new.set_child(added.edge(place), kept[child as usize]);
                        queue.push(child);
                    }
                }
                new.positions += u32::from(header.opened);
                continue;
            };
            let wanted = |place: &usize| legal.contains(&old_edges.actions[*place]);
            let places: Vec<usize> = (0..old_edges.actions.len()).filter(wanted).collect();
            let actions: Vec<u16> = places.iter().map(|&place| old_edges.actions[place]).collect();
            new.add_edges(kept[old as usize], &actions);
            let added = *new.node(kept[old as usize]);
            for (offset, &place) in places.iter().enumerate() {
                let mut link = old_edges.links[place];
                if let Some(child) = link.child() {
                    let index = new.copy_node(self, child);
                    kept[child as usize] = index;
                    queue.push(child);
                    link = link.with_child(index);
                }
                new.set_edge(added.edge(offset), old_edges.visits[place], old_edges.sums[place], link);
                new.priors_mut(kept[old as usize])[offset] = old_edges.priors[place];
            }
            let opened = places.iter().filter(|&&place| place < header.opened as usize).count();
            let ordered_prefix = places.iter().filter(|&&place| place < usize::from(header.ordered_prefix)).count();
            let root = new.node_mut(kept[old as usize]);
            (root.opened, root.ordered_prefix) = (opened as u16, ordered_prefix as u8);
            new.positions += opened as u32;
        }
        (new, kept)
    }

    /// Gives `node` the edges of `header` in another tree; their children are still those there.
    fn copy_edges(&mut self, from: &Self, header: &Node, node: NodeIndex) {
        let first_edge = self.edges.add_copy(&from.edges, header);
        let added = self.node_mut(node);
        (added.first_edge, added.num_edges, added.opened) = (first_edge, header.num_edges, header.opened);
    }

    /// Gives the root these moves and priors; what is known of those it had already stays.
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

    /// Copies the header and columns of `old` in `from`, without edges.
    fn copy_node(&mut self, from: &Self, old: NodeIndex) -> NodeIndex {
        let header = *from.node(old);
        let index = self.add_node(header.to_play, header.forced_depth_left);
        *self.node_mut(index) = Node { first_edge: 0, num_edges: 0, opened: 0, max_untried_prior: UNKNOWN, ..header };
        if let Some(slot) = from.slot(old) {
            self.set_slot(index, slot);
        }
        if self.shape.rewards > 0 {
            self.set_rewards(index, from.rewards(old));
        }
        if self.shape.discounts {
            let (reward, discount) = from.reward_discount(old);
            self.set_reward_discount(index, reward, discount, from.pruned_prior_mass(old) as f32);
        }
        if self.shape.returns {
            self.set_returns(index, from.returns(old));
        }
        index
    }
}

/// The mean depth of the simulations that the tree holds, and the depth of the deepest position, in plies below the root.
///
/// A simulation visits one edge at each depth it reaches, so all visits over the visits of the root's edges are the mean.
/// Looks at every node once: a child always stands behind its parent in the arena.
#[must_use]
pub fn depths(tree: &Tree) -> (f64, u32) {
    // 0 is the root, and nodes that were cut off and still stand in the arena.
    let mut depth_of = vec![0_u16; tree.num_nodes()];
    let (mut visits, mut deepest) = (0_u64, 0);
    for index in tree.indices() {
        let depth = depth_of[index as usize];
        if depth == 0 && index != ROOT {
            continue;
        }
        let below = depth.saturating_add(1);
        let node = tree.node(index);
        let edges = tree.edges(node);
        let opened = usize::from(node.opened).min(edges.visits.len());
        for (&tried, link) in edges.visits[..opened].iter().zip(edges.links) {
            visits += u64::from(tried);
            deepest = deepest.max(below);
            if let Some(child) = link.child() {
                depth_of[child as usize] = below;
            }
        }
    }
    let simulations: u64 = tree.edges(tree.node(ROOT)).visits.iter().map(|&visits| u64::from(visits)).sum();
    let mean = if simulations == 0 { 0.0 } else { visits as f64 / simulations as f64 };
    (mean, u32::from(deepest))
}
