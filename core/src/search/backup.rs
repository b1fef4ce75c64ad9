//! The way back up: every edge of the path gets one visit and the value **of the player who chose it**, then what is proven
//! is handed up. Signs follow whose turn it is, never depth, so double moves, passes and many players need no special case.

use crate::tree::{Edge, NodeIndex, Tree, ROOT, UNPROVEN};

/// One choice of a descent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it was made.
    pub node: NodeIndex,
    /// What was chosen.
    pub edge: Edge,
    /// By whom.
    pub chooser: u8,
}

/// Backs up a result of a two-player zero-sum game without rewards, given for player 0.
#[inline]
pub fn zero_sum(tree: &mut Tree, path: &[Step], value: f64) {
    tree.root_visits += 1;
    for step in path {
        tree.visit(step.edge, if step.chooser == 0 { value } else { -value });
    }
}

/// Backs up `values`, one per player, adding the rewards met on the way: `g = r + g` (UCT has discount 1).
/// `values` is changed.
pub fn per_player(tree: &mut Tree, path: &[Step], values: &mut [f64]) {
    tree.root_visits += 1;
    for step in path.iter().rev() {
        if let Some(child) = tree.edge(step.edge).2.child() {
            for (value, reward) in values.iter_mut().zip(tree.rewards(child)) {
                *value += reward;
            }
        }
        tree.visit(step.edge, values[step.chooser as usize]);
    }
}

/// Backs up the value of a history_table model's leaf, given for the player to move there: `g = r + discount * g`, turned where the
/// player changes (Schrittwieser et al. 2020, appendix B). The path itself says what lies below each of its edges.
pub fn discounted(tree: &mut Tree, path: &[Step], leaf: NodeIndex, value: f64, keep_bounds: bool) {
    tree.root_visits += 1;
    let (mut gain, mut below, mut to_play) = (value, leaf, tree.node(leaf).to_play);
    let mut bounds = tree.bounds;
    for step in path.iter().rev() {
        let own = if to_play == step.chooser { gain } else { -gain };
        let (reward, discount) = tree.reward_discount(below);
        gain = reward + discount * own;
        let (visits, sum) = tree.visit(step.edge, gain);
        if keep_bounds {
            let mean = sum / f64::from(visits);
            bounds = (bounds.0.min(mean), bounds.1.max(mean));
        }
        (below, to_play) = (step.node, step.chooser);
    }
    tree.bounds = bounds;
}

/// Hands a proven result up the path: a win if any reply loses, a loss if all win; the shortest win, the longest loss.
/// Sums of ancestors are not rewritten. `changed` hears of each node before it changes.
pub fn hand_up(tree: &mut Tree, path: &[Step], mut changed: impl FnMut(&Tree, Step)) {
    for step in path.iter().rev() {
        let Some(child) = tree.edge(step.edge).2.child() else { return };
        let child = *tree.node(child);
        if child.proven == UNPROVEN {
            return;
        }
        changed(tree, *step);
        let value = if child.to_play == step.chooser { child.proven } else { -child.proven };
        tree.set_proven(step.edge, value);
        tree.node_mut(step.node).has_proven_edge = true;
        if tree.node(step.node).proven != UNPROVEN {
            return;
        }
        let Some((value, distance)) = decide(tree, step.node) else { return };
        let node = tree.node_mut(step.node);
        node.proven = value;
        node.distance = distance;
    }
}

/// What the edges of `node` prove of it, for the player to move there: the value and the plies to the end.
pub(crate) fn decide(tree: &Tree, node: NodeIndex) -> Option<(i8, u16)> {
    let header = tree.node(node);
    let edges = tree.edges(header);
    let best = edges.links.iter().filter_map(|link| link.proven()).max()?;
    if best < 1 && edges.links.iter().any(|link| link.proven().is_none()) {
        return None;
    }
    let distances =
        edges.links.iter().filter(|link| link.proven() == Some(best)).filter_map(|link| link.child().map(|c| tree.node(c).distance));
    let distance = if best == 1 { distances.min() } else { distances.max() };
    Some((best, distance.unwrap_or(0).saturating_add(1)))
}

/// Whether the root is decided.
#[inline]
#[must_use]
pub fn root_is_proven(tree: &Tree) -> bool {
    tree.node(ROOT).proven != UNPROVEN
}
