//! Breakthrough on 8x8 with the rules and the coordinates of OpenSpiel: player 0 (X) starts on ranks 8 and 7 and moves down,
//! player 1 (O) on ranks 1 and 2 and moves up.
//!
//! A piece moves one square straight or diagonally forward to an empty square; diagonally it also captures. A piece on the last
//! rank wins, and so does the capture of all pieces; there is always a move, and no draw.
//!
//! Actions are numbered from the mover's side, so that a network need not tell the players apart: `square * 3 + direction`, where
//! the square is the origin's `row * 8 + file`, row 0 being the mover's first rank, and the direction 0 towards the a-file, 1
//! straight, 2 towards the h-file. Notation: `a7a6`, `a7xb6`; parsed too are `a7b6` and OpenSpiel's `a7b6*` for a capture.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::{parse_by_name, write_board, write_status};
use super::game::{pack_board, win_for};
use super::ranked_bits::{bits, RankedBits};
use crate::error::Error;
use crate::games::{Action, BoardStyle, Dimensions, Game, Symmetry};
use crate::runtime::random::Random;

const NUM_ACTIONS: usize = 64 * 3;
const FIRST_RANK: u64 = 0xFF;
const A_FILE: u64 = 0x0101_0101_0101_0101;
const H_FILE: u64 = A_FILE << 7;

/// A state of Breakthrough, from the mover's side: bit `row * 8 + file`, row 0 being the mover's first rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Breakthrough {
    /// The pieces of the player to move.
    own: u64,
    /// The pieces of the other player.
    other: u64,
    turn: u8,
}

impl Breakthrough {
    /// Returns the origins of the legal moves by direction.
    #[inline]
    fn origins(&self) -> [u64; 3] {
        if self.outcome().is_some() {
            return [0; 3];
        }
        let (own, other) = (self.own, self.other);
        [own & !A_FILE & !(own >> 7), own & !((own | other) >> 8), own & !H_FILE & !(own >> 9)]
    }

    /// Converts a square from the mover's side to one numbered by rows from the top, or back.
    fn numbered_from_top(&self, square: Action) -> Action {
        if self.turn == 0 {
            square
        } else {
            square ^ 56
        }
    }

    fn square_name(&self, square: Action) -> String {
        let square = self.numbered_from_top(square);
        format!("{}{}", char::from(b'a' + (square % 8) as u8), 8 - square / 8)
    }
}

impl Game for Breakthrough {
    const NAME: &'static str = "breakthrough";
    const TITLE: &'static str = "Breakthrough";
    const OPENING_PLIES: u32 = 4;
    const MAX_LEGAL: usize = 48;
    const POLICY_PLANES: usize = 3;
    const BOARD: BoardStyle = BoardStyle::Checkered;

    fn start() -> Self {
        Self { own: 0xFFFF, other: 0xFFFF << 48, turn: 0 }
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: NUM_ACTIONS, planes: 2, scalars: 1, height: 8, width: 8 }
    }

    /// The identity and the reflection that exchanges the a-file and the h-file.
    fn symmetries(&self) -> Vec<Symmetry> {
        let identity = Symmetry::of_cells(self.dimensions(), |cell| cell);
        let cells = identity.cells.iter().map(|cell| cell ^ 7).collect();
        let actions = identity.actions.iter().map(|action| ((action / 3) ^ 7) * 3 + 2 - action % 3).collect();
        vec![identity, Symmetry { cells, actions }]
    }

    #[inline]
    fn to_play(&self) -> u8 {
        self.turn
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        // Only the player who has just moved can have won.
        (self.other & FIRST_RANK != 0 || self.own == 0).then(|| win_for(self.turn ^ 1))
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        for (direction, origins) in (0..).zip(self.origins()) {
            actions.extend(bits(origins).map(|origin| 3 * origin + direction));
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        usize::from(action) < NUM_ACTIONS && self.origins()[usize::from(action % 3)] >> (action / 3) & 1 != 0
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let origin = 1 << (action / 3 % 64);
        let target = origin << (7 + action % 3);
        let own = self.own ^ origin | target;
        // The other player sees the board from the opposite side.
        *self = Self { own: (self.other & !target).swap_bytes(), other: own.swap_bytes(), turn: self.turn ^ 1 };
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        let chosen = RankedBits::new(self.origins()).choose(random) as Action;
        self.play(chosen % 64 * 3 + chosen / 64);
    }

    fn action_to_string(&self, action: Action) -> String {
        let (origin, target) = (action / 3 % 64, (action / 3 + 7 + action % 3) % 64);
        let capture = if self.other >> target & 1 != 0 { "x" } else { "" };
        format!("{}{capture}{}", self.square_name(origin), self.square_name(target))
    }

    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        let given = text.trim().to_ascii_lowercase();
        let means = |action: &Action| {
            let name = self.action_to_string(*action);
            let squares = name.replace('x', "");
            given == name || given == squares || name != squares && given == squares + "*"
        };
        self.legal().into_iter().find(means).map_or_else(|| parse_by_name(self, text), Ok)
    }

    /// Planes: pieces of the player to move, pieces of the other; row 0 is the mover's first rank, column 0 the a-file. Scalar: 1 if
    /// player 0 is to move, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        pack_board([self.own, self.other], self.turn, planes, scalars);
    }
}

impl fmt::Display for Breakthrough {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = if self.turn == 0 { [self.own, self.other] } else { [self.other, self.own] };
        let held = |square| pieces.map(|pieces| pieces >> self.numbered_from_top(square as Action) & 1 != 0);
        write_board(formatter, 8, 0, |row| 8 - row, held)?;
        write_status(self, formatter)
    }
}

impl Analyzed for Breakthrough {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn board_text_has_rank_8_at_the_top() {
        let mut game = Breakthrough::start();
        game.play(game.parse_action("a7a6").expect("legal"));
        let text = game.to_string();
        assert!(text.starts_with("  a b c d e f g h\n8 X X X X X X X X\n7 . X X X X X X X\n6 X . . ."), "{text}");
        assert!(text.ends_with("\n1 O O O O O O O O\nO to move"), "{text}");
    }

    #[test]
    fn capture_of_all_pieces_wins() {
        let mut game = Breakthrough { own: 1 << 20, other: 1 << 29, turn: 1 };
        let action = game.parse_action("e3xf4").expect("legal");
        assert_eq!((game.action_to_string(action).as_str(), game.parse_action("e3f4")), ("e3xf4", Ok(action)));
        assert_eq!(game.parse_action(" E3F4* "), Ok(action));
        for wrong in ["xe3f4", "e3*f4", "e3xf4*", "e3f4x", "e3f4**", "exf4", "e3e4*", "e3xe4"] {
            assert!(game.parse_action(wrong).is_err(), "{wrong}");
        }
        game.play(action);
        assert_eq!((game.outcome(), game.own), (Some(-1), 0));
        assert!(game.to_string().ends_with("O wins"));
    }

    #[test]
    fn errors_name_the_text_and_the_legal_actions() {
        let text = Breakthrough::start().parse_action("a2a3").expect_err("the other's piece").to_string();
        assert!(text.starts_with("\"a2a3\" is not a legal action of breakthrough: legal are b7a6, c7b6, "), "{text}");
    }
}
