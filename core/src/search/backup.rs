//! Backup: every edge of the path gets one visit and the value **for the player who chose it**; then proven results propagate.
//! Signs follow the chooser, not the depth, so double moves, passes and more than two players need no special case.

use crate::games::World;
use crate::search::config::WorldConfig;
use crate::search::path::Step;
use crate::search::tree_search::SearchState;
use crate::tree::{Backup, Edge, Link, Node, NodeIndex, Tree, ROOT, UNPROVEN};

/// The lowest and highest mean value of a tree; `NO_BOUNDS` without any.
pub(crate) type Bounds = (f64, f64);

/// The bounds of a tree without visits.
pub(crate) const NO_BOUNDS: Bounds = (f64::INFINITY, f64::NEG_INFINITY);

impl<W: World> SearchState<W> {
    /// Backs up the values of the leaf at the end of `path`, one per player, and widens the bounds if the rule uses them.
    #[inline(always)]
    pub(crate) fn back_up(&mut self, tree: &mut Tree, config: &WorldConfig<W>, path: &[Step], values: &[f64]) {
        if config.has_plain_backup {
            return zero_sum(tree, path, values[0]);
        }
        self.back_up_general(tree, config, path, values);
    }

    /// `back_up` with rewards, a discount, bounds or maxima; apart, so that other searches have no instruction of it.
    #[inline(never)]
    fn back_up_general(&mut self, tree: &mut Tree, config: &WorldConfig<W>, path: &[Step], values: &[f64]) {
        match config.backup {
            Backup::Mean => {
                let (mut few, mut many) = ([0.0; 2], Vec::new());
                let values = match few.get_mut(..values.len()) {
                    Some(few) => {
                        few.copy_from_slice(values);
                        few
                    }
                    None => {
                        many.extend_from_slice(values);
                        &mut many[..]
                    }
                };
                per_player(tree, path, values, config.discount);
            }
            Backup::Max => best(tree, path, values[0], config.discount),
        }
        if config.rule.uses_bounds() {
            for step in path.iter().filter(|step| !tree.node(step.node).is_chance()) {
                widen(&mut self.bounds, tree, step.edge);
            }
        }
    }
}

/// Backs up a value for player 0 in a two-player zero-sum game without rewards and discount.
#[inline]
fn zero_sum(tree: &mut Tree, path: &[Step], value: f64) {
    tree.root_visits += 1;
    for step in path {
        tree.visit(step.edge, if step.chooser == 0 { value } else { -value });
    }
}

/// Backs up `values`, one per player, with the rewards of the path: `g = r + discount * g`. Changes `values`.
fn per_player(tree: &mut Tree, path: &[Step], values: &mut [f64], discount: f64) {
    tree.root_visits += 1;
    for step in path.iter().rev() {
        before_move(tree, *step, values, discount);
        tree.visit(step.edge, values[step.chooser as usize]);
    }
}

/// Backs up the best edges' values in a game of one player (MaxUCT; Keller & Helmert 2013): an edge of the path is worth its reward
/// plus the best visited edge of the node that it leads to, the last one `value`; a chance node is worth the mean of its outcomes. W
/// is N times that, so that W / N is Q in every tree.
fn best(tree: &mut Tree, path: &[Step], mut value: f64, discount: f64) {
    tree.root_visits += 1;
    for step in path.iter().rev() {
        before_move(tree, *step, std::slice::from_mut(&mut value), discount);
        let (visits, _, link) = tree.edge(step.edge);
        tree.set_edge(step.edge, visits + 1, f64::from(visits + 1) * value, link);
        value = best_value(tree, tree.node(step.node)).unwrap_or(value);
    }
}

/// Returns the discount of the edges of a node: outcomes of chance are no moves, and are not discounted.
pub fn edge_discount(parent: &Node, discount: f64) -> f64 {
    if parent.is_chance() {
        1.0
    } else {
        discount
    }
}

/// Turns the values after a step into those before it: `g = r + discount * g`.
fn before_move(tree: &Tree, step: Step, values: &mut [f64], discount: f64) {
    let discount = edge_discount(tree.node(step.node), discount);
    let rewards = tree.edge(step.edge).2.child().map_or(&[][..], |child| tree.rewards(child));
    for (player, value) in values.iter_mut().enumerate() {
        *value = rewards.get(player).map_or(discount * *value, |reward| reward + discount * *value);
    }
}

