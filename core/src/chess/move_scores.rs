//! Move scores: a log-linear model of move features, learned from searches, that scales the priors.

use super::move_category::Categorized;
use super::move_features::{MoveFeatureContext, FEATURES};
use super::move_weights::LEARNED;
use crate::error::Error;
use crate::games::chess::Chess;

/// Upper bound of |weight|, in thousandths.
const MAX_WEIGHT: i32 = 20_000;

/// One weight per move feature.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveScores {
    weights: Vec<f32>,
}

impl MoveScores {
    /// Creates scores from weights in thousandths, one per feature.
    ///
    /// # Errors
    /// `Error::InvalidArgument` for a wrong number of weights or a weight out of range.
    pub fn new(weights: &[i32]) -> Result<Self, Error> {
        if weights.len() != FEATURES {
            return Err(Error::InvalidArgument(format!("move_scores has {} weights: it must have {FEATURES}", weights.len())));
        }
        if let Some(weight) = weights.iter().find(|weight| !(-MAX_WEIGHT..=MAX_WEIGHT).contains(*weight)) {
            return Err(Error::InvalidArgument(format!("weights of move_scores must be from -{MAX_WEIGHT} to {MAX_WEIGHT}, not {weight}")));
        }
        Ok(Self { weights: weights.iter().map(|&weight| weight as f32 / 1000.0).collect() })
    }

    /// Returns the weights in thousandths.
    #[must_use]
    pub fn weights(&self) -> Vec<i32> {
        self.weights.iter().map(|weight| (weight * 1000.0).round() as i32).collect()
    }

    /// Calls `visit` with the prior factor of each move, `exp(score)`.
    pub fn factors(&self, game: &Chess, moves: &[Categorized], mut visit: impl FnMut(f64)) {
        let context = MoveFeatureContext::new(game);
        for one in moves {
            let mut score = 0.0_f32;
            context.features(one, |feature, share| score += share * self.weights[feature]);
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
