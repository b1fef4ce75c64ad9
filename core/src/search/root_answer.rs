//! Results at the root: move, policy, value, principal variation.

use std::sync::Arc;

use crate::runtime::random::{fold, Purpose, Random};
use crate::search::backup::edge_discount;
use crate::search::score::{gumbel, node_value, CompletedQ};
use crate::search::sequential_halving::Schedule;
use crate::solvers::minimax::Verdict;
use crate::tree::{Backup, Edges, Tree, ROOT, UNPROVEN};

/// Data that determine move and policy of a Gumbel search, instead of visits.
#[derive(Clone, Debug)]
pub struct GumbelPolicy {
    /// How Q is completed.
    pub completed_q: CompletedQ,
    /// The Gumbel numbers, and the visits when they were drawn.
    pub schedule: Arc<Schedule>,
}

/// Returns the places of the root edges that may be chosen: at a proven root those with its result, else all but proven
/// losses.
fn allowed(tree: &Tree, edges: &Edges<'_>) -> Vec<usize> {
    let proven = tree.node(ROOT).proven;
    let fits = |place: &usize| match edges.links[*place].proven() {
        value if proven != UNPROVEN => value == Some(proven),
        value => value != Some(-1),
    };
    let all = 0..edges.actions.len();
    // Usually all of them.
    let mut places = Vec::with_capacity(all.len());
    places.extend(all.clone().filter(fits));
    if places.is_empty() {
        places.extend(all);
    }
    places
}

/// Returns the plies to the end behind an edge.
fn distance(tree: &Tree, edges: &Edges<'_>, place: usize) -> u16 {
    edges.links[place].child().map_or(0, |child| tree.node(child).distance)
}

/// Returns the probability of each root edge at temperature `tau`: visits to the power 1/tau over the allowed moves, computed in
/// logarithms against overflow, uniform without visits. With a `GumbelPolicy`, the improved policy replaces visits.
#[must_use]
pub(crate) fn policy(tree: &Tree, tau: f64, greedy: usize, gumbel_policy: Option<&GumbelPolicy>) -> Vec<f64> {
    let edges = tree.edges(tree.node(ROOT));
    let mut policy = vec![0.0; edges.actions.len()];
    if tau == 0.0 || tree.node(ROOT).proven == 1 {
        policy[greedy] = 1.0;
        return policy;
    }
    let places = allowed(tree, &edges);
    let improved = gumbel_policy.map(|gumbel_policy| gumbel::policy(&gumbel_policy.completed_q, &edges, tree.node(ROOT), &places));
    if let Some(improved) = improved.as_ref().filter(|_| tau == 1.0) {
        return improved.clone();
    }
    let share = |place: usize| improved.as_ref().map_or(f64::from(edges.visits[place]), |improved| improved[place]);
    let most = places.iter().map(|&place| share(place)).fold(0.0, f64::max);
    let weight = |place: usize| match share(place) {
        _ if most == 0.0 => 1.0,
        0.0 => 0.0,
        share => ((share.ln() - most.ln()) / tau).exp(),
    };
    let total: f64 = places.iter().map(|&place| weight(place)).sum();
    for &place in &places {
        policy[place] = weight(place) / total;
    }
    policy
}

/// Returns the place of the move to play: sampled at temperature `tau`, the best one at 0. Of proven wins a shortest, of proven
/// losses a longest one. `verdicts` are those of a minimax guard.
#[must_use]
pub(crate) fn choose(
    tree: &Tree,
    tau: f64,
    tree_key: u64,
    simulations: u64,
    verdicts: &[(u16, Verdict)],
    gumbel_policy: Option<&GumbelPolicy>,
) -> usize {
    let mut random = Random::new(fold(tree_key, simulations), Purpose::RootMove);
    let best = match gumbel_policy.filter(|_| matches!(tree.node(ROOT).proven, 0 | UNPROVEN)) {
        Some(gumbel_policy) => {
            let (node, edges) = (tree.node(ROOT), tree.edges(tree.node(ROOT)));
            gumbel_policy.schedule.answer(&gumbel_policy.completed_q, &edges, node, &allowed(tree, &edges))
        }
        None => guarded(tree, verdicts, &mut random),
    };
    let sampled = tau > 0.0 && tree.node(ROOT).proven == UNPROVEN && verdict(tree, verdicts, best) == Verdict::Unknown;
    let drawn = tau > 0.0 && tree.node(ROOT).proven == 0;
    if sampled || drawn {
        return sample(&policy(tree, tau, best, gumbel_policy), &mut random).unwrap_or(best);
    }
    best
}