/// Returns the highest mean value of the visited edges of a node, and the mean of all visits of a chance node; None without visits.
#[inline(never)]
pub(crate) fn best_value(tree: &Tree, node: &Node) -> Option<f64> {
    let edges = tree.edges(node);
    if node.is_chance() {
        let (sum, visits) =
            (edges.sums[..node.opened as usize].iter().fold(0.0, |sum, value| sum + value), edges.visits.iter().sum::<u32>());
        return (visits > 0).then(|| sum / f64::from(visits));
    }
    let means = edges.visits.iter().zip(edges.sums).filter(|&(&visits, _)| visits > 0).map(|(&visits, &sum)| sum / f64::from(visits));
    means.reduce(|best, mean| if mean > best { mean } else { best })
}

/// Widens `bounds` by the mean value of an edge, if it has visits.
fn widen(bounds: &mut Bounds, tree: &Tree, edge: Edge) {
    let (visits, sum, _) = tree.edge(edge);
    if visits > 0 {
        let mean = sum / f64::from(visits);
        *bounds = (bounds.0.min(mean), bounds.1.max(mean));
    }
}

/// Returns the bounds of the edges of a tree. Outcomes of chance, between which nothing is chosen, do not count.
pub(crate) fn bounds_of(tree: &Tree) -> Bounds {
    let mut bounds = NO_BOUNDS;
    for node in tree.indices().map(|index| tree.node(index)).filter(|node| !node.is_chance()) {
        (0..node.opened as usize).for_each(|place| widen(&mut bounds, tree, node.edge(place)));
    }
    bounds
}

/// Backs up the value of a learned model's leaf for the player to move there: `g = r + discount * g`, negated where the player
/// changes (Schrittwieser et al. 2020, appendix B). Widens `bounds` by the means of the path's edges, if given.
pub(crate) fn discounted(tree: &mut Tree, path: &[Step], leaf: NodeIndex, value: f64, mut bounds: Option<&mut Bounds>) {
    tree.root_visits += 1;
    let (mut value, mut below, mut to_play) = (value, leaf, tree.node(leaf).to_play);
    for step in path.iter().rev() {
        let own = if to_play == step.chooser { value } else { -value };
        let (reward, discount) = tree.reward_discount(below);
        value = reward + discount * own;
        let (visits, sum) = tree.visit(step.edge, value);
        if let Some(bounds) = &mut bounds {
            let mean = sum / f64::from(visits);
            **bounds = (bounds.0.min(mean), bounds.1.max(mean));
        }
        (below, to_play) = (step.node, step.chooser);
    }
}

/// Propagates a proven result up the path (MCTS-Solver, Winands et al. 2008): a win if any child is lost, a loss if all are won; the shortest win, the longest loss.
/// W of the ancestors stays. Calls `before_change` with each step before its node changes.
pub(crate) fn propagate_proof(tree: &mut Tree, path: &[Step], mut before_change: impl FnMut(&Tree, Step)) {
    for step in path.iter().rev() {
        let Some(child) = tree.edge(step.edge).2.child() else { return };
        let child = *tree.node(child);
        if child.proven == UNPROVEN {
            return;
        }
        before_change(tree, *step);
        let value = if child.owner() == step.chooser { child.proven } else { -child.proven };
        tree.set_proven(step.edge, value);
        tree.node_mut(step.node).has_proven_edge = true;
        if tree.node(step.node).proven != UNPROVEN {
            return;
        }
        let Some((value, distance)) = solved_value(tree, step.node) else { return };
        let node = tree.node_mut(step.node);
        node.proven = value;
        node.distance = distance;
    }
}

/// Returns the result that the edges of `node` prove for the player to move, and its plies to the end. A chance node is proven if all
/// outcomes have the same result.
pub(crate) fn solved_value(tree: &Tree, node: NodeIndex) -> Option<(i8, u16)> {
    let header = tree.node(node);
    let edges = tree.edges(header);
    let best = edges.links.iter().filter_map(|link| link.proven()).max()?;
    if header.is_chance() {
        let distance = |link: &Link| link.child().map_or(0, |child| tree.node(child).distance);
        let is_common = edges.links.iter().all(|link| link.proven() == Some(best));
        let longest = edges.links.iter().map(distance).max().unwrap_or(0);
        return is_common.then_some((best, longest.saturating_add(1)));
    }
    if best < 1 && edges.links.iter().any(|link| link.proven().is_none()) {
        return None;
    }
    let distances =
        edges.links.iter().filter(|link| link.proven() == Some(best)).filter_map(|link| link.child().map(|c| tree.node(c).distance));
    let distance = if best == 1 { distances.min() } else { distances.max() };
    Some((best, distance.unwrap_or(0).saturating_add(1)))
}

