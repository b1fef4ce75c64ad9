//! Chance nodes: their expansion, and the choice of an outcome on the way through them. A chance node has all its outcomes as edges
//! from its first visit on, with the probability as P, and no evaluation of its own. W of its edges is for player 0 (`Node::owner`).

use crate::games::World;
use crate::runtime::random::Random;
use crate::search::config::WorldConfig;
use crate::search::path::{Step, TraceStep};
use crate::search::terms::{terms, ChoiceTerms};
use crate::tree::journal::Journal;
use crate::tree::{owner, Edges, Node, NodeIndex, Tree, CHANCE};

const _: () = assert!(CHANCE == crate::games::CHANCE);

/// Greatest distance of the sum of the probabilities from 1.
const SUM_TOLERANCE: f64 = 1e-9;

/// Upper bound of the outcomes that a node can count; a compiled game has a lower one of its own (`Game::MAX_OUTCOMES`).
const COUNTABLE_OUTCOMES: usize = u16::MAX as usize;

/// How outcomes are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChanceMode {
    /// The greatest P / (n + 1), the lowest outcome of equals; sampled at nodes with more than `chance_width` outcomes.
    Balanced,
    /// Sampled by P.
    Sample,
}

impl ChanceMode {
    /// The modes by name.
    pub const NAMES: [(Option<&'static str>, Self); 2] = [(Some("balanced"), Self::Balanced), (Some("sample"), Self::Sample)];
}

/// Returns the player whose values a node has (`owner`), in worlds without chance the player to move.
#[inline(always)]
pub(crate) fn owner_in<W: World>(to_play: u8) -> u8 {
    if W::HAS_CHANCE {
        owner(to_play)
    } else {
        to_play
    }
}

/// Returns whether a position of a compiled world, at which the game is not over, is a chance node.
#[inline(always)]
pub(crate) fn is_chance<W: World>(state: &W::State) -> bool {
    W::HAS_CHANCE && W::to_play(state) == CHANCE
}

/// Checks the outcomes of a chance node, given by the game's `chance_outcomes()`.
pub(crate) fn check_outcomes(outcomes: &[u16], probabilities: &[f64]) -> Result<(), String> {
    let refuse = |text: String| Err(format!("chance_outcomes() {text}"));
    if outcomes.is_empty() || outcomes.len() != probabilities.len() {
        return refuse(format!("has {} outcomes and {} probabilities", outcomes.len(), probabilities.len()));
    }
    if outcomes.len() > COUNTABLE_OUTCOMES {
        return refuse(format!("has {} outcomes: at most {COUNTABLE_OUTCOMES} are possible", outcomes.len()));
    }
    if let Some(wrong) = probabilities.iter().find(|&&probability| !(probability > 0.0 && probability.is_finite())) {
        return refuse(format!("has the probability {wrong}: probabilities are positive numbers"));
    }
    let sum: f64 = probabilities.iter().sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        return refuse(format!("has probabilities that sum to {sum}: they must sum to 1"));
    }
    let mut sorted = outcomes.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refuse(format!("has the outcome {} twice", pair[0])),
        None => Ok(()),
    }
}

/// Adds the edges of a new chance node.
pub(crate) fn add_outcomes(tree: &mut Tree, node: NodeIndex, outcomes: &[u16], probabilities: impl Iterator<Item = f64>) {
    tree.add_edges(node, outcomes);
    for (prior, probability) in tree.priors_mut(node).iter_mut().zip(probabilities) {
        *prior = probability as f32;
    }
}

/// Adds the edges of a new chance node of a compiled world; `legal` and `outcomes` are buffers.
pub(crate) fn expand<W: World>(tree: &mut Tree, node: NodeIndex, state: &W::State, legal: &mut Vec<u16>, outcomes: &mut Vec<(u16, f64)>) {
    W::chance_outcomes(state, outcomes);
    legal.clear();
    legal.extend(outcomes.iter().map(|&(outcome, _)| outcome));
    add_outcomes(tree, node, legal, outcomes.iter().map(|&(_, probability)| probability));
}

/// Returns whether the next outcome of a chance node with `visits` is sampled. The first one always is: each new node would show its
/// most probable, lowest outcome otherwise, which biases all values of few visits, and "on a 1, roll again" would go on for ever.
fn is_sampled<W: World>(config: &WorldConfig<W>, node: &Node, visits: u32) -> bool {
    visits == 0 || config.chance == ChanceMode::Sample || u32::from(node.num_edges) > config.chance_width
}

/// Returns P / (n + 1) of each edge, n with leaves in flight, for a record.
fn scores<'a>(tree: &'a Tree, node: &Node) -> impl Iterator<Item = f64> + 'a {
    let edges = tree.edges(node);
    let visits = move |place: usize| edges.visits[place] + edges.in_flight.get(place).map_or(0, |&count| u32::from(count));
    edges.priors.iter().enumerate().map(move |(place, &prior)| f64::from(prior) / (f64::from(visits(place)) + 1.0))
}

