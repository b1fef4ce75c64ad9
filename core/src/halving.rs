//! The root of Gumbel search (Danihelka et al. 2022, sections 2 to 4): moves are drawn without replacement by Gumbel numbers,
//! and sequential halving spends the simulations on the best of them.

use crate::random::{fold, Purpose, Random};
use crate::score::gumbel::counted;
use crate::score::Completed;
use crate::tree::{Edges, Node, Tree, ROOT};

/// The score of a move that its prior and its Gumbel number all but rule out: still a number, so that it can be compared.
const LEAST_SCORE: f64 = -1e9;

/// One move of the root in a schedule.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    action: u16,
    /// Visits it had when the schedule began.
    base: u32,
    /// Its Gumbel number and its logit, the highest of which is 0.
    draw: f64,
}

/// How the simulations of one call are spent at the root.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Simulations the tree had when it began.
    begun: u64,
    /// The visits that the move chosen in each simulation must have had.
    considered: Vec<u32>,
    /// The moves, the likeliest draw first.
    moves: Vec<Drawn>,
    /// Where each action stands among them.
    ranks: Vec<u16>,
}

/// The visits that a move must have had to be chosen, simulation by simulation: all `moves` in turn, then the better half of them
/// more often, and so on down to two.
fn considered_visits(moves: u32, simulations: u64) -> Vec<u32> {
    let simulations = usize::try_from(simulations).unwrap_or(usize::MAX);
    if moves <= 1 {
        return (0..simulations as u32).collect();
    }
    let rounds = (moves - 1).ilog2() + 1;
    let mut sequence = Vec::with_capacity(simulations);
    let (mut visits, mut left) = (0, moves);
    while sequence.len() < simulations {
        let turns = (simulations / (rounds * left) as usize).max(1);
        for _ in 0..turns {
            sequence.extend(std::iter::repeat_n(visits, left as usize));
            visits += 1;
        }
        left = (left / 2).max(2);
    }
    sequence.truncate(simulations);
    sequence
}

impl Schedule {
    /// A schedule for the next `simulations` of a tree whose root has its priors. `given` are Gumbel numbers by action;
    /// without them, fresh ones are drawn. Both are multiplied by `scale`.
    #[must_use]
    pub fn new(tree: &Tree, key: u64, begun: u64, simulations: u64, most_moves: u32, scale: f64, given: Option<&[f64]>) -> Self {
        let edges = tree.edges(tree.node(ROOT));
        let mut random = Random::new(fold(key, begun), Purpose::Gumbel);
        let mut places: Vec<usize> = (0..edges.actions.len()).collect();
        places.sort_by_key(|&place| edges.actions[place]);
        let most = edges.priors.iter().fold(f64::NEG_INFINITY, |most, &prior| most.max(f64::from(prior).ln()));
        let draw = |&place: &usize| {
            let action = edges.actions[place];
            let number = match given {
                Some(numbers) => numbers[usize::from(action)],
                None => gumbel_number(&mut random),
            };
            Drawn { action, base: edges.visits[place], draw: scale * number + (f64::from(edges.priors[place]).ln() - most) }
        };
        let mut moves: Vec<Drawn> = places.iter().map(draw).collect();
        let considered = considered_visits(most_moves.min(moves.len() as u32), simulations);
        // Stable: the lowest action first among equals.
        moves.sort_by(|a, b| b.draw.total_cmp(&a.draw));
        let mut ranks = vec![u16::MAX; moves.iter().map(|drawn| usize::from(drawn.action) + 1).max().unwrap_or(0)];
        for (rank, drawn) in moves.iter().enumerate() {
            ranks[usize::from(drawn.action)] = rank as u16;
        }
        Self { begun, considered, moves, ranks }
    }

    /// What an answer is made of where no schedule has begun: all visits count, and no Gumbel numbers.
    #[must_use]
    pub fn without_numbers(tree: &Tree) -> Self {
        let mut schedule = Self::new(tree, 0, 0, 0, 1, 0.0, None);
        schedule.moves.iter_mut().for_each(|drawn| drawn.base = 0);
        schedule
    }

    fn drawn(&self, action: u16) -> Drawn {
        let known = self.ranks.get(usize::from(action)).and_then(|&rank| self.moves.get(usize::from(rank)));
        known.copied().unwrap_or(Drawn { action, base: 0, draw: LEAST_SCORE })
    }