/// Returns whether the root is proven.
#[inline]
#[must_use]
pub(crate) fn root_is_proven(tree: &Tree) -> bool {
    tree.node(ROOT).proven != UNPROVEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::root_answer;
    use crate::tree::Shape;

    fn shape() -> Shape {
        Shape { max_edges: 4, players: 2, ..Shape::default() }
    }

    /// Adds an edge with a child to `parent` for each distance; each child is proven `value` for its player to move.
    fn add_children(tree: &mut Tree, parent: NodeIndex, value: i8, distances: &[u16]) -> Vec<Step> {
        let actions: Vec<u16> = (0..distances.len() as u16).collect();
        tree.add_edges(parent, &actions);
        tree.node_mut(parent).opened = actions.len() as u16;
        let chooser = tree.node(parent).to_play;
        let mut steps = Vec::new();
        for (place, &distance) in distances.iter().enumerate() {
            let child = tree.add_node(1 - chooser);
            let edge = tree.node(parent).edge(place);
            tree.set_child(edge, child);
            tree.visit(edge, f64::from(-value));
            let node = tree.node_mut(child);
            node.proven = value;
            node.distance = distance;
            steps.push(Step { node: parent, edge, chooser });
        }
        steps
    }

    fn prove(tree: &mut Tree, steps: &[Step]) {
        // All edges but the last are proven already, as with leaves in flight; the last one decides the node.
        let (last, others) = steps.split_last().expect("an edge");
        for step in others {
            let child = tree.edge(step.edge).2.child().expect("a child");
            let value = -tree.node(child).proven;
            tree.set_proven(step.edge, value);
        }
        propagate_proof(tree, &[*last], |_, _| {});
    }

    #[test]
    fn shortest_win_is_proven_and_chosen() {
        for distances in [[4, 2, 6], [2, 4, 6], [6, 4, 2]] {
            let mut tree = Tree::new(shape());
            tree.add_node(0);
            let steps = add_children(&mut tree, ROOT, -1, &distances);
            prove(&mut tree, &steps);
            assert_eq!((tree.node(ROOT).proven, tree.node(ROOT).distance), (1, 3));
            let shortest = distances.iter().position(|&distance| distance == 2).expect("a shortest one");
            for key in 0..20 {
                assert_eq!(root_answer::choose(&tree, 1.0, key, 3, &[], None), shortest);
            }
        }
    }

    #[test]
    fn longest_loss_is_proven_and_chosen() {
        let mut tree = Tree::new(shape());
        tree.add_node(0);
        let steps = add_children(&mut tree, ROOT, 1, &[1, 5, 3]);
        prove(&mut tree, &steps);
        assert_eq!((tree.node(ROOT).proven, tree.node(ROOT).distance), (-1, 6));
        for key in 0..20 {
            assert_eq!(root_answer::choose(&tree, 1.0, key, 3, &[], None), 1);
        }
    }

    #[test]
    fn undecided_edge_leaves_the_node_unproven() {
        let mut tree = Tree::new(shape());
        tree.add_node(0);
        let steps = add_children(&mut tree, ROOT, 1, &[1, 5]);
        propagate_proof(&mut tree, &steps[..1], |_, _| {});
        assert_eq!(tree.node(ROOT).proven, UNPROVEN);
    }

    #[test]
    fn principal_variation_takes_the_shortest_win() {
        let mut tree = Tree::new(shape());
        tree.add_node(0);
        let steps = add_children(&mut tree, ROOT, 1, &[0]);
        let child = tree.edge(steps[0].edge).2.child().expect("a child");
        let below = add_children(&mut tree, child, -1, &[4, 2, 6]);
        tree.node_mut(child).proven = UNPROVEN;
        prove(&mut tree, &below);
        assert_eq!(tree.node(child).distance, 3);
        assert_eq!(root_answer::principal_variation(&tree, &[], 0, false), vec![0, 1]);
    }
}
