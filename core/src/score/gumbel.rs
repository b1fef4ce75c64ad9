//! The rules of Gumbel search (Danihelka et al. 2022): Q completed for moves never tried, an improved policy made of it, and
//! the deterministic choice inside the tree that makes visits follow that policy. The root's rule is in `halving.rs`.

use crate::tree::{Edges, Node, Tree};

/// Spans below this are taken for it, so that equal values do not divide by 0 (mctx has the same number).
const LEAST_SPAN: f64 = 1e-8;
/// Priors below the smallest ordinary number count as it in the mixed value (as in mctx).
const LEAST_PRIOR: f64 = f32::MIN_POSITIVE as f64;

/// How Q is completed and scaled; names and meanings as in mctx.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completed {
    /// Weight of values against priors.
    pub value_scale: f64,
    /// Added to the visits of the most visited move, for the weight of values.
    pub maxvisit_init: f64,
    /// Bring values to [0, 1] first.
    pub rescale_values: bool,
    /// Complete by a mixture of the node's own value and those of its moves, not by its own alone (appendix D of the paper).
    pub use_mixed_value: bool,
    /// Size of the action space: where moves are missing, legal or not, the completing value counts in the scale (as in mctx).
    pub num_actions: usize,
}

/// What a rule adds to the logits of a node's moves: sigma(completed Q).
#[derive(Clone, Copy, Debug)]
pub struct Bonus {
    weight: f64,
    low: f64,
    span: f64,
    /// Of a move never tried.
    pub untried: f64,
}

impl Bonus {
    /// Of a move with value `q`.
    #[inline]
    pub fn of(&self, q: f64) -> f64 {
        self.weight * ((q - self.low) / self.span)
    }

    /// Of the edge at `place`.
    #[inline]
    pub fn at(&self, edges: &Edges<'_>, place: usize) -> f64 {
        value(edges, place).map_or(self.untried, |q| self.of(q))
    }
}

/// Visits of an edge, leaves in flight counted.
#[inline]
pub fn counted(edges: &Edges<'_>, place: usize) -> u32 {
    edges.visits[place] + edges.in_flight.get(place).map_or(0, |&flying| u32::from(flying))
}

/// Q of an edge for the chooser: exact where proven; None where it was never tried.
#[inline]
fn value(edges: &Edges<'_>, place: usize) -> Option<f64> {
    match edges.links[place].proven() {
        Some(exact) => Some(f64::from(exact)),
        None if edges.visits[place] > 0 => Some(edges.sums[place] / f64::from(edges.visits[place])),
        None => None,
    }
}