fn sample(policy: &[f64], random: &mut Random) -> Option<usize> {
    let threshold = random.uniform() * policy.iter().sum::<f64>();
    let mut sum = 0.0;
    for (place, &weight) in policy.iter().enumerate() {
        sum += weight;
        if sum > threshold {
            return Some(place);
        }
    }
    policy.iter().rposition(|&weight| weight > 0.0)
}

/// Returns the best move by proof, then by visits, or with `Backup::Max` by Q and then by visits; ties by `random`.
fn best(tree: &Tree, random: &mut Random) -> usize {
    let (node, edges) = (tree.node(ROOT), tree.edges(tree.node(ROOT)));
    if node.proven == UNPROVEN {
        // Only opened edges have visits: few of possibly thousands.
        let tried = &edges.visits[..node.opened as usize];
        let fits = |place: usize| edges.links[place].proven() != Some(-1);
        if tree.shape().backup == Backup::Max {
            let visited = || (0..tried.len()).filter(|&place| tried[place] > 0 && fits(place));
            let rank = |place: usize| (edges.sums[place] / f64::from(tried[place]), tried[place]);
            if let Some(highest) = visited().map(rank).reduce(|best, other| if other > best { other } else { best }) {
                let places = || visited().filter(|&place| rank(place) == highest);
                let chosen = random.choose(places().count() as u32) as usize;
                return places().nth(chosen).unwrap_or(0);
            }
        }
        let most = tried.iter().enumerate().filter(|&(place, _)| fits(place)).map(|(_, &visits)| visits).max().unwrap_or(0);
        if most > 0 {
            let places = || tried.iter().enumerate().filter(|&(place, &visits)| visits == most && fits(place)).map(|(place, _)| place);
            let chosen = random.choose(places().count() as u32) as usize;
            return places().nth(chosen).unwrap_or(0);
        }
    }
    let rank = |place: usize| {
        let visits = i64::from(edges.visits[place]);
        match tree.node(ROOT).proven {
            1 => (-i64::from(distance(tree, &edges, place)), 0),
            -1 => (i64::from(distance(tree, &edges, place)), visits),
            _ => (visits, 0),
        }
    };
    pick(&allowed(tree, &edges), rank, random)
}

/// Draws one of the places with the highest rank.
fn pick<R: Ord + Copy>(places: &[usize], rank: impl Fn(usize) -> R, random: &mut Random) -> usize {
    let Some(highest) = places.iter().map(|&place| rank(place)).max() else { return 0 };
    let mut ties = places.iter().copied().filter(|&place| rank(place) == highest);
    let chosen = random.choose(ties.clone().count() as u32) as usize;
    ties.nth(chosen).unwrap_or(0)
}

fn verdict(tree: &Tree, verdicts: &[(u16, Verdict)], place: usize) -> Verdict {
    let action = tree.edges(tree.node(ROOT)).actions[place];
    verdicts.iter().find(|(a, _)| *a == action).map_or(Verdict::Unknown, |(_, verdict)| *verdict)
}

/// Applies the minimax guard: it overrides the best move only by a proven win, or if that move is a proven loss.
fn guarded(tree: &Tree, verdicts: &[(u16, Verdict)], random: &mut Random) -> usize {
    let chosen = best(tree, random);
    if tree.node(ROOT).proven != UNPROVEN || verdicts.is_empty() {
        return chosen;
    }
    let edges = tree.edges(tree.node(ROOT));
    let place_of = |action: u16| edges.actions.iter().position(|&a| a == action);
    if matches!(verdict(tree, verdicts, chosen), Verdict::Win(_)) {
        return chosen;
    }
    let shortest = verdicts
        .iter()
        .filter_map(|(action, verdict)| match verdict {
            Verdict::Win(plies) => place_of(*action).map(|place| (*plies, place)),
            _ => None,
        })
        .reduce(|a, b| if b.0 < a.0 { b } else { a });
    if let Some((_, place)) = shortest {
        return place;
    }
    if verdict(tree, verdicts, chosen) == Verdict::Loss {
        let others: Vec<usize> = (0..edges.actions.len())
            .filter(|&place| verdict(tree, verdicts, place) != Verdict::Loss && !edges.links[place].is_loss())
            .collect();
        if !others.is_empty() {
            return pick(&others, |place| edges.visits[place], random);
        }
    }
    chosen
}

