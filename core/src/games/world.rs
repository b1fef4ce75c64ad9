//! Where positions come from: a compiled game, whose states the engine holds and steps itself, or an external world
//! (a game in Python, a history_table model), whose states live outside in slots and are stepped once per batch.

use crate::games::analysis::LeafAnalysis;
use crate::games::{Action, Game};
use crate::runtime::random::Random;

/// A kind of position the engine can walk through.
pub trait World: Send + Sync + 'static {
    /// What the engine keeps of a position while it descends.
    type State: Clone + std::fmt::Debug + Send + Sync + 'static;
    /// Whether positions live outside, under slots.
    const EXTERNAL: bool;
    /// Whether the outside must be asked what a position is before it can be evaluated; a history_table model says both at once.
    const STEPPED: bool = false;

    // Worlds outside are never asked any of these.

    /// Plays a legal action.
    #[inline]
    fn play(_state: &mut Self::State, _action: Action) {}
    /// Who moves.
    #[inline]
    fn to_play(_state: &Self::State) -> u8 {
        0
    }
    /// The result for player 0, where the game is over below the root of a search.
    #[inline]
    fn outcome(_state: &Self::State) -> Option<i8> {
        None
    }
    /// Legal actions.
    #[inline]
    fn legal_actions(_state: &Self::State, actions: &mut Vec<Action>) {
        actions.clear();
    }
    /// What is known of the game beside its rules.
    #[inline]
    fn analysis(_state: &Self::State) -> Option<&dyn LeafAnalysis> {
        None
    }
    /// Random play to the end, or None if `max_depth` moves did not reach it.
    #[inline]
    fn playout(_state: &mut Self::State, _random: &mut Random, _max_depth: u32) -> Option<i8> {
        None
    }
}

/// The world of a compiled game.
#[derive(Debug)]
pub struct Compiled<G>(std::marker::PhantomData<fn() -> G>);

impl<G: Game + LeafAnalysis> World for Compiled<G> {
    type State = G;
    const EXTERNAL: bool = false;

    #[inline]
    fn play(state: &mut G, action: Action) {
        state.play(action);
    }
    #[inline]
    fn to_play(state: &G) -> u8 {
        state.to_play()
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
    fn analysis(state: &G) -> Option<&dyn LeafAnalysis> {
        Some(state)
    }
    #[inline]
    fn playout(state: &mut G, random: &mut Random, max_depth: u32) -> Option<i8> {
        state.playout(random, max_depth)
    }
}

/// A world outside, stepped there: games written in Python. The engine knows a position by its slot alone.
#[derive(Debug)]
pub struct External;

impl World for External {
    type State = ();
    const EXTERNAL: bool = true;
    const STEPPED: bool = true;
}

/// The world of a history_table model: positions are hidden states outside, under slots, and nothing is known of any rules.
#[derive(Debug)]
pub struct Latent;

impl World for Latent {
    type State = ();
    const EXTERNAL: bool = true;
}
