//! The trait of compiled games: two-player, zero-sum. Games written in Python are external worlds (`world`).

use std::fmt::{Debug, Display};
use std::hash::Hash;

use super::board_text::parse_by_name;
use crate::error::Error;
use crate::runtime::random::Random;

/// A move, as an index into the action space.
pub type Action = u16;

/// The sizes of a state's actions and observation. All states of a search have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// The size of the action space.
    pub num_actions: usize,
    /// Bit planes of an observation.
    pub planes: usize,
    /// Constant planes, which follow the bit planes.
    pub scalars: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Columns of a plane.
    pub width: usize,
}

impl Dimensions {
    /// Returns the cells of a plane.
    #[must_use]
    pub const fn cells(&self) -> usize {
        self.height * self.width
    }

    /// Returns the 64-bit words of a packed observation: each plane has as many as its cells take.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.planes * self.cells().div_ceil(64)
    }
}

/// How pictures show a game: `Display` writes its rows of cells, separated by spaces, with the names of columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardStyle {
    /// Lines between the cells, marks as pieces.
    Lines,
    /// Squares of one colour, discs as pieces.
    Felt,
    /// An upright board with holes, into which discs are dropped.
    Holes,
    /// Squares of two colours, discs or chessmen as pieces.
    Checkered,
    /// Hexagons in rows, each half a cell to the right of the one above; the top and bottom edges belong to the first player.
    Rhombus,
}

impl BoardStyle {
    /// Returns the name of the style.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Felt => "felt",
            Self::Holes => "holes",
            Self::Checkered => "checkered",
            Self::Rhombus => "rhombus",
        }
    }
}

/// A symmetry of a board: cell `i` of the transformed board is cell `cells[i]`, action `a` becomes `actions[a]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetry {
    /// A permutation of the cells of a plane.
    pub cells: Vec<u16>,
    /// A permutation of the actions.
    pub actions: Vec<Action>,
}

impl Symmetry {
    /// Returns the symmetry that takes cell `i` from `source(i)`, in a game whose first actions are the cells; the others stay.
    pub(super) fn of_cells(dimensions: Dimensions, source: impl Fn(usize) -> usize) -> Self {
        let cells: Vec<u16> = (0..dimensions.cells()).map(|cell| source(cell) as u16).collect();
        let mut actions: Vec<Action> = (0..dimensions.num_actions as Action).collect();
        for (cell, &from) in cells.iter().enumerate() {
            actions[usize::from(from)] = cell as Action;
        }
        Self { cells, actions }
    }

    /// Returns the eight symmetries of a square board, as `of_cells`.
    pub(super) fn of_square(dimensions: Dimensions) -> Vec<Self> {
        let last = dimensions.width - 1;
        let source = |index: usize, cell: usize| {
            let (mut row, mut column) = (cell / dimensions.width, cell % dimensions.width);
            for _ in 0..index % 4 {
                (row, column) = (column, last - row);
            }
            row * dimensions.width + if index < 4 { column } else { last - column }
        };
        (0..8).map(|index| Self::of_cells(dimensions, |cell| source(index, cell))).collect()
    }
}

