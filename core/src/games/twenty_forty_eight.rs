//! 2048: one player slides the tiles of a 4x4 board; equal tiles that meet merge, and each merger earns the new tile's value. Actions: 0
//! up, 1 right, 2 down, 3 left, legal if the board changes. Then a tile appears on an empty cell: 2 with probability 0.9, 4 with 0.1.
//!
//! Outcome `2 * cell + is_four`, cell `row * 4 + column` from the top left, is written `b3=4`: column letter, row number from the top,
//! tile. The game goes on beyond 2048 until no action is legal. Tiles of 32768 do not merge.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::square_name;
use super::ranked_bits::bits;
use super::twenty_forty_eight_moves::{slide, transpose, CELLS, LARGEST, PROBABILITIES, SIDE, TABLES};
use crate::error::Error;
use crate::games::{Action, BoardStyle, Dimensions, Game, Symmetry, CHANCE};
use crate::runtime::random::{Purpose, Random};

const NAMES: [&str; 4] = ["up", "right", "down", "left"];
/// The steps of the actions: rows down, columns to the right.
const STEPS: [(isize, isize); 4] = [(-1, 0), (0, 1), (1, 0), (0, -1)];
/// The lowest bit of each cell.
const LOW_BITS: u64 = 0x1111_1111_1111_1111;
/// A state of 2048.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TwentyFortyEight {
    /// The exponents of the tiles, 0 for an empty cell, four bits each.
    board: u64,
    score: u32,
    /// The reward of the last move; 0 after an outcome.
    reward: u32,
    /// Tiles to place before the next move.
    to_place: u8,
}

impl TwentyFortyEight {
    const EMPTY: Self = Self { board: 0, score: 0, reward: 0, to_place: 2 };

    /// Returns the start of a seed, which draws the first two tiles.
    fn seeded(seed: u64) -> Self {
        let mut state = Self::EMPTY;
        state.play_outcomes(&mut Random::new(seed, Purpose::RootMove));
        state
    }

    /// Returns the decision on a board given by its tiles.
    fn with_tiles(text: &str) -> Option<Self> {
        let exponent = |tile: &str| match tile.parse::<u64>() {
            _ if tile == "." => Some(0),
            Ok(number) if number.is_power_of_two() && (1..=LARGEST).contains(&number.ilog2().into()) => Some(u64::from(number.ilog2())),
            _ => None,
        };
        let exponents: Vec<u64> = text.split_whitespace().map(exponent).collect::<Option<_>>()?;
        let board = (0..).zip(&exponents).fold(0u64, |board, (cell, exponent)| board | exponent << (4 * (cell & 15)));
        (exponents.len() == CELLS && board != 0).then_some(Self { board, to_place: 0, ..Self::EMPTY })
    }

    /// Returns the sum of the rewards so far.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.score
    }

    /// Returns the empty cells, the lowest bit of each.
    #[inline]
    fn empty(&self) -> u64 {
        let pairs = self.board | self.board >> 2;
        !(pairs | pairs >> 1) & LOW_BITS
    }

    /// Returns the board after each action, unchanged if it is illegal, with the rewards.
    #[inline]
    fn moves(&self) -> [(u64, u32); 4] {
        let (left, right, across) = slide(self.board);
        let (up, down, along) = slide(transpose(self.board));
        [(transpose(up), along), (right, across), (transpose(down), along), (left, across)]
    }

    #[inline]
    fn moved(&mut self, (board, reward): (u64, u32)) {
        *self = Self { board, score: self.score.saturating_add(reward), reward, to_place: 1 };
    }

    fn tile(&self, cell: usize) -> u64 {
        self.board >> (4 * cell) & 15
    }

    fn is_chance(&self) -> bool {
        self.to_place > 0
    }
}

