//! Where positions come from: a compiled game, whose states the engine holds and steps itself, or an external world
//! (a game in Python, a learned model), whose states live outside in slots and are stepped once per batch.

use crate::game::{Action, Game};
use crate::random::Random;

/// A kind of position the engine can walk through.
pub trait World: Send + Sync + 'static {
    /// What the engine keeps of a position while it descends.
    type State: Clone + std::fmt::Debug + Send + Sync;
    /// Whether positions live outside and `step` must be asked for them.
    const EXTERNAL: bool;

    /// Plays a legal action.
    fn play(state: &mut Self::State, action: Action);
    /// Who moves.
    fn to_play(state: &Self::State) -> u8;
    /// The result for player 0, where the game is over below the root of a search.
    fn outcome(state: &Self::State) -> Option<i8>;
    /// Legal actions.
    fn legal_actions(state: &Self::State, actions: &mut Vec<Action>);
    /// Random play to the end, or None if `max_depth` moves did not reach it.
    fn playout(state: &mut Self::State, random: &mut Random, max_depth: u32) -> Option<i8>;
}

/// The world of a compiled game.
#[derive(Debug)]
pub struct Compiled<G>(std::marker::PhantomData<fn() -> G>);

impl<G: Game> World for Compiled<G> {
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
    fn playout(state: &mut G, random: &mut Random, max_depth: u32) -> Option<i8> {
        state.playout(random, max_depth)
    }
}

/// The world outside: the engine knows a position by its slot alone, so none of these is ever asked of it.
#[derive(Debug)]
pub struct External;

impl World for External {
    type State = ();
    const EXTERNAL: bool = true;

    #[inline]
    fn play(_state: &mut (), _action: Action) {}
    fn to_play(_state: &()) -> u8 {
        0
    }
    fn outcome(_state: &()) -> Option<i8> {
        None
    }
    fn legal_actions(_state: &(), actions: &mut Vec<Action>) {
        actions.clear();
    }
    fn playout(_state: &mut (), _random: &mut Random, _max_depth: u32) -> Option<i8> {
        None
    }
}