    /// The likeliest draw of a move that is not among those `tried`.
    fn first_untried(&self, tried: &[u16]) -> Option<&Drawn> {
        // A bit for each of the first ranks: more are seldom tried.
        let ranks = tried.iter().filter_map(|&action| self.ranks.get(usize::from(action)));
        let seen = ranks.fold(0u64, |bits, &rank| if rank < 64 { bits | (1 << rank) } else { bits });
        match seen.trailing_ones() {
            64 => self.moves.iter().skip(64).find(|drawn| !tried.contains(&drawn.action)),
            first => self.moves.get(first as usize),
        }
    }

    fn score(drawn: Drawn, bonus: f64) -> f64 {
        (drawn.draw + bonus).max(LEAST_SCORE)
    }

    /// The place to follow at the root in the simulation that is started as number `started` of the tree. `scores` receives
    /// the scores of the opened moves that came into question.
    #[must_use]
    pub fn choose(&self, completed: &Completed, tree: &Tree, started: u64, scores: &mut Vec<f64>) -> usize {
        let node = tree.node(ROOT);
        let edges = tree.edges(node);
        let opened = node.opened as usize;
        scores.clear();
        scores.resize(edges.actions.len(), f64::NEG_INFINITY);
        let bonus = completed.at(&edges, node, scores);
        let at = usize::try_from(started - self.begun).unwrap_or(usize::MAX);
        let wanted = i64::from(self.considered.get(at).copied().unwrap_or(u32::MAX));
        // Moves with as many visits as wanted; if proofs have taken them all, the nearest below, then the nearest above.
        let nearness = |visits: i64| match visits.cmp(&wanted) {
            std::cmp::Ordering::Equal => (2, 0),
            std::cmp::Ordering::Less => (1, visits),
            std::cmp::Ordering::Greater => (0, -visits),
        };
        let all_lost = node.tagged && edges.links.iter().all(|link| link.is_loss());
        let mut best: Option<((i32, i64), f64, u16, usize)> = None;
        let mut offer = |rank: (i32, i64), score: f64, place: usize| {
            let action = edges.actions[place];
            let better = |(other, highest, lowest, _): (_, f64, u16, usize)| {
                rank > other || (rank == other && (score > highest || (score == highest && action < lowest)))
            };
            if best.is_none_or(better) {
                best = Some((rank, score, action, place));
            }
        };
        for (place, slot) in scores[..opened].iter_mut().enumerate() {
            if edges.links[place].is_loss() && !all_lost {
                *slot = f64::NEG_INFINITY;
                continue;
            }
            let drawn = self.drawn(edges.actions[place]);
            let visits = i64::from(counted(&edges, place)) - i64::from(drawn.base);
            *slot = Self::score(drawn, bonus.of(*slot));
            offer(nearness(visits), *slot, place);
        }
        // Moves never tried differ by their draws alone.
        if let Some(drawn) = self.first_untried(&edges.actions[..opened]) {
            if let Some(place) = edges.actions.iter().position(|&action| action == drawn.action) {
                scores[place] = Self::score(*drawn, bonus.untried);
                offer(nearness(0), scores[place], place);
            }
        }
        best.map_or(0, |(_, _, _, place)| place)
    }

    /// The place of the move to play, among `allowed`: of those visited most in this schedule the one with the highest score.
    #[must_use]
    pub fn answer(&self, completed: &Completed, edges: &Edges<'_>, node: &Node, allowed: &[usize]) -> usize {
        let mut values = vec![f64::NAN; edges.actions.len()];
        let bonus = completed.at(edges, node, &mut values);
        let mut best: Option<(u32, f64, u16, usize)> = None;
        for &place in allowed {
            let drawn = self.drawn(edges.actions[place]);
            let visits = edges.visits[place].saturating_sub(drawn.base);
            let (score, action) = (Self::score(drawn, bonus.of(values[place])), edges.actions[place]);
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

/// A number of the Gumbel distribution, from a number strictly between 0 and 1.
fn gumbel_number(random: &mut Random) -> f64 {
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    -(-uniform.ln()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_halved() {
        assert_eq!(considered_visits(1, 4), [0, 1, 2, 3]);
        assert_eq!(considered_visits(2, 5), [0, 0, 1, 1, 2]);
        // Four moves in 16 simulations: two rounds of 8; the first gives each of four 2 visits, the second each of two 4.
        assert_eq!(considered_visits(4, 16), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(considered_visits(16, 2), [0, 0]);
        assert_eq!(considered_visits(3, 0), [0u32; 0]);
    }

    #[test]
    fn gumbel_numbers_have_their_mean() {
        let mut random = Random::new(9, Purpose::Gumbel);
        let mean = (0..40_000).map(|_| gumbel_number(&mut random)).sum::<f64>() / 40_000.0;
        assert!((mean - 0.577_215_664_9).abs() < 0.02, "{mean}");
    }
}
