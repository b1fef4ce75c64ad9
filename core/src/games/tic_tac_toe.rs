//! Tic-tac-toe on 3x3. Action `row * 3 + column`, row 0 at the top.
//!
//! Notation: column letter `a`-`c` and row number `1`-`3` **counted from the top**: `a1` is the top left corner, `b2` the centre.
//! Action numbers `0`-`8` are parsed too.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::{parse_by_name, square_name, write_board, write_status};
use super::game::{pack_board, win_for};
use crate::error::Error;
use crate::games::{Action, Dimensions, Game, Playout, Symmetry};
use crate::runtime::random::Random;

const BOARD: u16 = 0o777;
const LINES: [u16; 8] = [0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124];

/// Whether a set of squares holds a line.
static HAS_LINE: [bool; 512] = {
    let mut table = [false; 512];
    let mut stones = 0;
    while stones < 512 {
        let mut line = 0;
        while line < LINES.len() {
            table[stones] |= stones as u16 & LINES[line] == LINES[line];
            line += 1;
        }
        stones += 1;
    }
    table
};

/// By set of filled squares, the empty ones in ascending order, four bits each: selects the k-th without a loop.
static EMPTY_SQUARES: [u64; 512] = {
    let mut table = [0; 512];
    let mut filled = 0;
    while filled < 512 {
        let (mut square, mut shift) = (0u64, 0);
        while square < 9 {
            if filled >> square & 1 == 0 {
                table[filled] |= square << shift;
                shift += 4;
            }
            square += 1;
        }
        filled += 1;
    }
    table
};

/// A state of tic-tac-toe. Player 0 draws X, player 1 draws O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TicTacToe {
    /// The squares of player 0 and of player 1, bit `row * 3 + column`.
    stones: [u16; 2],
    /// Moves made so far.
    ply: u8,
}

impl TicTacToe {
    fn filled(&self) -> u16 {
        self.stones[0] | self.stones[1]
    }
}

impl Game for TicTacToe {
    const NAME: &'static str = "tic_tac_toe";
    const TITLE: &'static str = "Tic-tac-toe";
    const COMMAND: &'static str = "tic-tac-toe";
    const ALIASES: &'static [&'static str] = &["tictactoe"];
    const OPENING_PLIES: u32 = 1;
    const MAX_LEGAL: usize = 9;

    #[inline]
    fn start() -> Self {
        Self { stones: [0; 2], ply: 0 }
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: 9, planes: 2, scalars: 1, height: 3, width: 3 }
    }

    fn symmetries(&self) -> Vec<Symmetry> {
        Symmetry::of_square(self.dimensions())
    }

    #[inline]
    fn to_play(&self) -> u8 {
        self.ply & 1
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        // Only the player who has just moved can have made a line.
        let last = self.to_play() ^ 1;
        if HAS_LINE[usize::from(self.stones[usize::from(last)] & BOARD)] {
            Some(win_for(last))
        } else {
            (self.ply >= 9).then_some(0)
        }
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.outcome().is_none() {
            let filled = self.filled();
            actions.extend((0..9).filter(|square| filled >> square & 1 == 0));
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        action < 9 && self.filled() >> action & 1 == 0 && self.outcome().is_none()
    }

    #[inline]
    fn play(&mut self, action: Action) {
        self.stones[usize::from(self.to_play())] |= 1 << (action & 15);
        self.ply = self.ply.wrapping_add(1);
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        let chosen = random.choose(9 - u32::from(self.ply));
        let square = EMPTY_SQUARES[usize::from(self.filled() & BOARD)] >> (4 * chosen) & 15;
        self.play(square as Action);
    }

    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        if let Some(result) = self.outcome() {
            return Some(result).into();
        }
        // The boards are swapped after every move, so that they stay in registers.
        let mut mover = self.stones[usize::from(self.to_play())] & BOARD;
        let mut other = self.stones[usize::from(self.to_play() ^ 1)] & BOARD;
        let mut result = None;
        for _ in 0..max_depth {
            let chosen = random.choose(9 - u32::from(self.ply));
            mover |= 1 << (EMPTY_SQUARES[usize::from(mover | other)] >> (4 * chosen) & 15);
            self.ply += 1;
            (mover, other) = (other, mover);
            if HAS_LINE[usize::from(other & BOARD)] {
                result = Some(win_for(self.to_play() ^ 1));
                break;
            }
            if self.ply == 9 {
                result = Some(0);
                break;
            }
        }
        self.stones[usize::from(self.to_play())] = mover;
        self.stones[usize::from(self.to_play() ^ 1)] = other;
        result.into()
    }

    fn action_to_string(&self, action: Action) -> String {
        square_name(action, 3)
    }

    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        match text.trim().parse::<Action>() {
            Ok(square) if self.is_legal(square) => Ok(square),
            _ => parse_by_name(self, text),
        }
    }

    /// Planes: squares of the player to move, squares of the other. Scalar: 1 if player 0 is to move, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        let own = usize::from(self.to_play());
        pack_board([self.stones[own], self.stones[own ^ 1]].map(u64::from), self.to_play(), planes, scalars);
    }
}

