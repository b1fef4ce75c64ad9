//! Move scores: a weighted sum of features that scales priors, learned from searches.

use super::move_category::Categorized;
use super::move_features::{Surroundings, FEATURES};
use super::move_weights::LEARNED;
use crate::error::Error;
use crate::games::chess::Chess;

/// Upper bound of the size of weights, in thousandths.
const MOST: i32 = 20_000;

/// A weight for each feature of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveScores {
    weights: Vec<f32>,
}

impl MoveScores {
    /// Weights in thousandths, one for each feature.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the number of weights and their bounds.
    pub fn new(weights: &[i32]) -> Result<Self, Error> {
        if weights.len() != FEATURES {
            return Err(Error::InvalidArgument(format!("move_scores has {} weights: it must have {FEATURES}", weights.len())));
        }
        if let Some(weight) = weights.iter().find(|weight| !(-MOST..=MOST).contains(*weight)) {
            return Err(Error::InvalidArgument(format!("weights of move_scores must be from -{MOST} to {MOST}, not {weight}")));
        }
        Ok(Self { weights: weights.iter().map(|&weight| weight as f32 / 1000.0).collect() })
    }

    /// Returns the weights in thousandths.
    #[must_use]
    pub fn weights(&self) -> Vec<i32> {
        self.weights.iter().map(|weight| (weight * 1000.0).round() as i32).collect()
    }

    /// Calls `visit` with the factor by which the prior of each move is multiplied, `exp(score)`.
    pub fn factors(&self, game: &Chess, moves: &[Categorized], mut visit: impl FnMut(f64)) {
        let surroundings = Surroundings::new(game);
        for one in moves {
            let mut score = 0.0_f32;
            surroundings.features(one, |feature, share| score += share * self.weights[feature]);
            visit(f64::from(score).exp());
        }
    }
}

impl Default for MoveScores {
    /// The learned weights.
    fn default() -> Self {
        Self { weights: LEARNED.iter().map(|&weight| f32::from(weight) / 1000.0).collect() }
    }
}
