//! The leaf-analysis hook in the search: calling it at leaves and at the root, and storing what it proves.

use crate::games::analysis::{LeafAnalysis, MoveHint, ProvenResult, RootProof};
use crate::games::{Action, World};
use crate::search::config::WorldConfig;
use crate::search::expand;
use crate::search::move_ordering::HistoryTable;
use crate::tree::{Tree, ROOT, UNPROVEN};

/// Searches a position `depth` plies below the root for a forced result. Without one, `hints` receives the hints of its legal
/// moves, in searches that order moves. Needs no tree, so that the leaves of a batch are analyzed in parallel.
pub(crate) fn analyze_position<W: World>(
    config: &WorldConfig<W>,
    history_table: &HistoryTable,
    state: &W::State,
    depth: usize,
    hints: &mut Vec<MoveHint>,
) -> Option<ProvenResult> {
    hints.clear();
    let analysis = config.analysis.as_deref()?;
    // The root has a deeper search of its own.
    if depth > 0 {
        if let Some(result) = analysis.forced_result(state) {
            return Some(result);
        }
    }
    if analysis.ordering().is_some() {
        analysis.move_hints(state, history_table.context(depth, W::to_play(state)), hints);
    }
    None
}

/// Drops the hints, which are in the order of the legal moves, of moves that a restricted root has no edges for.
pub(crate) fn restrict_hints<W: World>(tree: &Tree, state: &W::State, hints: &mut Vec<MoveHint>) {
    let actions = tree.edges(tree.node(ROOT)).actions;
    if hints.is_empty() || hints.len() == actions.len() {
        return;
    }
    let mut legal = Vec::new();
    W::legal_actions(state, &mut legal);
    let mut left = legal.iter();
    hints.retain(|_| left.next().is_some_and(|action| actions.contains(action)));
}

/// Searches the root for a forced result and stores the proof; returns its line.
pub(crate) fn analyze_root<W: World>(tree: &mut Tree, config: &WorldConfig<W>, state: &W::State) -> Option<Vec<Action>> {
    let analysis = config.analysis.as_deref()?;
    let moves = tree.node(ROOT).num_edges as usize;
    let has_room = |nodes| tree.has_room(nodes, config.max_tree_bytes, config.max_positions);
    if tree.node(ROOT).proven != UNPROVEN || !has_room(1) {
        return None;
    }
    match analysis.root_proof(state) {
        Some(RootProof::Win { line, plies }) => {
            prove_move::<W>(tree, config, state, *line.first()?, plies - 1, 1);
            let root = tree.node_mut(ROOT);
            (root.proven, root.distance) = (1, plies);
            Some(line)
        }
        Some(RootProof::Loss { line, moves: lost }) if has_room(moves) => {
            let longest = lost.iter().map(|&(_, plies)| plies).max().unwrap_or(0);
            // In stored order, so that opening swaps no edges.
            for action in tree.edges(tree.node(ROOT)).actions.to_vec() {
                let plies = lost.iter().find(|(other, _)| *other == action).map_or(longest, |&(_, plies)| plies);
                prove_move::<W>(tree, config, state, action, plies, -1);
            }
            let root = tree.node_mut(ROOT);
            (root.proven, root.distance) = (-1, longest + 1);
            Some(line)
        }
        _ => None,
    }
}

/// Stores the proven result of a root move: `value` for its chooser, `distance` plies after it.
fn prove_move<W: World>(tree: &mut Tree, config: &WorldConfig<W>, state: &W::State, action: u16, distance: u16, value: i8) {
    let root = *tree.node(ROOT);
    let Some(place) = tree.edges(&root).actions.iter().position(|&other| other == action) else { return };
    let mut edge = root.edge(place);
    if place >= root.opened as usize {
        edge = tree.open(ROOT, edge);
    }
    let child = tree.edge(edge).2.child().unwrap_or_else(|| {
        let mut next = state.clone();
        W::play(&mut next, action);
        match W::outcome(&next) {
            Some(result) => expand::terminal(tree, config, edge, W::to_play(&next), &[f64::from(result), -f64::from(result)]),
            None => expand::prove_leaf(tree, edge, W::to_play(&next), ProvenResult { value: -value, plies: distance }),
        }
    });
    let node = tree.node_mut(child);
    (node.proven, node.distance) = (-value, distance);
    // Its subtree was searched without this proof; if it becomes the root, its search starts anew.
    (node.num_edges, node.opened) = (0, 0);
    tree.set_proven(edge, value);
    if value == 1 {
        if let Some(ordering) = config.analysis.as_deref().and_then(LeafAnalysis::ordering) {
            tree.set_tag(edge, ordering.proof);
        }
    }
    tree.node_mut(ROOT).has_proven_edge = true;
}