impl fmt::Display for TicTacToe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_board(formatter, 3, 0, |row| row + 1, |square| self.stones.map(|stones| stones >> square & 1 != 0))?;
        write_status(self, formatter)
    }
}

impl Analyzed for TicTacToe {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn after(squares: &[Action]) -> TicTacToe {
        let mut game = TicTacToe::start();
        for &square in squares {
            assert!(game.is_legal(square), "{square} in\n{game}");
            game.play(square);
        }
        game
    }

    fn walk(game: TicTacToe, seen: &mut HashSet<TicTacToe>, ends: &mut [u32; 3]) {
        seen.insert(game);
        let legal = game.legal();
        assert_eq!(legal.is_empty(), game.outcome().is_some());
        assert!((0..20).all(|action| game.is_legal(action) == legal.contains(&action)));
        if let Some(result) = game.outcome() {
            ends[(1 - result) as usize] += 1;
        }
        for action in legal {
            walk(game.after(action), seen, ends);
        }
    }

    #[test]
    fn game_tree_has_the_known_size() {
        let (mut seen, mut ends) = (HashSet::new(), [0; 3]);
        walk(TicTacToe::start(), &mut seen, &mut ends);
        assert_eq!(seen.len(), 5478);
        assert_eq!(ends, [131_184, 46_080, 77_904]);
    }

    #[test]
    fn action_text_round_trips() {
        let game = TicTacToe::start();
        assert!((0..9).all(|action| game.parse_action(&action.to_string()) == Ok(action)));
        assert_eq!((game.action_to_string(5).as_str(), game.parse_action(" C2 ")), ("c2", Ok(5)));
    }

    #[test]
    fn errors_name_the_text_and_the_legal_actions() {
        let text = after(&[4, 0, 2, 6, 3, 5, 1]).parse_action("b2").expect_err("taken").to_string();
        assert_eq!(text, "\"b2\" is not a legal action of tic_tac_toe: legal are b3, c3");
        assert!(after(&[0, 3, 1, 4, 2]).parse_action("c3").expect_err("over").to_string().contains("the game is over"));
        for wrong in ["", "9", "-1", "d1", "a4", "pass", "é"] {
            assert!(matches!(TicTacToe::start().parse_action(wrong), Err(Error::InvalidAction(_))), "{wrong}");
        }
    }

    #[test]
    fn board_text_shows_stones_and_status() {
        assert_eq!(after(&[4, 0]).to_string(), "  a b c\n1 O . .\n2 . X .\n3 . . .\nX to move");
        assert!(after(&[0, 3, 1, 4, 2]).to_string().ends_with("X wins"));
        assert!(after(&[0, 3, 1, 4, 8, 5]).to_string().ends_with("O wins"));
        assert!(after(&[0, 1, 2, 4, 3, 5, 7, 6, 8]).to_string().ends_with("draw"));
    }
}
