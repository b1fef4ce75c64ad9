//! Expansion: creating nodes and their edges.

use crate::games::analysis::ProvenResult;
use crate::games::World;
use crate::search::backup::edge_discount;
use crate::search::chance::{self, owner_in};
use crate::search::config::WorldConfig;
use crate::solvers::forced_moves;
use crate::tree::{Edge, Node, NodeIndex, Tree, CHANCE};

/// Adds the root of a compiled world's tree, restricted to the legal moves in `among` if given.
pub(crate) fn root<W: World>(tree: &mut Tree, config: &WorldConfig<W>, state: &W::State, legal: &mut Vec<u16>, among: Option<&[u16]>) {
    let root = tree.add_node(W::to_play(state));
    if chance::is_chance::<W>(state) {
        chance::expand::<W>(tree, root, state, legal, &mut Vec::new());
        return;
    }
    legal_edges::<W>(tree, state, root, legal, among, config.forced_depth > 0);
}

/// Adds the node and edges of a leaf of a compiled world whose moves get priors. `only_forced_moves`: restrict them to forced moves.
pub(crate) fn leaf<W: World>(tree: &mut Tree, state: &W::State, edge: Edge, legal: &mut Vec<u16>, only_forced_moves: bool) -> NodeIndex {
    let node = tree.add_node(W::to_play(state));
    tree.set_child(edge, node);
    set_reward::<W>(tree, node, state);
    legal_edges::<W>(tree, state, node, legal, None, only_forced_moves);
    node
}

/// Adds a chance node of a compiled world, with its edges.
pub(crate) fn chance_node<W: World>(
    tree: &mut Tree,
    state: &W::State,
    edge: Edge,
    legal: &mut Vec<u16>,
    outcomes: &mut Vec<(u16, f64)>,
) -> NodeIndex {
    let node = tree.add_node(CHANCE);
    tree.set_child(edge, node);
    set_reward::<W>(tree, node, state);
    chance::expand::<W>(tree, node, state, legal, outcomes);
    node
}

/// Stores the reward of the move to the new node `node` of a compiled world, if its game has rewards.
#[inline]
pub(crate) fn set_reward<W: World>(tree: &mut Tree, node: NodeIndex, state: &W::State) {
    if W::HAS_REWARDS {
        tree.set_rewards(node, &per_player(W::reward(state))[..W::NUM_PLAYERS.min(2)]);
    }
}

/// Returns the numbers of both players of a compiled world, of which a game of one player has the first.
#[inline(always)]
pub(crate) const fn per_player(first: f64) -> [f64; 2] {
    [first, -first]
}

/// Sets uniform priors.
pub(crate) fn uniform_priors(tree: &mut Tree, node: NodeIndex) {
    let priors = tree.priors_mut(node);
    let uniform = (1.0 / priors.len() as f64) as f32;
    priors.fill(uniform);
}

/// Lazy expansion: creates the node of a leaf at its second visit, because most leaves of a wide game are visited once. The raw value
/// is that of the first visit, for the player to move.
pub(crate) fn second_visit<W: World>(
    tree: &mut Tree,
    state: &W::State,
    edge: Edge,
    parent: &Node,
    legal: &mut Vec<u16>,
    only_forced_moves: bool,
) -> NodeIndex {
    let to_play = W::to_play(state);
    let (visits, sum, _) = tree.edge(edge);
    let node = tree.add_node(to_play);
    let mean = sum / f64::from(visits.max(1)) / edge_discount(parent, tree.shape().discount);
    tree.node_mut(node).raw_value = if to_play == owner_in::<W>(parent.to_play) { mean } else { -mean };
    tree.set_child(edge, node);
    legal_edges::<W>(tree, state, node, legal, None, only_forced_moves);
    node
}

/// Adds a node with a forced result below `edge`. It has no edges: nothing below it is searched.
pub(crate) fn prove_leaf(tree: &mut Tree, edge: Edge, to_play: u8, result: ProvenResult) -> NodeIndex {
    let index = tree.add_node(to_play);
    tree.set_child(edge, index);
    let node = tree.node_mut(index);
    (node.proven, node.distance) = (result.value, result.plies);
    index
}

fn legal_edges<W: World>(
    tree: &mut Tree,
    state: &W::State,
    node: NodeIndex,
    legal: &mut Vec<u16>,
    among: Option<&[u16]>,
    only_forced_moves: bool,
) {
    W::legal_actions(state, legal);
    if let Some(among) = among {
        legal.retain(|action| among.contains(action));
    }
    if only_forced_moves {
        forced_moves::keep_forced::<W>(state, legal);
    }
    tree.add_edges(node, legal);
}

/// Adds a terminal node below `edge`, with the returns per player.
pub(crate) fn terminal<W: World>(tree: &mut Tree, config: &WorldConfig<W>, edge: Edge, to_play: u8, returns: &[f64]) -> NodeIndex {
    let index = tree.add_node(to_play);
    tree.set_child(edge, index);
    let value = returns[to_play as usize];
    let node = tree.node_mut(index);
    node.terminal = true;
    node.raw_value = value;
    if config.solves() && (value == 1.0 || value == 0.0 || value == -1.0) {
        node.proven = value as i8;
    }
    if tree.shape().player_values {
        tree.set_returns(index, returns);
    }
    index
}
