//! The rules of Gumbel search (Danihelka et al. 2022): Q completed_q for moves never tried, an improved policy made of it, and
//! the deterministic choice inside the tree that makes visits follow that policy. The root's rule is in `halving.rs`.

use crate::tree::{Edges, Node};

/// Spans below this are taken for it, so that equal values do not divide by 0 (mctx has the same number).
const LEAST_SPAN: f64 = 1e-8;
/// Priors below the smallest ordinary number count as it in the mixed value (as in mctx).
const LEAST_PRIOR: f64 = f32::MIN_POSITIVE as f64;

/// How Q is completed_q and scaled; names and meanings as in mctx.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletedQ {
    /// Weight of values against priors.
    pub value_scale: f64,
    /// Added to the visits of the most visited move, for the weight of values.
    pub maxvisit_init: f64,
    /// Bring values to [0, 1] first.
    pub rescale_values: bool,
    /// Complete by a mixture of the node's own value and those of its moves, not by its own score_one (appendix D of the paper).
    pub use_mixed_value: bool,
    /// Size of the action space: where moves are missing, legal or not, the completing value counts in the scale (as in mctx).
    pub num_actions: usize,
}

/// What a rule adds to the logits of a node's moves: sigma(completed_q Q).
#[derive(Clone, Copy, Debug)]
pub struct Bonus {
    weight: f64,
    low: f64,
    span: f64,
    /// Of a move never tried.
    pub untried: f64,
}

impl Bonus {
    /// Of a move with value `q`, NaN if it was never tried.
    #[inline]
    pub fn of(&self, q: f64) -> f64 {
        if q.is_nan() {
            self.untried
        } else {
            self.weight * ((q - self.low) / self.span)
        }
    }
}

/// Visits of an edge, leaves in flight counted.
#[inline]
pub fn counted(edges: &Edges<'_>, place: usize) -> u32 {
    edges.visits[place] + edges.in_flight.get(place).map_or(0, |&in_flight| u32::from(in_flight))
}

/// A prior as the mixed value counts it.
#[inline]
fn clamped_prior(prior: f32) -> f64 {
    let prior = f64::from(prior);
    if prior > LEAST_PRIOR {
        prior
    } else {
        LEAST_PRIOR
    }
}

