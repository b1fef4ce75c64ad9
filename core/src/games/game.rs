//! The trait of compiled games: two-player, zero-sum. Games written in Python are external worlds (`world`).

use std::fmt::{Debug, Display};
use std::hash::Hash;

use crate::error::Error;
use crate::runtime::random::Random;

/// A move, as an index into the action space.
pub type Action = u16;

/// A state of a two-player zero-sum game: a value type.
///
/// Players are 0 (moves first) and 1. Results are +1, 0 or -1 **for player 0**.
pub trait Game: Clone + PartialEq + Eq + Hash + Debug + Display + Send + Sync + 'static {
    /// The name in the API, e.g. `connect_four`.
    const NAME: &'static str;
    /// The size of the action space.
    const NUM_ACTIONS: usize;
    /// Upper bound of the legal actions of a state.
    const MAX_LEGAL: usize;
    /// An observation has `PLANES` bit planes followed by `SCALARS` constant planes, each `HEIGHT` x `WIDTH`.
    const PLANES: usize;
    /// See `PLANES`.
    const SCALARS: usize;
    /// Rows of a plane.
    const HEIGHT: usize;
    /// Columns of a plane.
    const WIDTH: usize;

    /// Returns the initial state.
    fn start() -> Self;

    /// Returns the player to move.
    fn to_play(&self) -> u8;

    /// Returns the result for player 0 if the game is over without a claim.
    fn outcome(&self) -> Option<i8>;

    /// Like `outcome`, with the draws that a player may claim (chess: threefold repetition, 50 moves). Searches below the root
    /// and playouts use it.
    fn outcome_in_search(&self) -> Option<i8> {
        self.outcome()
    }

    /// Replaces `actions` by the legal actions in a fixed order; none if the game is over.
    fn legal_actions(&self, actions: &mut Vec<Action>);

    /// Returns whether `action` is legal.
    fn is_legal(&self, action: Action) -> bool;

    /// Plays a legal action. An illegal one leaves an unspecified state, without undefined behaviour.
    fn play(&mut self, action: Action);

    /// Plays a legal action uniformly at random: the `random.choose(n)`-th in playout order (except for chess, that of
    /// `legal_actions`). The game must not be over.
    fn play_random(&mut self, random: &mut Random);

    /// Plays uniformly random moves to the end in the sense of `outcome_in_search`; returns the result for player 0, None if
    /// `max_depth` moves do not reach the end.
    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Option<i8> {
        for _ in 0..max_depth {
            if let Some(result) = self.outcome_in_search() {
                return Some(result);
            }
            self.play_random(random);
        }
        self.outcome_in_search()
    }

    /// Formats an action in this state.
    fn action_to_string(&self, action: Action) -> String;

    /// Parses a legal action.
    ///
    /// # Errors
    /// `Error::InvalidAction` names the text and valid forms.
    fn parse_action(&self, text: &str) -> Result<Action, Error>;

    /// Writes the observation for the player to move: bit planes (bit `row * WIDTH + column`), then the constants of the scalar
    /// planes.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]);
}

/// Returns the result for player 0 of a game won by `player`.
#[inline]
pub(super) fn win_for(player: u8) -> i8 {
    1 - 2 * player as i8
}

/// Unpacks an observation to `f32` planes of `(PLANES + SCALARS) * HEIGHT * WIDTH` numbers.
pub fn unpack_observation<G: Game>(planes: &[u64], scalars: &[f32], out: &mut [f32]) {
    let area = G::HEIGHT * G::WIDTH;
    for (plane, cells) in planes.iter().zip(out.chunks_exact_mut(area)) {
        for (square, cell) in cells.iter_mut().enumerate() {
            *cell = ((plane >> square) & 1) as f32;
        }
    }
    for (scalar, cells) in scalars.iter().zip(out[planes.len() * area..].chunks_exact_mut(area)) {
        cells.fill(*scalar);
    }
}
