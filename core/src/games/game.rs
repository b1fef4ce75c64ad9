//! The trait of compiled games: two players and zero-sum, or one player with rewards; with or without chance. Games written in Python
//! are external worlds (`world`).

use std::fmt::{Debug, Display};
use std::hash::Hash;

use super::board_text::parse_by_name;
use crate::error::Error;
use crate::runtime::random::Random;

/// A move, as an index into the action space; at a chance node an outcome, which may be beyond it.
pub type Action = u16;

/// The player to move at a chance node.
pub const CHANCE: u8 = u8::MAX;

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
    /// No board: scores.
    Scores,
    /// Numbered tiles.
    Tiles,
    /// The points of a backgammon board.
    Points,
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
            Self::Scores => "scores",
            Self::Tiles => "tiles",
            Self::Points => "points",
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
    /// Returns the identity.
    fn identity(dimensions: Dimensions) -> Self {
        Self { cells: (0..dimensions.cells() as u16).collect(), actions: (0..dimensions.num_actions as Action).collect() }
    }

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

/// The end of a playout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playout {
    /// The result for player 0, None if the playout was cut off. Ends of games with rewards are worth 0.
    pub result: Option<i8>,
    /// The sum of the rewards of player 0; 0 in games without rewards.
    pub rewards: f64,
}

impl Playout {
    /// Returns the value for player 0; a playout that was cut off is worth its rewards.
    #[inline]
    #[must_use]
    pub fn value(&self) -> f64 {
        self.rewards + f64::from(self.result.unwrap_or(0))
    }
}

impl From<Option<i8>> for Playout {
    /// Makes the end of a playout without rewards.
    #[inline]
    fn from(result: Option<i8>) -> Self {
        Self { result, rewards: 0.0 }
    }
}

/// A state of a game: a value type.
///
/// Players are 0 and 1; 0 moves first. Results are +1, 0 or -1 **for player 0**. A game for one player has rewards, and is worth 0 at
/// its end. Where dice or cards decide, `to_play` is `CHANCE` and the legal actions are the outcomes.
pub trait Game: Clone + PartialEq + Eq + Hash + Debug + Display + Send + Sync + 'static {
    /// The name in the API, e.g. `connect_four`.
    const NAME: &'static str;
    /// The name for people, e.g. `Connect 4`.
    const TITLE: &'static str;
    /// The name on the command line.
    const COMMAND: &'static str = Self::NAME;
    /// Further names that the command line accepts.
    const ALIASES: &'static [&'static str] = &[];
    /// The number of players, 1 or 2.
    const NUM_PLAYERS: usize = 2;
    /// Whether moves have rewards, by which alone the game is scored.
    const HAS_REWARDS: bool = false;
    /// Whether there are chance nodes.
    const HAS_CHANCE: bool = false;
    /// Upper bound of the outcomes of a chance node.
    const MAX_OUTCOMES: usize = 0;
    /// The names of the players: the marks on the printed board, or colours.
    const PLAYERS: &'static [&'static str] = &["X", "O"];
    /// The start that openings in matches begin with, as in `parse_start`, if it is not that of `start`: a chance node, for example.
    const OPENING_START: Option<&'static str> = None;
    /// Random plies of an opening in a match: enough for distinct games, too few to decide them.
    const OPENING_PLIES: u32;
    /// Upper bound of the legal actions of a state that is no chance node.
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
        vec![Symmetry::identity(self.dimensions())]
    }

    /// Returns the player to move, `CHANCE` at a chance node; any at an end.
    fn to_play(&self) -> u8;

    /// Replaces `outcomes` by the outcomes of a chance node in the order of `legal_actions`, with their probabilities, which are
    /// positive and sum to 1.
    fn chance_outcomes(&self, outcomes: &mut Vec<(Action, f64)>) {
        outcomes.clear();
    }

    /// Returns player 0's reward for the move, or outcome, that led to this state.
    #[inline]
    fn reward(&self) -> f64 {
        0.0
    }

    /// Returns the result for player 0 if the game is over without a claim.
    fn outcome(&self) -> Option<i8>;

    /// Like `outcome`, with the draws that a player may claim (chess: threefold repetition, 50 moves). Searches below the root
    /// and playouts use it.
    fn outcome_in_search(&self) -> Option<i8> {
        self.outcome()
    }

    /// Replaces `actions` by the legal actions in a fixed order, at a chance node by the outcomes; none if the game is over.
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
    /// `legal_actions`). The game must not be over, nor this a chance node.
    fn play_random(&mut self, random: &mut Random);

    /// Plays an outcome of a chance node by its probability: the one that `random.draw` chooses from `chance_outcomes`.
    fn play_outcome(&mut self, random: &mut Random) {
        let mut outcomes = Vec::with_capacity(Self::MAX_OUTCOMES);
        self.chance_outcomes(&mut outcomes);
        if let Some(chosen) = random.draw(outcomes.iter().map(|&(_, probability)| probability)) {
            self.play(outcomes[chosen].0);
        }
    }

    /// Plays outcomes up to a decision or the end; returns the sum of their rewards.
    #[inline]
    fn play_outcomes(&mut self, random: &mut Random) -> f64 {
        let mut rewards = 0.0;
        while Self::HAS_CHANCE && self.to_play() == CHANCE && self.outcome_in_search().is_none() {
            self.play_outcome(random);
            rewards += if Self::HAS_REWARDS { self.reward() } else { 0.0 };
        }
        rewards
    }

    /// Plays uniformly random moves, and outcomes by their probabilities, to the end in the sense of `outcome_in_search`; None as the
    /// result if `max_depth` moves, outcomes not counted, do not reach the end: then the last state is a decision. A state with a
    /// result may have been played on beyond the end.
    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        plain_playout(self, random, max_depth)
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

/// The default of `Game::playout`, with which tests compare faster ones.
#[inline]
pub fn plain_playout<G: Game>(game: &mut G, random: &mut Random, max_depth: u32) -> Playout {
    let mut rewards = game.play_outcomes(random);
    for _ in 0..max_depth {
        if let Some(result) = game.outcome_in_search() {
            return Playout { result: Some(result), rewards };
        }
        game.play_random(random);
        if G::HAS_REWARDS {
            rewards += game.reward();
        }
        if G::HAS_CHANCE {
            rewards += game.play_outcomes(random);
        }
    }
    Playout { result: game.outcome_in_search(), rewards }
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
