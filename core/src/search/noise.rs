//! Dirichlet noise at the root (Silver et al. 2017; seed 0): over the legal moves alone, mixed into clean priors that are kept.

use std::cell::RefCell;

use crate::runtime::dirichlet::dirichlet;
use crate::runtime::random::{fold, Purpose, Random};
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
    static BUFFERS: RefCell<(Vec<u16>, Vec<f64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl Noise {
    /// Mixes fresh noise into the clean priors of the root.
    pub fn add(&self, tree: &mut Tree, tree_key: u64, simulations: u64) {
        remove(tree);
        BUFFERS.with_borrow_mut(|(actions, draws)| {
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
