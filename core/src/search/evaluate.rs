//! Evaluation of leaves inside the engine.

use crate::games::analysis::LeafAnalysis;
use crate::games::{Action, Playout, World};
use crate::runtime::random::{Purpose, Random};
use crate::search::config::WorldConfig;

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

impl PlayoutPolicy {
    /// The policies by name.
    pub const NAMES: [(Option<&'static str>, Self); 2] = [(Some("random"), Self::Random), (Some("decisive"), Self::Decisive)];
}

/// The value of a leaf by the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafValue {
    /// The value for player 0; if it is not complete, the rewards of a playout that was cut off.
    pub value: f64,
    /// The discount of the state as it is left.
    pub weight: f64,
    /// Whether it is the complete value. Otherwise the external evaluator values the state as it is left: after a playout of at most
    /// `max_depth` moves.
    pub is_complete: bool,
}

impl LeafValue {
    #[inline(always)]
    fn complete(value: f64) -> Self {
        Self { value, weight: 1.0, is_complete: true }
    }
}

impl<W: World> WorldConfig<W> {
    /// Evaluates the leaf `state`, changing it.
    #[inline(always)]
    pub(crate) fn evaluate(&self, state: &mut W::State, simulation_key: u64) -> LeafValue {
        if self.leaf == LeafKind::Zero {
            return LeafValue::complete(0.0);
        }
        self.evaluate_position(state, simulation_key)
    }

    #[inline(never)]
    fn evaluate_position(&self, state: &mut W::State, simulation_key: u64) -> LeafValue {
        let known = LeafValue::complete;
        let mut random = Random::new(simulation_key, Purpose::Playout);
        let mut weight = 1.0;
        let mut playout = |max_depth| match self.discount {
            1.0 => playout::<W>(state, self.playout_policy, &mut random, max_depth),
            discount => discounted::<W>(state, self.playout_policy, &mut random, max_depth, discount, &mut weight),
        };
        match self.leaf {
            // One that `max_depth` cuts off scores 0.
            LeafKind::Playout => {
                let played = playout(self.max_depth.unwrap_or(u32::MAX));
                known(played.rewards + weight * f64::from(played.result.unwrap_or(0)))
            }
            LeafKind::Zero => unreachable!("above"),
            LeafKind::Static => {
                let value = self.analysis.as_deref().map_or(0.0, |analysis| analysis.value(state));
                known(if W::to_play(state) == 0 { value } else { -value })
            }
            LeafKind::External => match self.max_depth {
                Some(most) if most > 0 => {
                    let played = playout(most);
                    let value = played.rewards + weight * f64::from(played.result.unwrap_or(0));
                    LeafValue { value, weight, is_complete: played.result.is_some() }
                }
                _ => LeafValue { value: 0.0, weight, is_complete: false },
            },
        }
    }
}

/// Plays to the end, or for `max_depth` moves (outcomes of chance nodes are none). `state` is the last position.
#[inline]
pub fn playout<W: World>(state: &mut W::State, policy: PlayoutPolicy, random: &mut Random, max_depth: u32) -> Playout {
    match policy {
        PlayoutPolicy::Random => W::playout(state, random, max_depth),
        PlayoutPolicy::Decisive => decisive::<W>(state, random, max_depth),
    }
}

fn decisive<W: World>(state: &mut W::State, random: &mut Random, max_depth: u32) -> Playout {
    discounted::<W>(state, PlayoutPolicy::Decisive, random, max_depth, 1.0, &mut 1.0)
}

/// `playout` with a discount per move, by which rewards are multiplied; `weight` becomes that of the last position, by which its
/// value must be. Plays the same moves as `World::playout`.
#[inline(never)]
fn discounted<W: World>(
    state: &mut W::State,
    policy: PlayoutPolicy,
    random: &mut Random,
    max_depth: u32,
    discount: f64,
    weight: &mut f64,
) -> Playout {
    let mut legal: Vec<Action> = Vec::new();
    let mut after = state.clone();
    let mut rewards = W::play_outcomes(state, random);
    for _ in 0..max_depth {
        if let Some(result) = W::outcome(state) {
            return Playout { result: Some(result), rewards };
        }
        W::legal_actions(state, &mut legal);
        let won = match policy {
            PlayoutPolicy::Random => None,
            PlayoutPolicy::Decisive => {
                let winning = if W::to_play(state) == 0 { 1 } else { -1 };
                legal.iter().copied().find(|&action| {
                    after.clone_from(state);
                    W::play(&mut after, action);
                    W::outcome(&after) == Some(winning)
                })
            }
        };
        let action = won.unwrap_or_else(|| legal[random.choose(legal.len() as u32) as usize]);
        W::play(state, action);
        if W::HAS_REWARDS {
            rewards += *weight * W::reward(state);
        }
        *weight *= discount;
        if W::HAS_CHANCE {
            rewards += *weight * W::play_outcomes(state, random);
        }
    }
    Playout { result: W::outcome(state), rewards }
}