impl CompletedQ {
    /// The bonus at a node; `values` receives Q of its opened edges, NaN where one was never tried.
    pub fn at(&self, edges: &Edges<'_>, node: &Node, values: &mut [f64]) -> Bonus {
        let opened = node.opened as usize;
        let (mut total, mut most, mut visited, mut priors) = (0u32, 0u32, 0usize, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let (values, known) = (&mut values[..opened], &edges.priors[..opened]);
        for (slot, (&sum, &visits)) in values.iter_mut().zip(edges.sums.iter().zip(edges.visits)) {
            most = most.max(visits);
            total += visits;
            // 0 divided by 0, which is no number, where it was never tried.
            *slot = sum / f64::from(visits as i32);
        }
        if node.has_proven_edge {
            for (slot, link) in values.iter_mut().zip(edges.links) {
                *slot = link.proven().map_or(*slot, f64::from);
            }
        }
        if !edges.in_flight.is_empty() {
            most = (0..opened).map(|place| counted(edges, place)).max().unwrap_or(0);
        }
        for (&q, &prior) in values.iter().zip(known) {
            if !q.is_nan() {
                visited += 1;
                priors += clamped_prior(prior);
                low = if q < low { q } else { low };
                high = if q > high { q } else { high };
            }
        }
        let mut completing = node.raw;
        if self.use_mixed_value && total > 0 {
            let mut weighted = 0.0;
            for (&q, &prior) in values.iter().zip(known) {
                if !q.is_nan() {
                    weighted += clamped_prior(prior) * q / priors;
                }
            }
            let total = f64::from(total);
            completing = (node.raw + total * weighted) / (total + 1.0);
        }
        if visited < self.num_actions {
            low = if completing < low { completing } else { low };
            high = if completing > high { completing } else { high };
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
struct ImprovedPolicy {
    untried: f64,
    total: f64,
}

/// The improved policy at a node, pi' = softmax(logits + bonus), as weights P * exp(bonus - greatest): in `weights` the values of
/// the opened edges give way to those. `tail` is the prior of moves that the node does not keep.
fn improve(edges: &Edges<'_>, opened: usize, tail: f64, bonus: &Bonus, weights: &mut [f64]) -> ImprovedPolicy {
    let (tried, untried) = edges.priors.split_at(opened);
    let rest = untried.iter().fold(0.0, |sum, &prior| sum + f64::from(prior)) + tail;
    let mut most = if rest > 0.0 { bonus.untried } else { f64::NEG_INFINITY };
    for (slot, &prior) in weights.iter_mut().zip(tried) {
        *slot = bonus.of(*slot);
        most = if prior > 0.0 && *slot > most { *slot } else { most };
    }
    let mut total = 0.0;
    for (slot, &prior) in weights.iter_mut().zip(tried) {
        *slot = weigh(f64::from(prior), *slot - most);
        total += *slot;
    }
    // Where no prior is left, the weight of what is not there may be beyond all bounds: nothing times it is nothing.
    let untried = if rest > 0.0 { (bonus.untried - most).exp() } else { 0.0 };
    ImprovedPolicy { untried, total: total + rest * untried }
}

/// The place to follow inside the tree: where visits lag most behind the improved policy (section 5 of the paper), the lowest
/// action among equals. Proven losses are passed over while another move remains. `tail` is the prior of moves that the node does
/// not keep, `highest` that of its likeliest untried move. `scores` has room for all edges, and receives their scores if
/// `all_scores` are wanted.
pub fn choose(
    completed_q: &CompletedQ,
    edges: &Edges<'_>,
    node: &Node,
    tail: f64,
    highest: f32,
    all_scores: bool,
    scores: &mut [f64],
) -> usize {
    let opened = node.opened as usize;
    let bonus = completed_q.at(edges, node, scores);
    let improved = improve(edges, opened, tail, &bonus, &mut scores[..opened]);
    let visits = 1.0 + f64::from((0..opened).map(|place| counted(edges, place)).sum::<u32>());
    let all_lost = node.has_proven_edge && edges.links.iter().all(|link| link.is_loss());
    let mut best: Option<(f64, u16, usize)> = None;
    for (place, slot) in scores[..opened].iter_mut().enumerate() {
        let score = *slot / improved.total - f64::from(counted(edges, place)) / visits;
        let lost = node.has_proven_edge && edges.links[place].is_loss() && !all_lost;
        *slot = if lost { f64::NEG_INFINITY } else { score };
        let action = edges.actions[place];
        if !lost && best.is_none_or(|(most, lowest, _)| score > most || (score == most && action < lowest)) {
            best = Some((score, action, place));
        }
    }
    let untried = |prior: f32| f64::from(prior) * improved.untried / improved.total;
    if opened < edges.actions.len() {
        // Of moves never tried only the likeliest comes into question; it is looked for if it does.
        let score = untried(highest);
        if best.is_none_or(|(most, ..)| score >= most) {
            let place = likeliest(edges, opened, highest);
            if best.is_none_or(|(most, lowest, _)| score > most || edges.actions[place] < lowest) {
                best = Some((score, edges.actions[place], place));
            }
        }
    }
    if all_scores {
        (opened..edges.actions.len()).for_each(|place| scores[place] = untried(edges.priors[place]));
    }
    best.map_or(0, |(_, _, place)| place)
}

/// The place of the move from `opened` on whose prior is the `highest`, of the lowest action among equals.
#[inline]
fn likeliest(edges: &Edges<'_>, opened: usize, highest: f32) -> usize {
    let alike = (opened..edges.priors.len()).filter(|&place| edges.priors[place] == highest);
    alike.min_by_key(|&place| edges.actions[place]).unwrap_or(opened)
}

/// The improved policy over all edges of the root: the target to train a policy with. Moves that are not `allowed` get 0.
pub fn policy(completed_q: &CompletedQ, edges: &Edges<'_>, node: &Node, allowed: &[usize]) -> Vec<f64> {
    let mut bonuses = vec![f64::NAN; edges.actions.len()];
    let bonus = completed_q.at(edges, node, &mut bonuses);
    bonuses.iter_mut().for_each(|slot| *slot = bonus.of(*slot));
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
