//! Hex on a rhombus of 1 x 1 to 13 x 13 cells, numbered as in OpenSpiel: action `row * size + column`, a1 = 0 at the top left.
//!
//! Player 0 (X) connects the top edge with the bottom, player 1 (O) the left edge with the right. The neighbours of a cell are
//! those to the left and right, above and above right, below and below left. There is no swap rule. Notation: `b3`.

use std::fmt;
use std::ops::{BitAnd, BitOr};

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::{square_name, write_board, write_status};
use super::game::win_for;
use super::ranked_bits::{bits, RankedBits};
use crate::error::Error;
use crate::games::{Action, BoardStyle, Dimensions, Game, Playout, Symmetry};
use crate::runtime::random::Random;

const LARGEST: usize = 13;
const DEFAULT: u8 = 11;

/// A set of cells: cell `i` is bit `i % 64` of word `i / 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cells([u64; 3]);

impl Cells {
    const NONE: Self = Self([0; 3]);

    /// Returns a single cell; no cell from 192 on.
    fn of(cell: usize) -> Self {
        Self(std::array::from_fn(|word| if cell / 64 == word { 1 << (cell % 64) } else { 0 }))
    }

    fn is_empty(self) -> bool {
        self == Self::NONE
    }

    #[inline]
    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Shifts every cell to a higher number; `by` is below 64.
    #[inline]
    fn shifted_up(self, by: u32) -> Self {
        let carry = |word: u64| word >> 1 >> (63 - by);
        let [low, middle, high] = self.0;
        Self([low << by, middle << by | carry(low), high << by | carry(middle)])
    }

    /// Shifts every cell to a lower number; `by` is below 64.
    #[inline]
    fn shifted_down(self, by: u32) -> Self {
        let carry = |word: u64| word << 1 << (63 - by);
        let [low, middle, high] = self.0;
        Self([low >> by | carry(middle), middle >> by | carry(high), high >> by])
    }
}

impl BitAnd for Cells {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

impl BitOr for Cells {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}

/// The cells of a board, and those at its edges: by player, where the chain starts and where it ends.
struct Board {
    cells: Cells,
    edges: [[Cells; 2]; 2],
}

static BOARDS: [Board; LARGEST + 1] = {
    const EMPTY: Board = Board { cells: Cells::NONE, edges: [[Cells::NONE; 2]; 2] };
    let mut boards = [EMPTY; LARGEST + 1];
    let mut size = 1;
    while size <= LARGEST {
        let mut cell = 0;
        while cell < size * size {
            let (word, bit) = (cell / 64, 1 << (cell % 64));
            let (row, column) = (cell / size, cell % size);
            boards[size].cells.0[word] |= bit;
            let (is_at, mut edge) = ([row == 0, row == size - 1, column == 0, column == size - 1], 0);
            while edge < 4 {
                boards[size].edges[edge / 2][edge % 2].0[word] |= if is_at[edge] { bit } else { 0 };
                edge += 1;
            }
            cell += 1;
        }
        size += 1;
    }
    boards
};

/// A state of Hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hex {
    /// The stones of player 0 and of player 1.
    stones: [Cells; 2],
    /// Those of them that are connected to the edge at the top or left: whether a move wins is then known without a search of the
    /// whole board.
    connected: [Cells; 2],
    size: u8,
    turn: u8,
}

impl Hex {
    fn with_size(size: u8) -> Self {
        Self { stones: [Cells::NONE; 2], connected: [Cells::NONE; 2], size, turn: 0 }
    }

    #[inline]
    fn board(&self) -> &'static Board {
        &BOARDS[usize::from(self.size)]
    }

    #[inline]
    fn empty(&self) -> Cells {
        self.board().cells.without(self.stones[0] | self.stones[1])
    }

    /// Returns the cells beside `cells`, which may include `cells` themselves and bits beyond the board.
    #[inline]
    fn neighbours(&self, cells: Cells) -> Cells {
        let row = u32::from(self.size);
        let [first_column, last_column] = self.board().edges[1];
        let (not_first, not_last) = (cells.without(first_column), cells.without(last_column));
        cells.shifted_up(row)
            | cells.shifted_down(row)
            | not_last.shifted_up(1)
            | not_first.shifted_down(1)
            | not_first.shifted_up(row - 1)
            | not_last.shifted_down(row - 1)
    }

    /// Adds `found` and all stones that it connects to a player's connected stones.
    #[inline]
    fn connect(&mut self, player: usize, mut found: Cells) {
        while !found.is_empty() {
            self.connected[player] = self.connected[player] | found;
            found = (self.neighbours(found) & self.stones[player]).without(self.connected[player]);
        }
    }

    #[inline]
    fn has_won(&self, player: usize) -> bool {
        !(self.connected[player] & self.board().edges[player][1]).is_empty()
    }
}

impl Game for Hex {
    const NAME: &'static str = "hex";
    const TITLE: &'static str = "Hex";
    const OPENING_PLIES: u32 = 2;
    const MAX_LEGAL: usize = LARGEST * LARGEST;
    const POLICY_PLANES: usize = 1;
    const BOARD: BoardStyle = BoardStyle::Rhombus;

    fn start() -> Self {
        Self::with_size(DEFAULT)
    }

    fn parse_start(text: &str) -> Result<Self, Error> {
        let found = (1..).take(LARGEST).find(|size: &u8| size.to_string() == text);
        found.map(Self::with_size).ok_or_else(|| {
            let given: String = text.chars().take(40).collect();
            Error::InvalidArgument(format!("size must be a whole number from 1 to {LARGEST}, not {given}"))
        })
    }

