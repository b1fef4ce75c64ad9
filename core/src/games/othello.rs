//! Othello on 8x8, numbered as in OpenSpiel: action `row * 8 + column` with a1 = 0 at the top left, 64 = pass.
//!
//! Player 0 is Black and moves first (drawn as X). A player without a move must pass while the other has one;
//! the game ends when neither has, and the player with more discs wins. Notation: `d3`, `pass`.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::{square_name, write_board, write_status};
use super::game::pack_board;
use super::ranked_bits::{bits, RankedBits};
use crate::games::{Action, BoardStyle, Dimensions, Game, Symmetry};
use crate::runtime::random::Random;

const PASS: Action = 64;
/// All columns but the outer two: horizontal and diagonal runs of flipped discs never contain those.
const INNER_COLUMNS: u64 = 0x7E7E_7E7E_7E7E_7E7E;

/// Rays by square: right, down left, down, down right, all of higher bits; and left.
static RAYS: [[u64; 5]; 64] = {
    const STEPS: [(i32, i32); 5] = [(0, 1), (1, -1), (1, 0), (1, 1), (0, -1)];
    let mut table = [[0; 5]; 64];
    let mut square = 0;
    while square < 64 {
        let mut direction = 0;
        while direction < STEPS.len() {
            let (down, right) = STEPS[direction];
            let (mut row, mut column) = (square as i32 / 8 + down, square as i32 % 8 + right);
            while row < 8 && column >= 0 && column < 8 {
                table[square][direction] |= 1 << (row * 8 + column);
                row += down;
                column += right;
            }
            direction += 1;
        }
        square += 1;
    }
    table
};

/// Returns the squares where `own` can move (Kogge-Stone fill).
#[inline]
fn moves(own: u64, other: u64) -> u64 {
    // The fill reaches 1, 2, 4, then 6 steps, the longest run between two ends.
    let both_ways = |step: u32, run: u64| {
        let mut up = run & own << step;
        let mut down = run & own >> step;
        up |= run & up << step;
        down |= run & down >> step;
        let pairs_up = run & run << step;
        let pairs_down = pairs_up >> step;
        up |= pairs_up & up << (2 * step);
        down |= pairs_down & down >> (2 * step);
        up |= pairs_up & up << (2 * step);
        down |= pairs_down & down >> (2 * step);
        up << step | down >> step
    };
    let inner = other & INNER_COLUMNS;
    let reached = both_ways(1, inner) | both_ways(7, inner) | both_ways(8, other) | both_ways(9, inner);
    reached & !(own | other)
}

/// Cold: called only if the player to move has no move, so kept out of the playout loop.
#[cold]
fn can_move(own: u64, other: u64) -> bool {
    moves(own, other) != 0
}

/// Returns the discs of `other` that a move of `own` to `square` flips.
#[inline]
fn flips(own: u64, other: u64, square: usize) -> u64 {
    // Adding one to the other's discs, with all bits outside the ray set, carries to the first square of the ray without one: an
    // own disc there closes the run. Upward rays are downward rays of the vertically flipped board.
    let closed_run = |own: u64, other: u64, ray: u64| {
        let end = (other | !ray).wrapping_add(1) & ray & own;
        end.saturating_sub(1) & ray
    };
    let square = square & 63;
    let [right, down_left, down, down_right, left] = RAYS[square];
    let [_, up_left, up, up_right, _] = RAYS[square ^ 56];
    let (own_flipped, other_flipped) = (own.swap_bytes(), other.swap_bytes());
    let flipped_down = closed_run(own, other, right)
        | closed_run(own, other, down_left)
        | closed_run(own, other, down)
        | closed_run(own, other, down_right);
    let flipped_up = closed_run(own_flipped, other_flipped, up_left)
        | closed_run(own_flipped, other_flipped, up)
        | closed_run(own_flipped, other_flipped, up_right);
    // To the left, towards lower bits, there is no carry: the first square without a disc of `other` is the highest such bit.
    let end = 1 << 63 >> (left & !other | 1).leading_zeros() & left & own;
    let flipped_left = (end.wrapping_neg() << 1) & left;
    flipped_down | flipped_left | flipped_up.swap_bytes()
}

