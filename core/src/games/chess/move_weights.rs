//! The weights of `MoveScores`, in thousandths.

use super::move_features::FEATURES;

/// By feature.
pub(super) const LEARNED: [i16; FEATURES] = [0; FEATURES];
