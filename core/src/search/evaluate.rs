//! What values a leaf without leaving the engine.

use crate::games::analysis::Knowledge;
use crate::games::{Action, World};
use crate::runtime::random::{Purpose, Random};

/// Who values a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafEvaluator {
    /// A random playout; one cut after `max_depth` moves scores 0.
    Playout {
        /// How moves are drawn.
        policy: PlayoutPolicy,
        /// Where it is cut; None plays to the end.
        max_depth: Option<u32>,
    },
    /// Always 0: searches that only look for ends.
    Zero,
    /// The analysis evaluation (`Knowledge`), of games that have one.
    Static,
    /// An evaluator outside. With `max_depth`, a playout comes first, and where it is cut is what the evaluator sees.
    External {
        /// How moves are drawn.
        policy: PlayoutPolicy,
        /// Moves of the playout before the evaluator is asked; 0 asks at the leaf itself.
        max_depth: u32,
    },
}

impl LeafEvaluator {
    /// Values `state`, changing it: a result for player 0, or None where the evaluator outside must say (of the state left behind).
    #[inline]
    pub fn value<W: World>(&self, state: &mut W::State, simulation_key: u64, knowledge: Option<&Knowledge>) -> Option<f64> {
        let mut random = Random::new(simulation_key, Purpose::Playout);
        match *self {
            Self::Playout { policy, max_depth } => {
                Some(playout::<W>(state, policy, &mut random, max_depth.unwrap_or(u32::MAX)).map_or(0.0, f64::from))
            }
            Self::Zero => Some(0.0),
            Self::Static => {
                let value = knowledge.zip(W::analysis(state)).map_or(0.0, |(knowledge, analysis)| analysis.value(knowledge));
                Some(if W::to_play(state) == 0 { value } else { -value })
            }
            Self::External { max_depth: 0, .. } => None,
            Self::External { policy, max_depth } => playout::<W>(state, policy, &mut random, max_depth).map(f64::from),
        }
    }
}

/// How a playout draws its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayoutPolicy {
    /// Every legal move with the same chance.
    Random,
    /// A move that wins at once if there is one, else at random (decisive moves, Teytaud & Teytaud 2010).
    Decisive,
}

/// Plays to the end: its result for player 0; or None where `max_depth` moves did not reach it, with `state` the position of the cut.
#[inline]
pub fn playout<W: World>(state: &mut W::State, policy: PlayoutPolicy, random: &mut Random, max_depth: u32) -> Option<i8> {
    match policy {
        PlayoutPolicy::Random => W::playout(state, random, max_depth),
        PlayoutPolicy::Decisive => decisive::<W>(state, random, max_depth),
    }
}

fn decisive<W: World>(state: &mut W::State, random: &mut Random, max_depth: u32) -> Option<i8> {
    let mut legal: Vec<Action> = Vec::new();
    let mut after = state.clone();
    for _ in 0..max_depth {
        if let Some(result) = W::outcome(state) {
            return Some(result);
        }
        W::legal_actions(state, &mut legal);
        let winning = if W::to_play(state) == 0 { 1 } else { -1 };
        let won = legal.iter().copied().find(|&action| {
            after.clone_from(state);
            W::play(&mut after, action);
            W::outcome(&after) == Some(winning)
        });
        let action = won.unwrap_or_else(|| legal[random.choose(legal.len() as u32) as usize]);
        W::play(state, action);
    }
    W::outcome(state)
}