impl Game for TwentyFortyEight {
    const NAME: &'static str = "twenty_forty_eight";
    const TITLE: &'static str = "2048";
    const COMMAND: &'static str = "2048";
    const ALIASES: &'static [&'static str] = &["twenty-forty-eight"];
    const NUM_PLAYERS: usize = 1;
    const HAS_REWARDS: bool = true;
    const HAS_CHANCE: bool = true;
    const MAX_OUTCOMES: usize = 2 * CELLS;
    const PLAYERS: &'static [&'static str] = &["Player"];
    const OPENING_START: Option<&'static str> = Some("empty");
    const OPENING_PLIES: u32 = 0;
    const MAX_LEGAL: usize = 4;
    const BOARD: BoardStyle = BoardStyle::Tiles;

    fn start() -> Self {
        Self::seeded(0)
    }

    fn parse_start(text: &str) -> Result<Self, Error> {
        if text.trim() == "empty" {
            return Ok(Self::EMPTY);
        }
        let start = text.trim().parse().ok().map(Self::seeded).or_else(|| Self::with_tiles(text));
        start.ok_or_else(|| {
            Error::InvalidArgument(format!(
                "seed must be a whole number from 0 to {}, which draws the first two tiles, \"empty\" for the board before them, a chance \
                 node, or 16 tiles from 2 to 32768, row by row, with . for an empty cell, not {text}",
                u64::MAX
            ))
        })
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: 4, planes: LARGEST as usize + 1, scalars: 1, height: SIDE, width: SIDE }
    }

    /// Rotations and reflections of the board, which permute the actions.
    fn symmetries(&self) -> Vec<Symmetry> {
        let squares = Symmetry::of_square(Dimensions { num_actions: CELLS, ..self.dimensions() });
        // For an action of a cell, `actions` has the cell's new place.
        let turned = |places: &[Action], step: (isize, isize)| {
            let place = |cell: usize| (isize::from(places[cell] as u8) / 4, isize::from(places[cell] as u8) % 4);
            let (from, to) = (place(5), place((5 + 4 * step.0 + step.1) as usize));
            let turned = (to.0 - from.0, to.1 - from.1);
            STEPS.iter().position(|&step| step == turned).unwrap_or(0) as Action
        };
        let permuted = |square: Symmetry| Symmetry { actions: STEPS.map(|step| turned(&square.actions, step)).to_vec(), ..square };
        squares.into_iter().map(permuted).collect()
    }

    #[inline]
    fn to_play(&self) -> u8 {
        if self.is_chance() {
            CHANCE
        } else {
            0
        }
    }

    #[inline]
    fn reward(&self) -> f64 {
        self.reward.into()
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        // With an empty cell and a tile some move is legal.
        let is_over = !self.is_chance() && self.empty() == 0 && self.moves().iter().all(|(board, _)| *board == self.board);
        is_over.then_some(0)
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.is_chance() {
            actions.extend(bits(self.empty()).flat_map(|bit| [bit / 2, bit / 2 + 1]));
        } else {
            let changes = |&(_, (board, _)): &(Action, (u64, u32))| board != self.board;
            actions.extend((0..).zip(self.moves()).filter(changes).map(|(action, _)| action));
        }
    }

    fn chance_outcomes(&self, outcomes: &mut Vec<(Action, f64)>) {
        outcomes.clear();
        if self.is_chance() {
            let empty = self.empty();
            let [two, four] = PROBABILITIES.map(|probability| probability / f64::from(empty.count_ones()));
            outcomes.extend(bits(empty).flat_map(|bit| [(bit / 2, two), (bit / 2 + 1, four)]));
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        if self.is_chance() {
            usize::from(action) < 2 * CELLS && self.tile(usize::from(action / 2)) == 0
        } else {
            self.moves().get(usize::from(action)).is_some_and(|(board, _)| *board != self.board)
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        if self.is_chance() {
            let exponent = 1 + u64::from(action & 1);
            *self = Self { board: self.board | exponent << (4 * (action / 2 % 16)), reward: 0, to_place: self.to_place - 1, ..*self };
        } else {
            self.moved(self.moves()[usize::from(action % 4)]);
        }
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        let moves = self.moves();
        let legal = moves.map(|(board, _)| u32::from(board != self.board));
        let mut rank = random.choose(legal.iter().sum());
        for (after, is_legal) in moves.into_iter().zip(legal) {
            if is_legal == 1 && rank == 0 {
                return self.moved(after);
            }
            rank = rank.wrapping_sub(is_legal);
        }
    }

    #[inline]
    fn play_outcome(&mut self, random: &mut Random) {
        let mut empty = self.empty();
        let chosen = random.draw_cumulative(&TABLES.cumulative[empty.count_ones() as usize]);
        for _ in 0..chosen / 2 {
            empty &= empty.wrapping_sub(1);
        }
        self.play((empty.trailing_zeros() / 2) as Action + chosen as Action % 2);
    }

    fn action_to_string(&self, action: Action) -> String {
        if self.is_chance() {
            return format!("{}={}", square_name(action / 2, SIDE as Action), 2 + 2 * (action % 2));
        }
        NAMES.get(usize::from(action)).map_or_else(|| action.to_string(), |&name| name.into())
    }

    fn represent(&self, class: &str) -> String {
        format!("{class}\n{self}")
    }

    /// Planes: the empty cells, then those with a tile of 2, 4, ... 32768. Scalar: the share of empty cells.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        planes.fill(0);
        for cell in 0..CELLS {
            planes[self.tile(cell) as usize] |= 1 << cell;
        }
        scalars[0] = planes[0].count_ones() as f32 / CELLS as f32;
    }
}

impl fmt::Display for TwentyFortyEight {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiles: [String; CELLS] = std::array::from_fn(|cell| match self.tile(cell) {
            0 => ".".into(),
            exponent => (1 << exponent).to_string(),
        });
        let width = tiles.iter().map(String::len).max().unwrap_or(1);
        write!(formatter, " ")?;
        for letter in ('a'..).take(SIDE) {
            write!(formatter, " {letter:>width$}")?;
        }
        for (row, cells) in tiles.chunks(SIDE).enumerate() {
            write!(formatter, "\n{}", row + 1)?;
            for cell in cells {
                write!(formatter, " {cell:>width$}")?;
            }
        }
        let status = match (self.is_chance(), self.outcome()) {
            (true, _) => ", a tile appears",
            (false, None) => "",
            (false, Some(_)) => ", game over",
        };
        write!(formatter, "\nscore {}{status}", self.score)
    }
}

