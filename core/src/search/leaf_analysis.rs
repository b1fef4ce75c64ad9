//! What is found out about a new position before its value (seed 4): a mate, and the hints of its moves; and what the tree does
//! with that. Looking needs no tree, so that leaves in flight are looked at on several threads.

use crate::games::analysis::{Exact, Knowledge, MoveHint, Priority, RootMate, FORCED_MATE, LAST_TACTICAL};
use crate::games::World;
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::SearchConfig;
use crate::search::expand;
use crate::search::move_ordering::HistoryTable;
use crate::search::pending::PendingLeaf;
use crate::tree::{NodeIndex, OrderedEdge, Tree, ROOT, UNPROVEN};

/// Fewer leaves are not worth handing over.
const FEWEST: usize = 2;

/// Looks for a mate at a position `depth` plies below the root, for or against the player to move. Without one, `hints` receives what is
/// told of each legal move, if the search asks for that.
pub fn analyze_position<W: World>(
    config: &SearchConfig,
    history_table: &HistoryTable,
    state: &W::State,
    depth: usize,
    hints: &mut Vec<MoveHint>,
) -> Option<Exact> {
    hints.clear();
    let (knowledge, analysis) = config.knowledge.as_deref().zip(W::analysis(state))?;
    // The root was searched for mates at length.
    if depth > 0 && (knowledge.mate_depth > 0 || knowledge.endings) {
        if let Some(mate) = analysis.mate(knowledge) {
            return Some(mate);
        }
    }
    if knowledge.priority.is_some() {
        analysis.hints(knowledge, history_table.at(depth, W::to_play(state)), hints);
    }
    None
}

/// Looks at every leaf that waits, and values those that are valued inside the engine.
pub fn analyze_leaves<W: World>(config: &SearchConfig, history_table: &HistoryTable, leaves: &mut [PendingLeaf<W::State>]) {
    for leaf in leaves {
        leaf.mate = analyze_position::<W>(config, history_table, &leaf.state, leaf.path.len(), &mut leaf.hints);
        leaf.value = match leaf.mate {
            Some(mate) => Some(f64::from(if W::to_play(&leaf.state) == 0 { mate.value } else { -mate.value })),
            None => config.leaf.value::<W>(&mut leaf.state, leaf.key, config.knowledge.as_deref()),
        };
    }
}

/// The same on up to `threads` threads, each with a share of the leaves.
pub fn analyze_leaves_parallel<W: World>(
    threads: usize,
    config: &SearchConfig,
    history_table: &HistoryTable,
    leaves: &mut [PendingLeaf<W::State>],
) {
    let share = leaves.len().div_ceil(threads).max(FEWEST);
    parallel_for(threads, leaves.chunks_mut(share), |leaves| analyze_leaves::<W>(config, history_table, leaves));
}

/// Drops the hints of legal moves that a root restricted to some of its moves does not have. `hints` is in the order of the game.
pub fn restrict_hints<W: World>(tree: &Tree, state: &W::State, hints: &mut Vec<MoveHint>) {
    let actions = tree.edges(tree.node(ROOT)).actions;
    if hints.is_empty() || hints.len() == actions.len() {
        return;
    }
    let mut legal = Vec::new();
    W::legal_actions(state, &mut legal);
    let mut left = legal.iter();
    hints.retain(|_| left.next().is_some_and(|action| actions.contains(action)));
}

/// Gives the moves of a new node, which have their priors, the order in which they are tried.
pub fn order_edges(tree: &mut Tree, knowledge: &Knowledge, node: NodeIndex, hints: &[MoveHint]) {
    let Some(priority) = knowledge.priority else { return };
    let edges = tree.edges(tree.node(node));
    let unknown = MoveHint { category: LAST_TACTICAL + 1, weight: knowledge.weights[usize::from(LAST_TACTICAL) + 1] };
    let of_place = |(place, &action): (usize, &u16)| {
        let kind = hints.get(place).copied().unwrap_or(unknown);
        (OrderedEdge { action, prior: edges.priors[place], tag: kind.category }, kind.weight)
    };
    let mut weighted: Vec<(OrderedEdge, f64)> = edges.actions.iter().enumerate().map(of_place).collect();
    // Stable: moves that are alike stay in the order of the game.
    weighted.sort_by(|(a, _), (b, _)| a.tag.cmp(&b.tag).then(b.prior.total_cmp(&a.prior)));
    if priority == Priority::Prior {
        let total = weighted.iter().fold(0.0, |total, (one, weight)| total + f64::from(one.prior) * weight);
        if total > 0.0 {
            weighted.iter_mut().for_each(|(one, weight)| one.prior = (f64::from(one.prior) * *weight / total) as f32);
        }
    }
    let moves: Vec<OrderedEdge> = weighted.into_iter().map(|(one, _)| one).collect();
    let ordered_prefix = match priority {
        Priority::Strict => moves.len(),
        Priority::Tactical => moves.iter().take_while(|one| one.tag <= LAST_TACTICAL).count(),
        Priority::Prior => 0,
    };
    tree.order_edges(node, &moves, ordered_prefix.min(usize::from(u8::MAX)) as u8);
}

/// Searches the root for a mate, and decides it if there is one for or against the player to move there.
pub fn analyze_root<W: World>(tree: &mut Tree, config: &SearchConfig, state: &W::State) {
    let Some((knowledge, analysis)) = config.knowledge.as_deref().zip(W::analysis(state)) else { return };
    let moves = tree.node(ROOT).num_edges as usize;
    let has_room = |nodes| tree.has_room(nodes, config.max_bytes, config.max_nodes);
    if (knowledge.root_depth == 0 && !knowledge.endings) || tree.node(ROOT).proven != UNPROVEN || !has_room(1) {
        return;
    }
    match analysis.root_mate(knowledge) {
        Some(RootMate::Wins { line, plies }) => {
            let Some(&action) = line.first() else { return };
            decide::<W>(tree, config, state, action, plies - 1, 1);
            tree.mating_line = line;
            let root = tree.node_mut(ROOT);
            (root.proven, root.distance) = (1, plies);
        }
        Some(RootMate::Loses { line, replies }) if has_room(moves) => {
            let longest = replies.iter().map(|&(_, plies)| plies).max().unwrap_or(0);
            // As they stand, so that none changes its place.
            for action in tree.edges(tree.node(ROOT)).actions.to_vec() {
                let plies = replies.iter().find(|(reply, _)| *reply == action).map_or(longest, |&(_, plies)| plies);
                decide::<W>(tree, config, state, action, plies, -1);
            }
            tree.mating_line = line;
            let root = tree.node_mut(ROOT);
            (root.proven, root.distance) = (-1, longest + 1);
        }
        _ => {}
    }
}

/// Proves a move of the root: `value` for the player who chooses it, reached `distance` plies after it.
fn decide<W: World>(tree: &mut Tree, config: &SearchConfig, state: &W::State, action: u16, distance: u16, value: i8) {
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
            Some(result) => expand::end(tree, config, edge, W::to_play(&next), &[f64::from(result), -f64::from(result)]),
            None => expand::mate(tree, edge, W::to_play(&next), Exact { value: -value, plies: distance }),
        }
    });
    let node = tree.node_mut(child);
    (node.proven, node.distance) = (-value, distance);
    // What was known below it was searched without this: as a root, it begins anew.
    (node.num_edges, node.opened) = (0, 0);
    tree.set_proven(edge, value);
    if value == 1 {
        tree.set_tag(edge, FORCED_MATE);
    }
    tree.node_mut(ROOT).has_proven_edge = true;
}