/// Returns the place of the outcome that the descent follows, drawn from `outcome_random` if it is sampled: in the order of the edges.
pub(crate) fn choose<W: World>(tree: &Tree, config: &WorldConfig<W>, node: &Node, visits: u32, outcome_random: &mut Random) -> usize {
    let edges = tree.edges(node);
    if is_sampled(config, node, visits) {
        return outcome_random.draw(edges.priors.iter().map(|&prior| f64::from(prior))).unwrap_or(0);
    }
    match edges.in_flight {
        [] => most_due(&edges, |place| edges.visits[place]),
        in_flight => most_due(&edges, |place| edges.visits[place] + u32::from(in_flight[place])),
    }
}

/// Returns the place of the greatest P / (n + 1), the lowest outcome of equals; n is `visits`.
///
/// P / a > Q / b is computed as P * b > Q * a, without divisions. The result is the same to the last bit below 2^28 visits: products of
/// numbers of 24 and 28 bits are exact, and quotients of such numbers that differ do so by more than the rounding of both.
#[inline(always)]
fn most_due(edges: &Edges<'_>, visits: impl Fn(usize) -> u32) -> usize {
    let (priors, actions) = (edges.priors, edges.actions);
    if priors.iter().all(|&prior| prior == priors[0]) {
        // A die: the fewest visits, without a branch.
        let rank = |place: usize| u64::from(visits(place)) << 32 | u64::from(actions[place]) << 16 | place as u64;
        return (0..priors.len()).map(rank).min().map_or(0, |least| (least & 0xFFFF) as usize);
    }
    let share = |place: usize| (f64::from(priors[place]), f64::from(visits(place)) + 1.0);
    let (mut best, mut highest) = (0, share(0));
    for place in 1..priors.len() {
        let other = share(place);
        let (ours, theirs) = (highest.0 * other.1, other.0 * highest.1);
        if theirs > ours || (theirs == ours && actions[place] < actions[best]) {
            (best, highest) = (place, other);
        }
    }
    best
}

/// Returns the record of the choice of the outcome at `place`, before its edge is opened, at a node with `visits`.
pub(crate) fn recorded<W: World>(tree: &Tree, config: &WorldConfig<W>, node: &Node, visits: u32, place: usize) -> TraceStep {
    let edges = tree.edges(node);
    let is_sampled = is_sampled(config, node, visits);
    let scores: Option<Vec<(u16, f64)>> = (!is_sampled).then(|| edges.actions.iter().copied().zip(scores(tree, node)).collect());
    let of_edge = |place: usize| {
        terms! {
            action: edges.actions[place],
            visits: edges.visits[place],
            in_flight: edges.in_flight.get(place).copied().unwrap_or(0),
            total: edges.sums[place],
            proven: edges.links[place].proven(),
            probability: edges.priors[place],
            score: scores.as_ref().map(|scores| scores[place].1),
        }
    };
    let how = if is_sampled { "sample" } else { "balanced" };
    let shared = terms! { player: -1_i64, visits: visits, rule: "chance", how: how };
    let terms = ChoiceTerms::new(shared, (0..edges.actions.len()).map(of_edge));
    TraceStep { action: edges.actions[place], scores, terms }
}

/// Follows an outcome of the new chance node `index`, which counts as in flight; returns the step and its record.
pub(crate) fn follow<W: World>(
    tree: &mut Tree,
    config: &WorldConfig<W>,
    index: NodeIndex,
    outcome_random: &mut Random,
    journal: &mut Journal,
) -> (Step, Option<TraceStep>) {
    let node = *tree.node(index);
    let place = choose(tree, config, &node, 0, outcome_random);
    let record = config.trace.then(|| recorded(tree, config, &node, 0, place));
    let edge = node.edge(place);
    journal.node(tree, index);
    journal.swap(node.edge(node.opened as usize), edge);
    let edge = tree.open(index, edge);
    tree.add_in_flight(edge, 1);
    (Step { node: index, edge, chooser: node.owner() }, record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random::Purpose;
    use crate::tree::Link;

    #[test]
    fn chosen_outcome_has_the_greatest_quotient() {
        let mut random = Random::new(1, Purpose::Outcome);
        for round in 0..20_000_u32 {
            let count = 1 + random.below(12) as usize;
            // Probabilities of dice, of a few classes, and of any size; visits of any size, often in proportion.
            let largest = [1, 4, 1 << 24][round as usize % 3];
            let priors: Vec<f32> = (0..count).map(|_| (1 + random.below(largest)) as f32 / largest as f32 / count as f32).collect();
            let most = [3, 1000, 1 << 28][(round / 3) as usize % 3];
            let total = f64::from(random.below(most));
            let visits: Vec<u32> = priors.iter().map(|&prior| (total * f64::from(prior)) as u32 + random.below(2)).collect();
            let actions: Vec<u16> = (0..count as u16).map(|place| place * 7 % 13).collect();
            let (sums, links) = (vec![0.0; count], vec![Link::NONE; count]);
            let edges = Edges { sums: &sums, visits: &visits, priors: &priors, links: &links, actions: &actions, in_flight: &[] };
            let quotient = |place: usize| f64::from(priors[place]) / (f64::from(visits[place]) + 1.0);
            let greatest = (0..count).map(quotient).fold(0.0, f64::max);
            let expected = (0..count).filter(|&place| quotient(place) == greatest).min_by_key(|&place| actions[place]);
            assert_eq!(Some(most_due(&edges, |place| visits[place])), expected, "{priors:?} {visits:?}");
        }
    }
}
