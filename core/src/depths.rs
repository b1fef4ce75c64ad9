//! How deep a tree is, for those who watch a search.

use crate::tree::{Tree, ROOT};

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