    fn represent(&self, class: &str) -> String {
        format!("{class}({})\n{self}", self.size)
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        let size = usize::from(self.size);
        Dimensions { num_actions: size * size, planes: 2, scalars: 1, height: size, width: size }
    }

    /// The identity and the half-turn; a reflection would exchange the players' edges.
    fn symmetries(&self) -> Vec<Symmetry> {
        let dimensions = self.dimensions();
        let last = dimensions.cells() - 1;
        vec![Symmetry::of_cells(dimensions, |cell| cell), Symmetry::of_cells(dimensions, |cell| last - cell)]
    }

    #[inline]
    fn to_play(&self) -> u8 {
        self.turn
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        (0..2).find(|player| self.has_won(usize::from(*player))).map(win_for)
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.outcome().is_none() {
            for (word, empty) in (0..).zip(self.empty().0) {
                actions.extend(bits(empty).map(|bit| 64 * word + bit));
            }
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        !(self.empty() & Cells::of(usize::from(action))).is_empty() && self.outcome().is_none()
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let stone = Cells::of(usize::from(action));
        let player = usize::from(self.turn & 1);
        self.stones[player] = self.stones[player] | stone;
        let reachable = self.board().edges[player][0] | self.neighbours(self.connected[player]);
        self.connect(player, stone & reachable);
        self.turn ^= 1;
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        self.play(RankedBits::new(self.empty().0).choose(random) as Action);
    }

    /// Fills the board even beyond a win, since the winner cannot change: connections are looked for once.
    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        if let Some(result) = self.outcome() {
            return Some(result).into();
        }
        let mut empty = RankedBits::new(self.empty().0);
        for _ in 0..empty.len().min(max_depth) {
            let cell = empty.choose(random);
            empty.remove(cell);
            self.stones[usize::from(self.turn & 1)].0[cell / 64] |= 1 << (cell % 64);
            self.turn ^= 1;
        }
        for player in 0..2 {
            let found = (self.board().edges[player][0] | self.neighbours(self.connected[player])) & self.stones[player];
            self.connect(player, found);
        }
        self.outcome().into()
    }

    fn action_to_string(&self, action: Action) -> String {
        square_name(action, self.size.into())
    }

    /// Planes: stones of the player to move, stones of the other, in the coordinates of the actions whoever is to move. Scalar: 1
    /// if player 0 is to move, else 0; it tells which edges to connect.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        let words = planes.len() / 2;
        let own = usize::from(self.turn);
        for (plane, stones) in planes.chunks_exact_mut(words).zip([self.stones[own], self.stones[own ^ 1]]) {
            plane.copy_from_slice(&stones.0[..words]);
        }
        scalars[0] = f32::from(1 - self.turn);
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = |cell| self.stones.map(|stones| !(stones & Cells::of(cell)).is_empty());
        write_board(formatter, self.size.into(), 1, |row| row + 1, held)?;
        write_status(self, formatter)
    }
}

impl Analyzed for Hex {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random::Purpose;

    fn after(size: u8, actions: &[Action]) -> Hex {
        let mut game = Hex::with_size(size);
        for &action in actions {
            assert!(game.is_legal(action), "{action} in\n{game}");
            game.play(action);
        }
        game
    }

    fn value(game: &Hex) -> i8 {
        let values = game.legal().into_iter().map(|action| value(&game.after(action)));
        game.outcome().unwrap_or_else(|| if game.turn == 0 { values.max() } else { values.min() }.expect("a legal action"))
    }

    #[test]
    fn stones_alone_determine_the_state() {
        for seed in 0..200 {
            let (mut random, mut game, mut actions) = (Random::new(seed, Purpose::Playout), Hex::with_size(7), vec![]);
            while game.outcome().is_none() {
                let legal = game.legal();
                actions.push(legal[random.choose(legal.len() as u32) as usize]);
                game.play(actions[actions.len() - 1]);
            }
            // Each player's stones are placed in the opposite order.
            let mut other = Hex::with_size(7);
            for ply in 0..actions.len() {
                let (player, last) = (ply % 2, actions.len() - 1);
                other.play(actions[last - (last - player) % 2 - (ply - player)]);
            }
            assert_eq!(other, game);
        }
    }

    #[test]
    fn first_player_wins_on_3x3_by_the_known_openings() {
        assert!((1..=3).all(|size| value(&Hex::with_size(size)) == 1));
        // The acute corners lose, and so do the neighbours of theirs on the first player's edges.
        let openings: Vec<i8> = (0..9).map(|opening| value(&after(3, &[opening]))).collect();
        assert_eq!(openings, [-1, -1, 1, 1, 1, 1, 1, -1, -1]);
    }

    #[test]
    fn sizes_beyond_the_largest_are_refused() {
        assert_eq!(Hex::parse_start("13"), Ok(Hex::with_size(13)));
        for wrong in ["", "0", "14", "-1", "+7", "07", " 7", "7\n", "2.5", "x", "269", "7x7", "\u{667}"] {
            let error = Hex::parse_start(wrong).expect_err(wrong);
            assert_eq!(error, Error::InvalidArgument(format!("size must be a whole number from 1 to 13, not {wrong}")));
        }
    }

    #[test]
    fn board_text_slants_to_the_right() {
        assert_eq!(after(3, &[4, 2]).to_string(), "  a b c\n1 . . O\n 2 . X .\n  3 . . .\nX to move");
        assert!(after(2, &[0, 1, 2]).to_string().ends_with("X wins"));
        assert!(Hex::start().to_string().contains("\n          11 . . . . . . . . . . .\n"));
    }
}
