//! What a compiled game must offer. All compiled games have two players and are zero-sum;
//! games written in Python reach the engine as an external world (`world.rs`) instead.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use crate::error::Error;
use crate::runtime::random::Random;

/// A move, as an index into the game's action space.
pub type Action = u16;

/// A state of a two-player zero-sum game: a value that can be copied and played on.
///
/// Players are 0 (moves first) and 1. Results are +1, 0 or -1 **for player 0**.
pub trait Game: Clone + PartialEq + Eq + Hash + Debug + Display + Send + Sync + 'static {
    /// The name users type, e.g. `connect_four`.
    const NAME: &'static str;
    /// The size of the action space.
    const NUM_ACTIONS: usize;
    /// No state has more legal actions than this.
    const MAX_LEGAL: usize;
    /// An observation has `PLANES` bit planes followed by `SCALARS` constant planes, each `HEIGHT` x `WIDTH`.
    const PLANES: usize;
    /// See `PLANES`.
    const SCALARS: usize;
    /// Rows of a plane.
    const HEIGHT: usize;
    /// Columns of a plane.
    const WIDTH: usize;

    /// The starting state.
    fn start() -> Self;

    /// Who moves: 0 or 1.
    fn to_play(&self) -> u8;

    /// The result for player 0 if the game is over by itself, else None.
    fn outcome(&self) -> Option<i8>;

    /// Like `outcome`, and also the draws that a player may claim (chess: threefold repetition, 50 moves).
    /// This is the end of a game below the root of a search and in playouts.
    fn outcome_in_search(&self) -> Option<i8> {
        self.outcome()
    }

    /// Replaces `actions` by the legal actions, in a fixed order; none if `outcome` is given.
    fn legal_actions(&self, actions: &mut Vec<Action>);

    /// Whether `action` may be played here.
    fn is_legal(&self, action: Action) -> bool;

    /// Plays a legal action. An illegal one leaves a meaningless state, never memory harm.
    fn play(&mut self, action: Action);

    /// Plays one of the legal actions, each with the same chance:
    /// the `random.choose(n)`-th in the order of the playout (for all games but chess, that of `legal_actions`).
    /// Not to be called when the game is over.
    fn play_random(&mut self, random: &mut Random);

    /// Plays at random until the game ends (in the sense of `outcome_in_search`): its result for player 0;
    /// or None when `max_depth` moves did not end it.
    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Option<i8> {
        for _ in 0..max_depth {
            if let Some(result) = self.outcome_in_search() {
                return Some(result);
            }
            self.play_random(random);
        }
        self.outcome_in_search()
    }

    /// How people write the action here.
    fn action_to_string(&self, action: Action) -> String;

    /// Reads an action written by people; it must be legal.
    ///
    /// # Errors
    /// `Error::InvalidAction` says what was written and what would be right.
    fn parse_action(&self, text: &str) -> Result<Action, Error>;

    /// Writes the observation for the player to move: bit planes (bit `row * WIDTH + column`), then the constants of the scalar planes.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]);
}

/// Unpacks an observation to `f32` planes: `(PLANES + SCALARS) * HEIGHT * WIDTH` numbers.
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