/// A state of Othello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Othello {
    /// The discs of the player to move, bit `row * 8 + column`.
    own: u64,
    /// The discs of the other player.
    other: u64,
    /// The legal moves, stored since they also decide passes and the end of the game.
    moves: u64,
    turn: u8,
    over: bool,
}

impl Othello {
    #[inline]
    fn with_discs(own: u64, other: u64, turn: u8) -> Self {
        let moves_here = moves(own, other);
        Self { own, other, moves: moves_here, turn, over: moves_here == 0 && !can_move(other, own) }
    }

    /// Returns the discs of player 0 and of player 1.
    fn discs(&self) -> [u64; 2] {
        if self.turn == 0 {
            [self.own, self.other]
        } else {
            [self.other, self.own]
        }
    }
}

impl Game for Othello {
    const NAME: &'static str = "othello";
    const TITLE: &'static str = "Othello";
    const ALIASES: &'static [&'static str] = &["reversi"];
    const OPENING_PLIES: u32 = 6;
    /// Four squares are occupied from the start.
    const MAX_LEGAL: usize = 60;
    const BOARD: BoardStyle = BoardStyle::Felt;

    #[inline]
    fn start() -> Self {
        Self::with_discs(1 << 28 | 1 << 35, 1 << 27 | 1 << 36, 0)
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: 65, planes: 2, scalars: 1, height: 8, width: 8 }
    }

    fn symmetries(&self) -> Vec<Symmetry> {
        Symmetry::of_square(self.dimensions())
    }

    #[inline]
    fn to_play(&self) -> u8 {
        self.turn
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        self.over.then(|| {
            let [black, white] = self.discs().map(u64::count_ones);
            black.cmp(&white) as i8
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        actions.extend(bits(self.moves));
        if self.is_legal(PASS) {
            actions.push(PASS);
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        if action < PASS {
            self.moves >> action & 1 != 0
        } else {
            action == PASS && self.moves == 0 && !self.over
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        let (mut own, mut other) = (self.own, self.other);
        if action != PASS {
            let flipped = flips(own, other, usize::from(action));
            own |= flipped | 1 << (action & 63);
            other &= !flipped;
        }
        *self = Self::with_discs(other, own, self.turn ^ 1);
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        // A forced pass draws no random number.
        self.play(if self.moves == 0 { PASS } else { RankedBits::new([self.moves]).choose(random) as Action });
    }

    fn action_to_string(&self, action: Action) -> String {
        match action {
            PASS => "pass".to_owned(),
            square => square_name(square, 8),
        }
    }

    /// Planes: discs of the player to move, discs of the other. Scalar: 1 if player 0 is to move, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        pack_board([self.own, self.other], self.turn, planes, scalars);
    }
}

impl fmt::Display for Othello {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_board(formatter, 8, 0, |row| row + 1, |square| self.discs().map(|discs| discs >> square & 1 != 0))?;
        write_status(self, formatter)
    }
}

impl Analyzed for Othello {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pass_is_legal_only_without_moves() {
        // White on a1, black on b1, c1 empty: Black, to move, cannot close a run; White takes c1.
        let mut game = Othello::with_discs(1 << 1, 1, 0);
        assert!((0..66).all(|action| game.is_legal(action) == (action == PASS)));
        assert_eq!(game.parse_action("Pass"), Ok(PASS));
        assert!(game.parse_action("c1").is_err_and(|error| error.to_string().ends_with("othello: legal are pass")));
        game.play(PASS);
        assert!(game.is_legal(2) && !game.is_legal(PASS) && !game.is_legal(65));
        game.play(2);
        assert_eq!((game.outcome(), game.other, game.own), (Some(-1), 0b111, 0));
        assert!((0..66).all(|action| !game.is_legal(action)));
        assert!(game.to_string().ends_with("O wins"));
    }

    #[test]
    fn full_boards_are_decided_by_disc_count() {
        for (black, result) in [(u64::MAX, 1), (u64::MAX << 32, 0), (u64::MAX << 33, -1)] {
            assert_eq!(Othello::with_discs(black, !black, 0).outcome(), Some(result));
            assert_eq!(Othello::with_discs(!black, black, 1).outcome(), Some(result));
        }
    }
}
