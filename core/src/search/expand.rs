//! How positions get their nodes and moves their edges.

use crate::games::analysis::Exact;
use crate::games::World;
use crate::search::config::SearchConfig;
use crate::solvers::forced_moves;
use crate::tree::{Edge, Node, NodeIndex, Tree};

/// Makes the root of a compiled world's tree, with those of its legal moves alone that are `among` some, if any are given.
pub fn root<W: World>(tree: &mut Tree, config: &SearchConfig, state: &W::State, legal: &mut Vec<u16>, among: Option<&[u16]>) {
    let root = tree.add_node(W::to_play(state), config.forced_depth);
    legal_edges::<W>(tree, state, root, legal, among);
}

/// Makes the node and edges of a new leaf of a compiled world, whose moves will get priors.
pub fn leaf<W: World>(tree: &mut Tree, state: &W::State, edge: Edge, parent: NodeIndex, legal: &mut Vec<u16>) -> NodeIndex {
    let node = tree.add_node(W::to_play(state), tree.node(parent).forced_depth_left.saturating_sub(1));
    tree.set_child(edge, node);
    legal_edges::<W>(tree, state, node, legal, None);
    node
}

/// Gives every move of a node the same prior.
pub fn even_priors(tree: &mut Tree, node: NodeIndex) {
    let priors = tree.priors_mut(node);
    let even = (1.0 / priors.len() as f64) as f32;
    priors.fill(even);
}

/// Makes the node of a leaf that is visited again (UCT keeps no node for a leaf visited once: on a wide game, most are).
/// Its raw value is what the one visit brought, turned to the player to move.
pub fn second_visit<W: World>(tree: &mut Tree, state: &W::State, edge: Edge, parent: &Node, legal: &mut Vec<u16>) -> NodeIndex {
    let to_play = W::to_play(state);
    let (visits, sum, _) = tree.edge(edge);
    let node = tree.add_node(to_play, parent.forced_depth_left.saturating_sub(1));
    let mean = sum / f64::from(visits.max(1));
    tree.node_mut(node).raw = if to_play == parent.to_play { mean } else { -mean };
    tree.set_child(edge, node);
    legal_edges::<W>(tree, state, node, legal, None);
    node
}

/// Hangs a position under `edge` whose player to move mates or is mated. It gets no moves: nothing below is searched.
pub fn mate(tree: &mut Tree, edge: Edge, to_play: u8, mate: Exact) -> NodeIndex {
    let index = tree.add_node(to_play, 0);
    tree.set_child(edge, index);
    let node = tree.node_mut(index);
    (node.proven, node.distance) = (mate.value, mate.plies);
    index
}

fn legal_edges<W: World>(tree: &mut Tree, state: &W::State, node: NodeIndex, legal: &mut Vec<u16>, among: Option<&[u16]>) {
    W::legal_actions(state, legal);
    if let Some(among) = among {
        legal.retain(|action| among.contains(action));
    }
    if tree.node(node).forced_depth_left > 0 {
        forced_moves::keep_forced::<W>(state, legal);
    }
    tree.add_edges(node, legal);
}

/// Hangs an end under `edge`. `returns` has one number per player.
pub fn end(tree: &mut Tree, config: &SearchConfig, edge: Edge, to_play: u8, returns: &[f64]) -> NodeIndex {
    let index = tree.add_node(to_play, 0);
    tree.set_child(edge, index);
    let value = returns[to_play as usize];
    let node = tree.node_mut(index);
    node.end = true;
    node.raw = value;
    if config.solves() && (value == 1.0 || value == 0.0 || value == -1.0) {
        node.proven = value as i8;
    }
    if tree.shape().returns {
        tree.set_returns(index, returns);
    }
    index
}