impl Analyzed for TwentyFortyEight {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decision on a board of exponents, row by row.
    fn board(exponents: [u64; CELLS]) -> TwentyFortyEight {
        let board = (0..).zip(exponents).map(|(cell, exponent)| exponent << (4 * cell)).sum();
        TwentyFortyEight { board, to_place: 0, ..TwentyFortyEight::EMPTY }
    }

    #[test]
    fn a_tile_merges_once_a_move_starting_at_the_far_side() {
        let row = |exponents: [u64; 4]| {
            let mut cells = [0; CELLS];
            cells[..4].copy_from_slice(&exponents);
            board(cells)
        };
        for (before, left, right, reward) in [
            ([1, 1, 1, 0], [2, 1, 0, 0], [0, 0, 1, 2], 4),
            ([1, 1, 1, 1], [2, 2, 0, 0], [0, 0, 2, 2], 8),
            ([1, 1, 2, 3], [2, 2, 3, 0], [0, 2, 2, 3], 4),
            ([0, 14, 0, 14], [15, 0, 0, 0], [0, 0, 0, 15], 32768),
            ([15, 15, 0, 1], [15, 15, 1, 0], [0, 15, 15, 1], 0),
        ] {
            for (action, expected) in [(3, left), (1, right)] {
                let mut game = row(before);
                game.play(action);
                assert_eq!((game.board, game.reward), (row(expected).board, reward), "{before:?}");
                assert_eq!((game.score, game.to_play()), (reward, CHANCE));
            }
        }
    }

    #[test]
    fn columns_slide_as_rows_do() {
        let mut game = board([1, 0, 0, 3, 1, 0, 0, 0, 2, 0, 0, 3, 0, 4, 0, 3]);
        let mut other = game;
        game.play(0);
        assert_eq!(game.board, board([2, 4, 0, 4, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0]).board);
        other.play(2);
        assert_eq!(other.board, board([0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 2, 4, 0, 4]).board);
    }

    #[test]
    fn the_game_is_over_without_a_legal_action() {
        let mut game = board([1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 3, 4, 3, 0]);
        assert_eq!(game.legal(), [1, 2]);
        game.play(1);
        assert_eq!((game.legal().len(), game.outcome()), (2, None));
        game.play(game.parse_action("A4=4").expect("an outcome"));
        assert_eq!((game.outcome(), game.legal()), (Some(0), vec![]));
        assert!(
            game.to_string().starts_with("   a  b  c  d\n1  2  4  2  4\n") && game.to_string().ends_with("\nscore 0, game over"),
            "{game}"
        );
    }

    #[test]
    fn seeds_draw_two_tiles() {
        let starts: std::collections::HashSet<_> =
            (0..50).map(|seed: u64| TwentyFortyEight::parse_start(&seed.to_string()).expect("a seed")).collect();
        assert!(starts.len() > 40 && starts.iter().all(|start| start.empty().count_ones() == 14 && start.to_play() == 0));
        assert!(starts.contains(&TwentyFortyEight::start()));
        assert_eq!(TwentyFortyEight::parse_start("empty").expect("the empty board").legal().len(), 32);
        let tiles = "2 . . 4  . . . .  . . . .  32768 . . .";
        assert_eq!(TwentyFortyEight::parse_start(tiles).expect("tiles"), board([1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0]));
        let few = ". . . . . . . . . . . . . . .";
        let wrongs = ["-1", "1.5", "full", "", few].map(str::to_owned).into_iter();
        for wrong in wrongs.chain([" .", " 3", " 65536", " 1", " . 2"].map(|end| few.to_owned() + end)) {
            let wrong = wrong.as_str();
            assert!(matches!(TwentyFortyEight::parse_start(wrong), Err(Error::InvalidArgument(_))), "{wrong}");
        }
    }

    #[test]
    fn symmetric_boards_have_symmetric_actions() {
        let transformed =
            |game: &TwentyFortyEight, symmetry: &Symmetry| board(std::array::from_fn(|cell| game.tile(usize::from(symmetry.cells[cell]))));
        let mut random = Random::new(1, Purpose::Playout);
        let mut game = TwentyFortyEight::start();
        while game.outcome().is_none() {
            for symmetry in game.symmetries() {
                for action in game.legal() {
                    let (mut direct, mut turned) = (game, transformed(&game, &symmetry));
                    direct.play(action);
                    turned.play(symmetry.actions[usize::from(action)]);
                    assert_eq!((transformed(&direct, &symmetry).board, direct.reward), (turned.board, turned.reward));
                }
            }
            game.play_random(&mut random);
            game.play_outcomes(&mut random);
        }
    }
}
