//! Evaluation of leaves inside the engine.

use crate::games::analysis::LeafAnalysis;
use crate::games::{Action, World};
use crate::runtime::random::{Purpose, Random};

/// The kind of leaf evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// A random playout.
    Playout,
    /// Always 0.
    Zero,
    /// The static evaluation of the game's analysis.
    Static,
    /// An evaluator outside the engine.
    External,
}

impl LeafKind {
    /// The kinds by name.
    pub const NAMES: [(Option<&'static str>, Self); 4] =
        [(Some("playout"), Self::Playout), (Some("zero"), Self::Zero), (Some("static"), Self::Static), (Some("external"), Self::External)];
}

/// How a playout draws its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayoutPolicy {
    /// Uniformly over the legal moves.
    Random,
    /// A winning move if there is one, else uniformly (decisive moves, Teytaud & Teytaud 2010).
    Decisive,
}

/// How leaves are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafEvaluator {
    /// A random playout; one that `max_depth` cuts off scores 0.
    Playout { policy: PlayoutPolicy, max_depth: u32 },
    /// Always 0: searches that only look for terminal positions.
    Zero,
    /// The static evaluation of the game's analysis.
    Static,
    /// An evaluator outside the engine, which sees the position after a playout of at most `max_depth` moves.
    External { policy: PlayoutPolicy, max_depth: u32 },
}

impl LeafEvaluator {
    /// Combines the settings of a search.
    pub(crate) fn new(kind: LeafKind, policy: PlayoutPolicy, max_depth: Option<u32>) -> Self {
        match kind {
            LeafKind::Playout => Self::Playout { policy, max_depth: max_depth.unwrap_or(u32::MAX) },
            LeafKind::Zero => Self::Zero,
            LeafKind::Static => Self::Static,
            LeafKind::External => Self::External { policy, max_depth: max_depth.unwrap_or(0) },
        }
    }

    /// Evaluates `state`, changing it. Returns the value for player 0, or None if the external evaluator must value `state` as it
    /// is left.
    #[inline]
    pub(crate) fn evaluate<W: World>(&self, state: &mut W::State, simulation_key: u64, analysis: Option<&W::Analysis>) -> Option<f64> {
        let mut random = Random::new(simulation_key, Purpose::Playout);
        match *self {
            Self::Playout { policy, max_depth } => Some(playout::<W>(state, policy, &mut random, max_depth).map_or(0.0, f64::from)),
            Self::Zero => Some(0.0),
            Self::Static => {
                let value = analysis.map_or(0.0, |analysis| analysis.value(state));
                Some(if W::to_play(state) == 0 { value } else { -value })
            }
            Self::External { max_depth: 0, .. } => None,
            Self::External { policy, max_depth } => playout::<W>(state, policy, &mut random, max_depth).map(f64::from),
        }
    }
}

/// Plays to the end; returns the result for player 0, or None if `max_depth` moves did not reach it. `state` is the last position.
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
