//! Random playouts (seed 3's simulation step).

use crate::game::Action;
use crate::random::Random;
use crate::world::World;

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