/// A state of a two-player zero-sum game: a value type.
///
/// Players are 0 (moves first) and 1. Results are +1, 0 or -1 **for player 0**.
pub trait Game: Clone + PartialEq + Eq + Hash + Debug + Display + Send + Sync + 'static {
    /// The name in the API, e.g. `connect_four`.
    const NAME: &'static str;
    /// The name for people, e.g. `Connect 4`.
    const TITLE: &'static str;
    /// The name on the command line.
    const COMMAND: &'static str = Self::NAME;
    /// Further names that the command line accepts.
    const ALIASES: &'static [&'static str] = &[];
    /// The names of the players: the marks on the printed board, or colours.
    const PLAYERS: [&'static str; 2] = ["X", "O"];
    /// Random plies of an opening in a match: enough for distinct games, too few to decide them.
    const OPENING_PLIES: u32;
    /// Upper bound of the legal actions of a state.
    const MAX_LEGAL: usize;
    /// Actions per cell if action `cell * POLICY_PLANES + plane` belongs to a cell of the observation, so that networks can have
    /// convolutional policy heads; 0 for a dense head.
    const POLICY_PLANES: usize = 0;
    /// How pictures show the game.
    const BOARD: BoardStyle = BoardStyle::Lines;

    /// Returns the initial state.
    fn start() -> Self;

    /// Returns the starting state that the argument of the game's constructor in Python names, such as a board size.
    ///
    /// # Errors
    /// `Error::InvalidArgument` or `Error::InvalidPosition` says what is valid.
    fn parse_start(text: &str) -> Result<Self, Error> {
        Err(Error::InvalidArgument(format!("{} has one start: {text:?} is none", Self::TITLE)))
    }

    /// Returns the sizes of actions and observations.
    fn dimensions(&self) -> Dimensions;

    /// Returns the symmetries of the board, the identity first.
    fn symmetries(&self) -> Vec<Symmetry> {
        vec![Symmetry::of_cells(self.dimensions(), |cell| cell)]
    }

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

    /// Returns the legal actions, as `legal_actions`.
    fn legal(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        self.legal_actions(&mut actions);
        actions
    }

    /// Returns whether `action` is legal.
    fn is_legal(&self, action: Action) -> bool;

    /// Plays a legal action. An illegal one leaves an unspecified state, without undefined behaviour.
    fn play(&mut self, action: Action);

    /// Returns the state after a legal action.
    fn after(&self, action: Action) -> Self {
        let mut next = self.clone();
        next.play(action);
        next
    }

    /// Plays a legal action uniformly at random: the `random.choose(n)`-th in playout order (except for chess, that of
    /// `legal_actions`). The game must not be over.
    fn play_random(&mut self, random: &mut Random);

    /// Plays uniformly random moves to the end in the sense of `outcome_in_search`; returns the result for player 0, None if
    /// `max_depth` moves do not reach the end. A state with a result may have been played on beyond the end.
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

    /// Parses a legal action; by default as `action_to_string` formats it, ignoring case and surrounding whitespace.
    ///
    /// # Errors
    /// `Error::InvalidAction` names the text and valid forms.
    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        parse_by_name(self, text)
    }

    /// Formats the state for debugging, as a call of `class`.
    fn represent(&self, class: &str) -> String {
        format!("{class}()\n{self}")
    }

    /// Writes the observation for the player to move: bit planes (cell `row * width + column` is bit `cell % 64` of the plane's
    /// word `cell / 64`), then the constants of the scalar planes.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]);
}

/// Returns the result for player 0 of a game won by `player`.
#[inline]
pub(super) fn win_for(player: u8) -> i8 {
    1 - 2 * player as i8
}

/// Writes the observation of a board of one word: the pieces of the player to move, those of the other; 1 if player 0 is to move,
/// else 0.
#[inline]
pub(super) fn pack_board(own_and_other: [u64; 2], to_play: u8, planes: &mut [u64], scalars: &mut [f32]) {
    planes[..2].copy_from_slice(&own_and_other);
    scalars[0] = f32::from(1 - to_play);
}

/// Unpacks an observation to `f32` planes of `(planes + scalars) * height * width` numbers.
#[inline]
pub fn unpack_observation(dimensions: Dimensions, planes: &[u64], scalars: &[f32], out: &mut [f32]) {
    let cells = dimensions.cells();
    for (words, plane) in planes.chunks_exact(cells.div_ceil(64)).zip(out.chunks_exact_mut(cells)) {
        for (word, cells) in words.iter().zip(plane.chunks_mut(64)) {
            for (bit, cell) in cells.iter_mut().enumerate() {
                *cell = ((word >> bit) & 1) as f32;
            }
        }
    }
    for (scalar, plane) in scalars.iter().zip(out[dimensions.planes * cells..].chunks_exact_mut(cells)) {
        plane.fill(*scalar);
    }
}
