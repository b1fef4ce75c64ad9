//! The source of positions: a compiled game, whose states the engine holds, or an external world (a game in Python, a learned
//! model), whose states live outside under slots and are stepped once per batch.

use super::analysis::{Analyzed, LeafAnalysis, NoAnalysis};
use super::{Action, Playout};
use crate::runtime::random::Random;

/// The environment that a search descends through.
pub trait World: Send + Sync + 'static {
    /// The state of a position during a descent.
    type State: Clone + std::fmt::Debug + Send + Sync + 'static;
    /// The leaf-analysis hook.
    type Analysis: LeafAnalysis<Self::State>;
    /// Whether positions live outside the engine, under slots.
    const HAS_SLOTS: bool;
    /// Whether positions are stepped before they are evaluated (games in Python); a learned model does both at once.
    const NEEDS_STEP: bool = false;
    /// Whether positions are hidden states of a learned model.
    const IS_LATENT: bool = Self::HAS_SLOTS && !Self::NEEDS_STEP;
    /// Upper bound of the legal actions of a position; None: the size of the action space.
    const MAX_LEGAL: Option<usize> = None;
    /// The number of players of a compiled game.
    const NUM_PLAYERS: usize = 2;
    /// Whether moves of a compiled game have rewards, by which alone it is scored.
    const HAS_REWARDS: bool = false;
    /// Whether there may be chance nodes.
    const HAS_CHANCE: bool = false;
    /// Upper bound of the outcomes of a chance node of a compiled game.
    const MAX_OUTCOMES: usize = 0;

    // Compiled games override these defaults; the engine does not call them in worlds with slots.

    /// Plays a legal action.
    #[inline]
    fn play(_state: &mut Self::State, _action: Action) {}
    /// Returns the player to move, `CHANCE` at a chance node.
    #[inline]
    fn to_play(_state: &Self::State) -> u8 {
        0
    }
    /// Replaces `outcomes` by the outcomes of a chance node in the order of `legal_actions`, with their probabilities.
    #[inline]
    fn chance_outcomes(_state: &Self::State, outcomes: &mut Vec<(Action, f64)>) {
        outcomes.clear();
    }
    /// Returns player 0's reward for the move, or outcome, that led to the position.
    #[inline]
    fn reward(_state: &Self::State) -> f64 {
        0.0
    }
    /// Plays outcomes by their probabilities up to a decision or the end; returns the sum of player 0's rewards.
    #[inline]
    fn play_outcomes(_state: &mut Self::State, _random: &mut Random) -> f64 {
        0.0
    }
    /// Returns the result for player 0 if the game is over below the root of a search.
    #[inline]
    fn outcome(_state: &Self::State) -> Option<i8> {
        None
    }
    /// Replaces `actions` by the legal actions.
    #[inline]
    fn legal_actions(_state: &Self::State, actions: &mut Vec<Action>) {
        actions.clear();
    }
    /// Plays uniformly random moves and outcomes by their probabilities, as `Game::playout`.
    #[inline]
    fn playout(_state: &mut Self::State, _random: &mut Random, _max_depth: u32) -> Playout {
        None.into()
    }
}

/// The world of a compiled game.
#[derive(Debug)]
pub struct Compiled<G>(std::marker::PhantomData<fn() -> G>);

impl<G: Analyzed> World for Compiled<G> {
    type State = G;
    type Analysis = G::Analysis;
    const HAS_SLOTS: bool = false;
    const IS_LATENT: bool = false;
    const MAX_LEGAL: Option<usize> = Some(G::MAX_LEGAL);
    const NUM_PLAYERS: usize = G::NUM_PLAYERS;
    const HAS_REWARDS: bool = G::HAS_REWARDS;
    const HAS_CHANCE: bool = G::HAS_CHANCE;
    const MAX_OUTCOMES: usize = G::MAX_OUTCOMES;

    #[inline]
    fn play(state: &mut G, action: Action) {
        state.play(action);
    }
    #[inline]
    fn to_play(state: &G) -> u8 {
        state.to_play()
    }
    #[inline]
    fn chance_outcomes(state: &G, outcomes: &mut Vec<(Action, f64)>) {
        state.chance_outcomes(outcomes);
    }
    #[inline]
    fn reward(state: &G) -> f64 {
        state.reward()
    }
    #[inline]
    fn play_outcomes(state: &mut G, random: &mut Random) -> f64 {
        state.play_outcomes(random)
    }
    #[inline]
    fn outcome(state: &G) -> Option<i8> {
        state.outcome_in_search()
    }
    #[inline]
    fn legal_actions(state: &G, actions: &mut Vec<Action>) {
        state.legal_actions(actions);
    }
    #[inline]
    fn playout(state: &mut G, random: &mut Random, max_depth: u32) -> Playout {
        state.playout(random, max_depth)
    }
}

/// The world of a game written in Python: the engine knows positions by slot alone.
#[derive(Debug)]
pub struct PythonGame;

impl World for PythonGame {
    type State = ();
    type Analysis = NoAnalysis;
    const HAS_SLOTS: bool = true;
    const NEEDS_STEP: bool = true;
    const HAS_CHANCE: bool = true;
}

/// The world of a learned model: positions are hidden states under slots, without rules.
#[derive(Debug)]
pub struct Latent;

impl World for Latent {
    type State = ();
    type Analysis = NoAnalysis;
    const HAS_SLOTS: bool = true;
}
