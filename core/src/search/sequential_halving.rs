//! The root of Gumbel search (Danihelka et al. 2022, sections 2 to 4): Gumbel-top-k sampling of the considered moves, and
//! sequential halving of the simulations among them.

use crate::error::Error;
use crate::runtime::random::{fold, Purpose, Random};
use crate::search::score::gumbel::{counted, RecordedBonus};
use crate::search::score::{CompletedQ, Gumbel};
use crate::search::terms::{terms, ChoiceTerms, RecordedChoice, RecordedEdge};
use crate::tree::{Edges, Node, Tree, ROOT};

/// Lower bound of scores, so that a move with a vanishing prior still compares.
const MIN_SCORE: f64 = -1e9;

/// A root move in a schedule.
#[derive(Clone, Copy, Debug)]
struct RootCandidate {
    action: u16,
    /// Visits at the first simulation of the schedule.
    initial_visits: u32,
    /// Gumbel number plus logit; the highest logit is 0.
    gumbel_logit: f64,
}

/// How the simulations of one call are allocated at the root.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Number of its first simulation in the tree.
    first_simulation: u64,
    /// The visit count that selects the move of each simulation.
    considered_visits: Vec<u32>,
    /// Candidates by descending Gumbel logit.
    moves: Vec<RootCandidate>,
    /// Rank of each action among them.
    ranks: Vec<u16>,
    /// Whether no move had visits then.
    none_visited: bool,
}

/// Returns the visit count that selects the move of each simulation: all `moves` in turn, then the better half more often, and so
/// on down to two.
fn considered_visits(moves: u32, simulations: u64) -> Vec<u32> {
    let simulations = usize::try_from(simulations).unwrap_or(usize::MAX);
    if moves <= 1 {
        return (0..simulations as u32).collect();
    }
    let rounds = (moves - 1).ilog2() + 1;
    let mut sequence = Vec::with_capacity(simulations);
    let (mut visits, mut left) = (0, moves);
    while sequence.len() < simulations {
        let visits_each = (simulations / (rounds * left) as usize).max(1);
        for _ in 0..visits_each {
            sequence.extend(std::iter::repeat_n(visits, left as usize));
            visits += 1;
        }
        left = (left / 2).max(2);
    }
    sequence.truncate(simulations);
    sequence
}

impl Schedule {
    /// Creates the schedule of the next `simulations` of a tree whose root has priors. `given` are Gumbel numbers by action, drawn if
    /// None; both are multiplied by the rule's scale.
    #[must_use]
    pub fn new(tree: &Tree, key: u64, first_simulation: u64, simulations: u64, rule: &Gumbel, given: Option<&[f64]>) -> Self {
        let edges = tree.edges(tree.node(ROOT));
        let candidate = |(place, gumbel, logit): (usize, f64, f64)| RootCandidate {
            action: edges.actions[place],
            initial_visits: edges.visits[place],
            gumbel_logit: gumbel + logit,
        };
        let random = Random::new(fold(key, first_simulation), Purpose::Gumbel);
        let mut moves: Vec<RootCandidate> = gumbels_and_logits(&edges, random, rule, given).map(candidate).collect();
        let considered_visits = considered_visits(rule.max_num_considered_actions.min(moves.len() as u32), simulations);
        // Stable: the lowest action first among equals.
        moves.sort_by(|a, b| b.gumbel_logit.total_cmp(&a.gumbel_logit));
        Self::of_moves(first_simulation, considered_visits, moves)
    }

    /// Creates the schedule for a move choice before any scheduled simulation: all visits count, without Gumbel numbers.
    #[must_use]
    pub fn unscheduled(tree: &Tree, rule: &Gumbel) -> Self {
        let mut schedule = Self::new(tree, 0, 0, 0, &Gumbel { gumbel_scale: 0.0, ..*rule }, None);
        schedule.moves.iter_mut().for_each(|candidate| candidate.initial_visits = 0);
        schedule.none_visited = true;
        schedule
    }

    /// Returns actions, initial visits and Gumbel logits, which determine the chosen move.
    #[must_use]
    pub fn to_columns(&self) -> (Vec<u16>, Vec<u32>, Vec<f64>) {
        let column = |candidate: &RootCandidate| (candidate.action, (candidate.initial_visits, candidate.gumbel_logit));
        let (actions, (bases, draws)) = self.moves.iter().map(column).unzip();
        (actions, bases, draws)
    }

