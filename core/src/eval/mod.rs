//! What values a leaf without leaving the engine.

mod bare_king;
mod pesto;
mod pesto_attacks;
mod pesto_features;
mod pesto_pawns;
mod pesto_tables;
mod pesto_tuned;
mod pesto_weights;
mod playout;
mod quiescence;

pub use pesto::{value, Pesto, MAX_SCORE};
pub use pesto_features::Terms;
pub use pesto_weights::{Pair, Ranks, Squares, Weights, MAX_WEIGHT};
pub use playout::{playout, PlayoutPolicy};
pub use quiescence::{Quiescence, Quiet, MATE};

use crate::knowledge::Knowledge;
use crate::random::{Purpose, Random};
use crate::world::World;

/// Who values a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A random playout; one cut after `max_depth` moves scores 0.
    Playout {
        /// How moves are drawn.
        policy: PlayoutPolicy,
        /// Where it is cut; None plays to the end.
        max_depth: Option<u32>,
    },
    /// Always 0: searches that only look for ends.
    Zero,
    /// The classical evaluation (`Knowledge`), of games that have one.
    Classical,
    /// An evaluator outside. With `max_depth`, a playout comes first, and where it is cut is what the evaluator sees.
    Outside {
        /// How moves are drawn.
        policy: PlayoutPolicy,
        /// Moves of the playout before the evaluator is asked; 0 asks at the leaf itself.
        max_depth: u32,
    },
}

impl Leaf {
    /// Values `state`, changing it: a result for player 0, or None where the evaluator outside must say (of the state left behind).
    #[inline]
    pub fn value<W: World>(&self, state: &mut W::State, simulation_key: u64, knowledge: Option<&Knowledge>) -> Option<f64> {
        let mut random = Random::new(simulation_key, Purpose::Playout);
        match *self {
            Self::Playout { policy, max_depth } => {
                Some(playout::<W>(state, policy, &mut random, max_depth.unwrap_or(u32::MAX)).map_or(0.0, f64::from))
            }
            Self::Zero => Some(0.0),
            Self::Classical => {
                let value = knowledge.zip(W::classical(state)).map_or(0.0, |(knowledge, classical)| classical.value(knowledge));
                Some(if W::to_play(state) == 0 { value } else { -value })
            }
            Self::Outside { max_depth: 0, .. } => None,
            Self::Outside { policy, max_depth } => playout::<W>(state, policy, &mut random, max_depth).map(f64::from),
        }
    }
}
