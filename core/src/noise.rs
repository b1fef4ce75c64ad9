//! Dirichlet noise at the root (Silver et al. 2017; seed 0): over the legal moves alone, mixed into clean priors that are kept.

use std::cell::RefCell;

use crate::random::{fold, Purpose, Random};
use crate::tree::{Tree, ROOT};

/// How much noise, and of what shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Concentration of each move, or of all of them together.
    pub alpha: f64,
    /// `alpha` is spread over the legal moves.
    pub spread: bool,
    /// Its weight against the prior.
    pub epsilon: f64,
}

thread_local! {
    /// Actions and draws of the last tree: thousands of numbers each, which the allocator would fetch from the system for every tree.
    static ROOM: RefCell<(Vec<u16>, Vec<f64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl Noise {
    /// Mixes fresh noise into the clean priors of the root.
    pub fn add(&self, tree: &mut Tree, tree_key: u64, simulations: u64) {
        remove(tree);
        ROOM.with_borrow_mut(|(actions, draws)| {
            actions.clear();
            actions.extend_from_slice(tree.edges(tree.node(ROOT)).actions);
            let mut random = Random::new(fold(tree_key, simulations), Purpose::Noise);
            let alpha = if self.spread { self.alpha / actions.len() as f64 } else { self.alpha };
            dirichlet(alpha, actions.len(), &mut random, draws);
            let priors = tree.priors_mut(ROOT);
            let clean: Vec<(u16, f32)> = actions.iter().copied().zip(priors.iter().copied()).collect();
            let mix = |prior: f32, draw: f64| ((1.0 - self.epsilon) * f64::from(prior) + self.epsilon * draw) as f32;
            // Drawn in the order of actions, which no search changes, so that a kept tree and a fresh one draw alike.
            if actions.is_sorted() {
                priors.iter_mut().zip(draws.iter()).for_each(|(prior, &draw)| *prior = mix(*prior, draw));
            } else {
                let mut order: Vec<usize> = (0..actions.len()).collect();
                order.sort_by_key(|&place| actions[place]);
                order.iter().zip(draws.iter()).for_each(|(&place, &draw)| priors[place] = mix(priors[place], draw));
            }
            tree.clean_priors = clean;
        });
    }
}

/// Puts the clean priors back.
pub fn remove(tree: &mut Tree) {
    let mut clean = std::mem::take(&mut tree.clean_priors);
    if clean.is_empty() {
        return;
    }
    // Moves have changed places since, and there may be thousands.
    clean.sort_unstable_by_key(|&(action, _)| action);
    let actions = tree.edges(tree.node(ROOT)).actions.to_vec();
    for (prior, action) in tree.priors_mut(ROOT).iter_mut().zip(actions) {
        if let Ok(place) = clean.binary_search_by_key(&action, |&(action, _)| action) {
            *prior = clean[place].1;
        }
    }
}

/// From this concentration on no gamma variate is too small for a float: the least uniform number is 2^-53, and 1/alpha its power.
const NONE_VANISHES: f64 = 0.1;

/// Draws from the symmetric Dirichlet distribution into `weights`: gamma variates over their sum, in logarithms where some would
/// vanish.
pub fn dirichlet(alpha: f64, count: usize, random: &mut Random, weights: &mut Vec<f64>) {
    weights.clear();
    if alpha >= NONE_VANISHES {
        weights.extend((0..count).map(|_| gamma_variate(alpha, random)));
    } else {
        weights.extend((0..count).map(|_| below_one(alpha, random).1));
        let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - most).exp());
    }
    let total = weights.iter().fold(0.0, |total, weight| total + weight);
    weights.iter_mut().for_each(|weight| *weight /= total);
}

/// A gamma variate of shape `alpha` (Marsaglia & Tsang 2000).
fn gamma_variate(alpha: f64, random: &mut Random) -> f64 {
    if alpha < 1.0 {
        return below_one(alpha, random).0;
    }
    let d = alpha - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = 1.0 - random.uniform();
        if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// A gamma variate of a shape below 1, the usual ones, and its logarithm (Ahrens & Dieter 1974, GS): mostly one logarithm and one
/// exponential, and action spaces may be large.
fn below_one(alpha: f64, random: &mut Random) -> (f64, f64) {
    let b = 1.0 + alpha / std::f64::consts::E;
    loop {
        let p = b * (1.0 - random.uniform());
        let u = 1.0 - random.uniform();
        if p <= 1.0 {
            let log = p.ln() / alpha;
            let x = log.exp();
            // 1 - x is never above exp(-x), and most are decided by it.
            if u <= 1.0 - x || u.ln() <= -x {
                return (x, log);
            }
        } else {
            let x = -((b - p) / alpha).ln();
            let log = x.ln();
            if u.ln() <= (alpha - 1.0) * log {
                return (x, log);
            }
        }
    }
}

/// A standard normal number (Box & Muller 1958; the second of the pair is not used, to keep the stream simple).
fn normal(random: &mut Random) -> f64 {
    let u = 1.0 - random.uniform();
    let v = random.uniform();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_a_distribution() {
        let mut random = Random::new(5, Purpose::Noise);
        for alpha in [0.003, 0.03, 0.3, 1.0, 10.0] {
            let mut draw = Vec::new();
            dirichlet(alpha, 30, &mut random, &mut draw);
            assert!((draw.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(draw.iter().all(|&weight| (0.0..=1.0).contains(&weight)), "{alpha}: {draw:?}");
        }
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        // Mean 1/k and variance (k - 1) / (k^2 (k alpha + 1)) of each component.
        let mut random = Random::new(6, Purpose::Noise);
        for (alpha, count) in [(0.03f64, 3usize), (0.3, 7), (0.9, 5), (1.0, 4), (5.0, 3)] {
            let mut draw = Vec::new();
            let mut first = || {
                dirichlet(alpha, count, &mut random, &mut draw);
                draw[0]
            };
            let draws: Vec<f64> = (0..20_000).map(|_| first()).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            let k = count as f64;
            assert!((mean - 1.0 / k).abs() < 0.01, "{alpha} {mean}");
            let expected = (k - 1.0) / (k * k * (k * alpha + 1.0));
            assert!((variance / expected - 1.0).abs() < 0.06, "{alpha} {variance} {expected}");
        }
    }
}