    /// Builds the schedule of these columns: it chooses the same move and schedules no simulations.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if no schedule has them.
    pub fn from_columns(actions: &[u16], bases: &[u32], draws: &[f64]) -> Result<Self, Error> {
        let too_many = actions.len() > usize::from(u16::MAX);
        if too_many || [bases.len(), draws.len()] != [actions.len(); 2] || draws.iter().any(|logit| logit.is_nan()) {
            return Err(Error::InvalidArgument("these are not the columns of a schedule of Gumbel search".into()));
        }
        let moves = actions
            .iter()
            .zip(bases)
            .zip(draws)
            .map(|((&action, &initial_visits), &gumbel_logit)| RootCandidate { action, initial_visits, gumbel_logit })
            .collect();
        Ok(Self::of_moves(0, Vec::new(), moves))
    }

    /// Returns its first simulation, and the visit count of each simulation.
    pub(crate) fn plan(&self) -> (u64, Vec<u32>) {
        (self.first_simulation, self.considered_visits.clone())
    }

    /// Returns it with the plan of simulations from `first_simulation` on.
    #[must_use]
    pub(crate) fn with_plan(self, first_simulation: u64, considered_visits: &[u32]) -> Self {
        Self { first_simulation, considered_visits: considered_visits.to_vec(), ..self }
    }

    fn of_moves(first_simulation: u64, considered_visits: Vec<u32>, moves: Vec<RootCandidate>) -> Self {
        let mut ranks = vec![u16::MAX; moves.iter().map(|candidate| usize::from(candidate.action) + 1).max().unwrap_or(0)];
        for (rank, candidate) in moves.iter().enumerate() {
            ranks[usize::from(candidate.action)] = rank as u16;
        }
        let none_visited = moves.iter().all(|candidate| candidate.initial_visits == 0);
        Self { first_simulation, considered_visits, moves, ranks, none_visited }
    }

    /// Writes Gumbel logits by action and the visit count of each simulation, for an offloaded search.
    pub fn export(&self, draws: &mut [f64], considered_visits: &mut [i32]) {
        draws.iter_mut().enumerate().for_each(|(action, draw)| *draw = self.candidate(action as u16).gumbel_logit);
        let wanted = self.considered_visits.iter().map(|&visits| visits as i32).chain(std::iter::repeat(i32::MAX));
        considered_visits.iter_mut().zip(wanted).for_each(|(place, visits)| *place = visits);
    }

    fn candidate(&self, action: u16) -> RootCandidate {
        let known = self.ranks.get(usize::from(action)).and_then(|&rank| self.moves.get(usize::from(rank)));
        known.copied().unwrap_or(RootCandidate { action, initial_visits: 0, gumbel_logit: MIN_SCORE })
    }

    /// Returns the candidate with the highest Gumbel logit that is not `tried`.
    fn first_untried(&self, tried: &[u16]) -> Option<&RootCandidate> {
        // A bit per rank below 64: more are seldom tried.
        let ranks = tried.iter().filter_map(|&action| self.ranks.get(usize::from(action)));
        let seen = ranks.fold(0u64, |bits, &rank| if rank < 64 { bits | (1 << rank) } else { bits });
        match seen.trailing_ones() {
            64 => self.moves.iter().skip(64).find(|candidate| !tried.contains(&candidate.action)),
            first => self.moves.get(first as usize),
        }
    }

    fn score(candidate: RootCandidate, bonus: f64) -> f64 {
        (candidate.gumbel_logit + bonus).max(MIN_SCORE)
    }

