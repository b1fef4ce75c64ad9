//! Untried edges: the maximum of their priors, and opening one.

use super::{Edge, Node, NodeIndex, Tree, UNKNOWN};

impl Tree {
    /// Returns the maximum prior of a node's untried edges, 0 without any.
    #[inline(always)]
    #[must_use]
    pub fn max_untried_prior(&self, node: &Node) -> f32 {
        if node.max_untried_prior >= 0.0 {
            return node.max_untried_prior;
        }
        self.find_max_untried(node)
    }

    /// Stores `max_untried_prior` in the node until an edge is opened or priors change, if it has more than `FEW` edges.
    #[inline(always)]
    pub fn cache_max_untried_prior(&mut self, node: NodeIndex) {
        let header = self.node(node);
        if usize::from(header.num_edges) > FEW && header.max_untried_prior < 0.0 {
            let highest = self.find_max_untried(header);
            self.node_mut(node).max_untried_prior = highest;
        }
    }

    #[inline(never)]
    fn find_max_untried(&self, node: &Node) -> f32 {
        highest(&self.statistics(node).priors[node.opened as usize..])
    }

    /// Opens an untried edge of `node`: swaps it behind the opened ones and returns its new place.
    #[inline]
    pub fn open(&mut self, node: NodeIndex, edge: Edge) -> Edge {
        let header = self.node_mut(node);
        let first_untried = header.edge(header.opened as usize);
        header.opened += 1;
        header.max_untried_prior = UNKNOWN;
        self.positions += 1;
        self.swap_untried(first_untried, edge);
        first_untried
    }
}

/// Up to this number of edges, the maximum is computed anew each time.
const FEW: usize = 8;

/// The maximum of nonnegative priors, by SIMD lanes.
fn highest(priors: &[f32]) -> f32 {
    const LANES: usize = 16;
    let higher = |best: f32, &prior: &f32| if prior > best { prior } else { best };
    if priors.len() < LANES {
        return priors.iter().fold(0.0, higher);
    }
    let mut most = [0.0f32; LANES];
    let groups = priors.chunks_exact(LANES);
    let rest = groups.remainder();
    for group in groups {
        for lane in 0..LANES {
            most[lane] = if group[lane] > most[lane] { group[lane] } else { most[lane] };
        }
    }
    most.iter().chain(rest).fold(0.0, higher)
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, ROOT};
    use super::*;

    fn tree(priors: &[f32]) -> Tree {
        let shape = Shape { max_edges: priors.len(), players: 2, ..Shape::default() };
        let mut tree = Tree::new(shape);
        tree.add_node(0);
        tree.add_edges(ROOT, &(0..priors.len() as u16).collect::<Vec<_>>());
        tree.priors_mut(ROOT).copy_from_slice(priors);
        tree
    }

    fn highest_of(tree: &mut Tree) -> f32 {
        tree.cache_max_untried_prior(ROOT);
        tree.max_untried_prior(tree.node(ROOT))
    }

    #[test]
    fn max_untried_prior_ignores_opened_edges() {
        for size in [1usize, 3, 15, 16, 17, 40] {
            let priors: Vec<f32> = (0..size).map(|place| ((place * 7) % size + 1) as f32).collect();
            let mut tree = tree(&priors);
            let mut left: Vec<f32> = priors.clone();
            left.sort_by(f32::total_cmp);
            while let Some(highest) = left.pop() {
                assert_eq!(highest_of(&mut tree), highest, "of {size}");
                assert_eq!(highest_of(&mut tree), highest, "and it is cached");
                let header = *tree.node(ROOT);
                let place = tree.edges(&header).priors.iter().position(|&prior| prior == highest).expect("the prior exists");
                let edge = tree.open(ROOT, header.edge(place));
                assert_eq!(edge, header.edge(header.opened as usize), "opened edges come first");
            }
            assert_eq!(highest_of(&mut tree), 0.0, "no untried edge is left");
        }
    }

    #[test]
    fn max_untried_prior_is_recomputed_when_priors_change() {
        let mut tree = tree(&[0.1, 0.2, 0.7]);
        assert_eq!(highest_of(&mut tree), 0.7);
        tree.priors_mut(ROOT)[0] = 0.9;
        assert_eq!(highest_of(&mut tree), 0.9);
    }
}
