//! Dirichlet noise at the root (Silver et al. 2017), mixed into the priors of the legal moves. The clean priors are kept.

use std::cell::RefCell;

use crate::error::Error;
use crate::runtime::dirichlet::dirichlet;
use crate::runtime::random::{fold, Purpose, Random};
use crate::search::root_state::RootState;
use crate::tree::{Tree, ROOT};

/// Weight and shape of the noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Concentration per move, or with `is_total` of all moves together.
    pub alpha: f64,
    /// Whether `alpha` is divided by the number of legal moves.
    pub is_total: bool,
    /// Weight of the noise against the prior.
    pub epsilon: f64,
}

thread_local! {
    /// Actions and draws: thousands of numbers each, reused so that no tree allocates them.
    static BUFFERS: RefCell<(Vec<u16>, Vec<f64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl Noise {
    /// Checks the parameters.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { alpha, epsilon, .. } = *self;
        if alpha.is_finite() && alpha > 0.0 && (0.0..=1.0).contains(&epsilon) {
            return Ok(());
        }
        let text = format!("noise needs alpha above 0 and epsilon from 0 to 1, not alpha {alpha} and epsilon {epsilon}");
        Err(Error::InvalidArgument(text))
    }

    /// Returns the column of a saved search; it is empty without noise.
    pub(crate) fn to_column(noise: Option<Self>) -> Vec<f64> {
        noise.map_or_else(Vec::new, |Self { alpha, is_total, epsilon }| vec![alpha, f64::from(u8::from(is_total)), epsilon])
    }

    /// Reads the column of a saved search.
    pub(crate) fn from_column(column: &[f64]) -> Result<Option<Self>, Error> {
        let noise = match *column {
            [] => return Ok(None),
            [alpha, is_total, epsilon] => Self { alpha, is_total: is_total != 0.0, epsilon },
            _ => return Err(Error::InvalidArgument(format!("noise has 3 numbers, not {}", column.len()))),
        };
        noise.check().map(|()| Some(noise))
    }

    /// Mixes fresh noise into the clean priors of the root.
    pub(crate) fn add(&self, tree: &mut Tree, root_state: &mut RootState, tree_key: u64, simulations: u64) {
        remove(tree, root_state);
        BUFFERS.with_borrow_mut(|(actions, draws)| {
            actions.clear();
            actions.extend_from_slice(tree.edges(tree.node(ROOT)).actions);
            let mut random = Random::new(fold(tree_key, simulations), Purpose::Noise);
            let alpha = if self.is_total { self.alpha / actions.len() as f64 } else { self.alpha };
            dirichlet(alpha, actions.len(), &mut random, draws);
            let priors = tree.priors_mut(ROOT);
            let clean: Vec<(u16, f32)> = actions.iter().copied().zip(priors.iter().copied()).collect();
            let mix = |prior: f32, draw: f64| ((1.0 - self.epsilon) * f64::from(prior) + self.epsilon * draw) as f32;
            // In the order of actions, which no search changes, so that reused and fresh trees draw the same.
            if actions.is_sorted() {
                priors.iter_mut().zip(draws.iter()).for_each(|(prior, &draw)| *prior = mix(*prior, draw));
            } else {
                let mut order: Vec<usize> = (0..actions.len()).collect();
                order.sort_by_key(|&place| actions[place]);
                order.iter().zip(draws.iter()).for_each(|(&place, &draw)| priors[place] = mix(priors[place], draw));
            }
            root_state.clean_priors = clean;
        });
    }
}

/// Restores the clean priors.
pub(crate) fn remove(tree: &mut Tree, root_state: &mut RootState) {
    let mut clean = std::mem::take(&mut root_state.clean_priors);
    if clean.is_empty() {
        return;
    }
    // Edges may have changed places since; a search by action, as there may be thousands.
    clean.sort_unstable_by_key(|&(action, _)| action);
    let actions = tree.edges(tree.node(ROOT)).actions.to_vec();
    for (prior, action) in tree.priors_mut(ROOT).iter_mut().zip(actions) {
        if let Ok(place) = clean.binary_search_by_key(&action, |&(action, _)| action) {
            *prior = clean[place].1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_of_a_saved_search_restores_the_noise() {
        for is_total in [false, true] {
            let noise = Noise { alpha: 0.3, is_total, epsilon: 0.25 };
            assert_eq!(Noise::from_column(&Noise::to_column(Some(noise))), Ok(Some(noise)));
        }
        assert_eq!(Noise::from_column(&Noise::to_column(None)), Ok(None));
        for column in [&[0.3, 0.0][..], &[0.0, 0.0, 0.25], &[0.3, 0.0, 1.5], &[f64::NAN, 0.0, 0.25]] {
            assert!(matches!(Noise::from_column(column), Err(Error::InvalidArgument(_))));
        }
    }
}