    /// Returns the place to follow at the root in simulation `started` of the tree. `scores` receives the scores of the opened edges
    /// if `all_scores`.
    #[must_use]
    pub fn choose(&self, completed_q: &CompletedQ, tree: &Tree, started: u64, all_scores: bool, scores: &mut Vec<f64>) -> usize {
        let node = tree.node(ROOT);
        let edges = tree.edges(node);
        let opened = node.opened as usize;
        let index = usize::try_from(started - self.first_simulation).unwrap_or(usize::MAX);
        let wanted = self.considered_visits.get(index).copied().unwrap_or(u32::MAX);
        // Without proofs, leaves in flight and earlier visits, visits alone decide.
        if self.none_visited && !all_scores && !node.has_proven_edge && edges.in_flight.is_empty() {
            if let Some(place) = self.choose_by_visits(completed_q, &edges, node, wanted, scores) {
                return place;
            }
        }
        if all_scores {
            scores.clear();
        }
        let length = if all_scores { edges.actions.len() } else { opened };
        if scores.len() < length {
            scores.resize(length, f64::NEG_INFINITY);
        }
        let bonus = completed_q.at(&edges, node, scores);
        let all_lost = node.has_proven_edge && edges.links.iter().all(|link| link.is_loss());
        let is_excluded = |place: usize| node.has_proven_edge && edges.links[place].is_loss() && !all_lost;
        let nearness = |place: usize| {
            let initial_visits = if self.none_visited { 0 } else { self.candidate(edges.actions[place]).initial_visits };
            nearness(i64::from(counted(&edges, place)) - i64::from(initial_visits), i64::from(wanted))
        };
        // Untried moves differ by their draws alone.
        let untried = self.first_untried(&edges.actions[..opened]);
        let mut nearest = untried.map_or(i64::MIN, |_| nearness_of_untried(wanted));
        for place in (0..opened).filter(|&place| !is_excluded(place)) {
            nearest = nearest.max(nearness(place));
        }
        let mut best: Option<(f64, u16, usize)> = None;
        let mut offer = |score: f64, place: usize| {
            let action = edges.actions[place];
            if best.is_none_or(|(highest, lowest, _)| score > highest || (score == highest && action < lowest)) {
                best = Some((score, action, place));
            }
        };
        for (place, slot) in scores[..opened].iter_mut().enumerate() {
            if is_excluded(place) {
                *slot = f64::NEG_INFINITY;
                continue;
            }
            let is_nearest = nearness(place) == nearest;
            if is_nearest || all_scores {
                *slot = Self::score(self.candidate(edges.actions[place]), bonus.of(*slot));
            }
            if is_nearest {
                offer(*slot, place);
            }
        }
        if let Some(candidate) = untried.filter(|_| nearness_of_untried(wanted) == nearest || all_scores) {
            if let Some(place) = edges.actions.iter().position(|&action| action == candidate.action) {
                let score = Self::score(*candidate, bonus.untried);
                if all_scores {
                    scores[place] = score;
                }
                if nearness_of_untried(wanted) == nearest {
                    offer(score, place);
                }
            }
        }
        best.map_or(0, |(_, _, place)| place)
    }

    /// Returns what the scores of `choose` are made of, for its record; `key` and `given` are those of `new`.
    pub(crate) fn terms(&self, rule: &Gumbel, choice: &RecordedChoice<'_>, key: u64, given: Option<&[f64]>, started: u64) -> ChoiceTerms {
        let edges = choice.edges();
        let bonus = RecordedBonus::of(&rule.completed_q, choice);
        let random = Random::new(fold(key, self.first_simulation), Purpose::Gumbel);
        let mut draws = vec![(0.0, 0.0); edges.actions.len()];
        gumbels_and_logits(&edges, random, rule, given).for_each(|(place, gumbel, logit)| draws[place] = (gumbel, logit));
        let index = usize::try_from(started - self.first_simulation).unwrap_or(usize::MAX);
        let wanted = self.considered_visits.get(index).copied().unwrap_or(u32::MAX);
        let moves = self.considered_visits.iter().filter(|&&visits| visits == wanted).count();
        let visits = |edge: &RecordedEdge| i64::from(edge.visits) - i64::from(self.candidate(edges.actions[edge.place]).initial_visits);
        let nearness = |edge: &RecordedEdge| nearness(visits(edge), i64::from(wanted));
        let nearest = choice.recorded().iter().filter(|edge| !edge.excluded).map(nearness).max();
        let shared = [bonus.shared(), terms! { considered_visits: wanted, considered_actions: moves as u32 }].concat();
        choice.scored("halving", shared, |edge| {
            let (gumbel, logit) = draws[edge.place];
            let own = terms! {
                gumbel: gumbel,
                logit: logit,
                scheduled_visits: visits(edge),
                considered: !edge.excluded && Some(nearness(edge)) == nearest,
            };
            ([bonus.terms(edge), own].concat(), (gumbel + logit + bonus.sigma(edge)).max(MIN_SCORE))
        })
    }