impl Completed {
    /// The bonus at a node.
    pub fn at(&self, edges: &Edges<'_>, node: &Node) -> Bonus {
        let opened = node.opened as usize;
        let (mut total, mut most, mut visited, mut priors) = (0u32, 0u32, 0usize, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in 0..opened {
            most = most.max(counted(edges, place));
            total += edges.visits[place];
            if let Some(q) = value(edges, place) {
                visited += 1;
                priors += f64::from(edges.priors[place]).max(LEAST_PRIOR);
                low = low.min(q);
                high = high.max(q);
            }
        }
        let mut completing = node.raw;
        if self.use_mixed_value && total > 0 {
            let mut weighted = 0.0;
            for place in 0..opened {
                if let Some(q) = value(edges, place) {
                    weighted += f64::from(edges.priors[place]).max(LEAST_PRIOR) * q / priors;
                }
            }
            let total = f64::from(total);
            completing = (node.raw + total * weighted) / (total + 1.0);
        }
        if visited < self.num_actions {
            low = low.min(completing);
            high = high.max(completing);
        }
        let weight = (self.maxvisit_init + f64::from(most)) * self.value_scale;
        let (low, span) = if self.rescale_values { (low, (high - low).max(LEAST_SPAN)) } else { (0.0, 1.0) };
        let mut bonus = Bonus { weight, low, span, untried: 0.0 };
        bonus.untried = bonus.of(completing);
        bonus
    }
}

/// prior * exp(exponent). What is ruled out stays so, however good it looks: there the exponential may overflow.
#[inline]
fn weigh(prior: f64, exponent: f64) -> f64 {
    if prior > 0.0 {
        prior * exponent.exp()
    } else {
        0.0
    }
}

/// Weights of the improved policy: of each opened edge, and of one unit of prior of the others; and their sum.
struct Improved {
    untried: f64,
    total: f64,
}

/// The improved policy at a node, pi' = softmax(logits + bonus), as weights P * exp(bonus - greatest): `weights` receives those
/// of the opened edges. `tail` is the prior of moves that the node does not keep.
fn improve(edges: &Edges<'_>, opened: usize, tail: f64, bonus: &Bonus, weights: &mut [f64]) -> Improved {
    let rest = edges.priors[opened..].iter().fold(0.0, |sum, &prior| sum + f64::from(prior)) + tail;
    let mut most = if rest > 0.0 { bonus.untried } else { f64::NEG_INFINITY };
    for place in (0..opened).filter(|&place| edges.priors[place] > 0.0) {
        most = most.max(bonus.at(edges, place));
    }
    let mut total = 0.0;
    for (place, weight) in weights.iter_mut().enumerate().take(opened) {
        *weight = weigh(f64::from(edges.priors[place]), bonus.at(edges, place) - most);
        total += *weight;
    }
    // Where no prior is left, the weight of what is not there may be beyond all bounds: nothing times it is nothing.
    let untried = if rest > 0.0 { (bonus.untried - most).exp() } else { 0.0 };
    Improved { untried, total: total + rest * untried }
}

/// The place to follow inside the tree: where visits lag most behind the improved policy (section 5 of the paper), the lowest
/// action among equals. Proven losses are passed over while another move remains.
pub fn choose(completed: &Completed, tree: &Tree, node: &Node, tail: f64, scores: &mut [f64]) -> usize {
    let edges = tree.edges(node);
    let opened = node.opened as usize;
    let bonus = completed.at(&edges, node);
    let improved = improve(&edges, opened, tail, &bonus, scores);
    let visits: u32 = (0..opened).map(|place| counted(&edges, place)).sum();
    let all_lost = edges.links.iter().all(|link| link.is_loss());
    let mut best: Option<(f64, u16, usize)> = None;
    let mut offer = |score: f64, place: usize| {
        let action = edges.actions[place];
        if best.is_none_or(|(highest, lowest, _)| score > highest || (score == highest && action < lowest)) {
            best = Some((score, action, place));
        }
    };
    for (place, slot) in scores.iter_mut().enumerate().take(opened) {
        let score = *slot / improved.total - f64::from(counted(&edges, place)) / (1.0 + f64::from(visits));
        let lost = edges.links[place].is_loss() && !all_lost;
        *slot = if lost { f64::NEG_INFINITY } else { score };
        if !lost {
            offer(score, place);
        }
    }
    let mut likeliest: Option<usize> = None;
    for (place, slot) in scores.iter_mut().enumerate().take(edges.actions.len()).skip(opened) {
        *slot = f64::from(edges.priors[place]) * improved.untried / improved.total;
        let better = |other: usize| {
            let (own, theirs) = (edges.priors[place], edges.priors[other]);
            own > theirs || (own == theirs && edges.actions[place] < edges.actions[other])
        };
        if likeliest.is_none_or(better) {
            likeliest = Some(place);
        }
    }
    if let Some(place) = likeliest {
        offer(scores[place], place);
    }
    best.map_or(0, |(_, _, place)| place)
}

/// The improved policy over all edges of the root: the target to train a policy with. Moves that are not `allowed` get 0.
pub fn policy(completed: &Completed, edges: &Edges<'_>, node: &Node, allowed: &[usize]) -> Vec<f64> {
    let bonus = completed.at(edges, node);
    let bonuses: Vec<f64> = (0..edges.actions.len()).map(|place| bonus.at(edges, place)).collect();
    let likely = |place: &&usize| edges.priors[**place] > 0.0;
    let greatest = |places: &mut dyn Iterator<Item = &usize>| places.map(|&place| bonuses[place]).fold(f64::NEG_INFINITY, f64::max);
    let mut most = greatest(&mut allowed.iter().filter(likely));
    let none_likely = most == f64::NEG_INFINITY;
    if none_likely {
        most = greatest(&mut allowed.iter());
    }
    let mut policy = vec![0.0; edges.actions.len()];
    let mut total = 0.0;
    for &place in allowed {
        let prior = if none_likely { 1.0 } else { f64::from(edges.priors[place]) };
        policy[place] = weigh(prior, bonuses[place] - most);
        total += policy[place];
    }
    policy.iter_mut().for_each(|share| *share /= total);
    policy
}