/// Returns the value of the root for the player to move: exact if proven, else the mean of the backed up values, or the best edge's.
#[must_use]
pub(crate) fn value(tree: &Tree) -> f64 {
    let root = tree.node(ROOT);
    if root.is_exact() {
        return root.exact();
    }
    if tree.root_visits == 0 {
        return root.raw_value;
    }
    if tree.shape().backup == Backup::Max {
        return node_value(tree, root);
    }
    let sum: f64 = tree.edges(root).sums.iter().sum();
    (root.raw_value + sum) / f64::from(tree.root_visits)
}

/// Returns the value of the root for each player: one number and its negative in two-player zero-sum games and with learned models,
/// otherwise each player's mean of the backed up values, rewards included. O(nodes).
#[must_use]
pub(crate) fn values(tree: &Tree) -> Vec<f64> {
    let (shape, to_play, value) = (tree.shape(), usize::from(tree.node(ROOT).to_play), value(tree));
    let mut values = vec![0.0 - value; shape.players];
    if shape.player_values && tree.root_visits > 0 {
        let sums = sums_per_player(tree);
        values = sums.iter().map(|sum| sum / f64::from(tree.root_visits)).collect();
    } else if shape.player_values {
        values.fill(0.0);
    }
    if let Some(own) = values.get_mut(to_play) {
        *own = value;
    }
    values
}

/// Returns the sum of the values backed up to the root, for each player. A visit of a node that is no visit of one of its edges
/// contributed the node's `Tree::returns`.
fn sums_per_player(tree: &Tree) -> Vec<f64> {
    let (players, discount) = (tree.shape().players, tree.shape().discount);
    let mut visits = vec![0u32; tree.num_nodes()];
    visits[ROOT as usize] = tree.root_visits;
    for node in tree.indices() {
        let edges = tree.edges(tree.node(node));
        for (link, &count) in edges.links.iter().zip(edges.visits) {
            if let Some(child) = link.child() {
                visits[child as usize] = count;
            }
        }
    }
    // A child has a higher index than its parent.
    let mut sums = vec![0.0; tree.num_nodes() * players];
    for node in tree.indices().rev() {
        let edges = tree.edges(tree.node(node));
        let own = f64::from(visits[node as usize].saturating_sub(edges.visits.iter().sum()));
        let mut total: Vec<f64> = tree.returns(node).iter().map(|value| own * value).collect();
        for child in edges.links.iter().filter_map(|link| link.child()) {
            let below = &sums[child as usize * players..(child as usize + 1) * players];
            let discount = edge_discount(tree.node(node), discount);
            total.iter_mut().zip(below).for_each(|(sum, below)| *sum += discount * below);
            let count = f64::from(visits[child as usize]);
            total.iter_mut().zip(tree.rewards(child)).for_each(|(sum, reward)| *sum += count * reward);
        }
        sums[node as usize * players..(node as usize + 1) * players].copy_from_slice(&total);
    }
    sums.truncate(players);
    sums
}

/// Returns the principal variation from the root edge at `first`: at each node the proven best, else the most visited edge (the
/// first of equals). It ends at the first chance node, where nothing is chosen, or goes on `through_chance`. `proof_line` takes
/// precedence if it begins with that edge.
#[must_use]
pub(crate) fn principal_variation(tree: &Tree, proof_line: &[u16], first: usize, through_chance: bool) -> Vec<u16> {
    if proof_line.first() == Some(&tree.edges(tree.node(ROOT)).actions[first]) {
        return proof_line.to_vec();
    }
    let mut line = Vec::new();
    let mut node = tree.node(ROOT);
    let mut place = Some(first);
    while let Some(at) = place {
        let edges = tree.edges(node);
        line.push(edges.actions[at]);
        let Some(child) = edges.links[at].child() else { break };
        node = tree.node(child);
        if node.is_chance() && !through_chance {
            break;
        }
        // Chance does not choose the shortest way: its line is the most visited one.
        place = line_place(tree, &tree.edges(node), if node.is_chance() { UNPROVEN } else { node.proven });
    }
    line
}

fn line_place(tree: &Tree, edges: &Edges<'_>, proven: i8) -> Option<usize> {
    let rank = |place: usize| {
        let exact = edges.links[place].proven() == Some(proven);
        let plies = i64::from(distance(tree, edges, place));
        match proven {
            1 => (i64::from(exact), -plies, 0),
            -1 => (i64::from(exact), plies, i64::from(edges.visits[place])),
            0 => (i64::from(exact), i64::from(edges.visits[place]), 0),
            _ => (0, i64::from(edges.visits[place]), 0),
        }
    };
    let mut best: Option<usize> = None;
    for place in 0..edges.actions.len() {
        if (edges.visits[place] > 0 || edges.links[place].child().is_some()) && best.is_none_or(|b| rank(place) > rank(b)) {
            best = Some(place);
        }
    }
    best
}