    /// Returns the best place among the moves with `wanted` visits; scores nothing if there is one.
    fn choose_by_visits(
        &self,
        completed_q: &CompletedQ,
        edges: &Edges<'_>,
        node: &Node,
        wanted: u32,
        scores: &mut Vec<f64>,
    ) -> Option<usize> {
        let opened = node.opened as usize;
        let visits = &edges.visits[..opened];
        let fitting = visits.iter().filter(|&&visits| visits == wanted).count();
        if wanted == 0 {
            let candidate = self.first_untried(&edges.actions[..opened]).filter(|_| fitting == 0)?;
            return edges.actions[opened..].iter().position(|&action| action == candidate.action).map(|place| opened + place);
        }
        if fitting <= 1 {
            return visits.iter().position(|&visits| visits == wanted);
        }
        if scores.len() < opened {
            scores.resize(opened, f64::NEG_INFINITY);
        }
        let bonus = completed_q.at(edges, node, scores);
        let mut best: Option<(f64, u16, usize)> = None;
        for (place, _) in visits.iter().enumerate().filter(|(_, &visits)| visits == wanted) {
            let action = edges.actions[place];
            let score = Self::score(self.candidate(action), bonus.of(scores[place]));
            if best.is_none_or(|(highest, lowest, _)| score > highest || (score == highest && action < lowest)) {
                best = Some((score, action, place));
            }
        }
        best.map(|(_, _, place)| place)
    }

    /// Returns the place of the move to play among `allowed`: of the most visited in this schedule the one with the highest score.
    #[must_use]
    pub fn answer(&self, completed_q: &CompletedQ, edges: &Edges<'_>, node: &Node, allowed: &[usize]) -> usize {
        let mut values = vec![f64::NAN; edges.actions.len()];
        let bonus = completed_q.at(edges, node, &mut values);
        let mut best: Option<(u32, f64, u16, usize)> = None;
        for &place in allowed {
            let candidate = self.candidate(edges.actions[place]);
            let visits = edges.visits[place].saturating_sub(candidate.initial_visits);
            let (score, action) = (Self::score(candidate, bonus.of(values[place])), edges.actions[place]);
            let better = |(most, highest, lowest, _): (u32, f64, u16, usize)| {
                visits > most || (visits == most && (score > highest || (score == highest && action < lowest)))
            };
            if best.is_none_or(better) {
                best = Some((visits, score, action, place));
            }
        }
        best.map_or(0, |(_, _, _, place)| place)
    }
}

/// Rank of a move by its visits: those with `wanted` visits first; if proofs have removed them all, the nearest below, then the
/// nearest above.
fn nearness(visits: i64, wanted: i64) -> i64 {
    match visits.cmp(&wanted) {
        std::cmp::Ordering::Equal => i64::MAX,
        std::cmp::Ordering::Less => visits - wanted + (1 << 40),
        std::cmp::Ordering::Greater => wanted - visits,
    }
}

/// Rank of an untried move.
fn nearness_of_untried(wanted: u32) -> i64 {
    nearness(0, i64::from(wanted))
}

/// Returns place, Gumbel number times scale, and logit of each edge, in ascending order of actions. The highest logit is 0, unless all
/// priors are 0 (a root that is not evaluated): then all are -inf. `given` are Gumbel numbers by action, drawn if None.
fn gumbels_and_logits<'a>(
    edges: &'a Edges<'a>,
    mut random: Random,
    rule: &'a Gumbel,
    given: Option<&'a [f64]>,
) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
    let mut places: Vec<usize> = (0..edges.actions.len()).collect();
    places.sort_by_key(|&place| edges.actions[place]);
    let most = edges.priors.iter().fold(f64::MIN, |most, &prior| most.max(f64::from(prior).ln()));
    places.into_iter().map(move |place| {
        let number = match given {
            Some(numbers) => numbers[usize::from(edges.actions[place])],
            None => gumbel_number(&mut random),
        };
        (place, rule.gumbel_scale * number, f64::from(edges.priors[place]).ln() - most)
    })
}

/// Draws from the Gumbel distribution, from a uniform number strictly between 0 and 1.
fn gumbel_number(random: &mut Random) -> f64 {
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    -(-uniform.ln()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn considered_visits_follow_sequential_halving() {
        assert_eq!(considered_visits(1, 4), [0, 1, 2, 3]);
        assert_eq!(considered_visits(2, 5), [0, 0, 1, 1, 2]);
        // Four moves in 16 simulations: two rounds of 8; the first gives each of four 2 visits, the second each of two 4.
        assert_eq!(considered_visits(4, 16), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(considered_visits(16, 2), [0, 0]);
        assert_eq!(considered_visits(3, 0), [0u32; 0]);
    }

    #[test]
    fn gumbel_numbers_have_the_mean_of_the_distribution() {
        let mut random = Random::new(9, Purpose::Gumbel);
        let mean = (0..40_000).map(|_| gumbel_number(&mut random)).sum::<f64>() / 40_000.0;
        assert!((mean - 0.577_215_664_9).abs() < 0.02, "{mean}");
    }
}
