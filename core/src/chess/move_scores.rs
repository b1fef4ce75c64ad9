//! How promising a move looks before it is tried: a sum of weights of its features, history_table from searches.

use super::move_category::Categorized;
use super::move_features::{Surroundings, FEATURES};
use super::move_weights::LEARNED;
use crate::error::Error;
use crate::games::chess::Chess;

/// No weight is further from 0, in thousandths.
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
    /// `Error::InvalidArgument` says how many weights there must be, and within which bounds.
    pub fn new(weights: &[i32]) -> Result<Self, Error> {
        if weights.len() != FEATURES {
            return Err(Error::InvalidArgument(format!("move_scores has {} weights: it must have {FEATURES}", weights.len())));
        }
        if let Some(weight) = weights.iter().find(|weight| !(-MOST..=MOST).contains(*weight)) {
            return Err(Error::InvalidArgument(format!("weights of move_scores must be from -{MOST} to {MOST}, not {weight}")));
        }
        Ok(Self { weights: weights.iter().map(|&weight| weight as f32 / 1000.0).collect() })
    }

    /// The weights in thousandths.
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
    /// The weights that were history_table.
    fn default() -> Self {
        Self { weights: LEARNED.iter().map(|&weight| f32::from(weight) / 1000.0).collect() }
    }
}
