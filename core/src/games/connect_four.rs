//! Connect four on 7 columns and 6 rows. Action = column 0-6 from the left. Notation: `1`-`7`.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::{stone_symbol, write_status};
use super::game::{pack_board, win_for};
use crate::games::{Action, BoardStyle, Dimensions, Game, Playout, Symmetry};
use crate::runtime::random::Random;

// Bitboards have seven bits per column, lowest cell first. The seventh is a sentinel, always 0: lines do not wrap to the next
// column, and the carry of a full column stays in it.
pub(crate) const COLUMNS: u32 = 7;
pub(crate) const ROWS: u32 = 6;
pub(crate) const STRIDE: u32 = ROWS + 1;
pub(crate) const BOTTOM: u64 = 0x0000_0408_1020_4081;
const TOP: u64 = BOTTOM << (ROWS - 1);
pub(crate) const BOARD: u64 = (TOP << 1) - BOTTOM;
pub(crate) const COLUMN: u64 = (1 << STRIDE) - 1;
/// Bit indices of the columns' lowest cells, one byte each.
const ALL_COLUMNS: u64 = 0x2A_23_1C_15_0E_07_00;

/// Maps the bits of a column to an observation plane, whose rows are numbered from the top.
static PLANE_OF_COLUMN: [u64; 64] = {
    let mut table = [0; 64];
    let mut cells = 0;
    while cells < 64 {
        let mut row = 0;
        while row < ROWS {
            table[cells] |= (cells as u64 >> row & 1) << (COLUMNS * (ROWS - 1 - row));
            row += 1;
        }
        cells += 1;
    }
    table
};

/// A state of Connect 4. Player 0 drops X, player 1 drops O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectFour {
    /// The stones of player 0 and of player 1, bit `column * 7 + height`.
    stones: [u64; 2],
    turn: u8,
}

impl ConnectFour {
    #[inline]
    fn filled(&self) -> u64 {
        self.stones[0] | self.stones[1]
    }

    /// Returns the stones of the player to move and of the opponent.
    #[inline]
    #[must_use]
    pub fn own_and_other(&self) -> [u64; 2] {
        let own = usize::from(self.turn & 1);
        [self.stones[own], self.stones[own ^ 1]]
    }

    /// Returns the playable cells, one per open column, in ascending order.
    #[inline]
    fn landing_cells(&self) -> u64 {
        self.filled().wrapping_add(BOTTOM) & BOARD
    }

    #[inline]
    fn put(&mut self, cell: u64) {
        self.stones[usize::from(self.turn & 1)] |= cell;
        self.turn ^= 1;
    }

    fn plane(stones: u64) -> u64 {
        (0..COLUMNS).map(|column| PLANE_OF_COLUMN[(stones >> (column * STRIDE) & 63) as usize] << column).sum()
    }
}

#[inline]
fn has_line(stones: u64) -> bool {
    let line_along = |step: u32| {
        let pairs = stones & (stones >> step);
        pairs & (pairs >> (2 * step))
    };
    (line_along(1) | line_along(STRIDE - 1) | line_along(STRIDE) | line_along(STRIDE + 1)) != 0
}

/// Removes the byte at bit `shift`.
#[inline]
fn without_byte(bytes: u64, shift: u32) -> u64 {
    let before = (1 << shift) - 1;
    (bytes & before) | (bytes >> 8 & !before)
}

impl Game for ConnectFour {
    const NAME: &'static str = "connect_four";
    const TITLE: &'static str = "Connect 4";
    const COMMAND: &'static str = "connect4";
    const ALIASES: &'static [&'static str] = &["connect-four", "connectfour", "connect-4"];
    const OPENING_PLIES: u32 = 4;
    const MAX_LEGAL: usize = COLUMNS as usize;
    const BOARD: BoardStyle = BoardStyle::Holes;

    #[inline]
    fn start() -> Self {
        Self { stones: [0; 2], turn: 0 }
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: COLUMNS as usize, planes: 2, scalars: 1, height: ROWS as usize, width: COLUMNS as usize }
    }

    fn symmetries(&self) -> Vec<Symmetry> {
        let identity = Symmetry { cells: (0..(ROWS * COLUMNS) as u16).collect(), actions: (0..COLUMNS as u16).collect() };
        let mirrored = |cell: &u16| cell + COLUMNS as u16 - 1 - 2 * (cell % COLUMNS as u16);
        let mirror =
            Symmetry { cells: identity.cells.iter().map(mirrored).collect(), actions: identity.actions.iter().map(mirrored).collect() };
        vec![identity, mirror]
    }

    #[inline]
    fn to_play(&self) -> u8 {
        self.turn
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        // Only the player who moved last can have completed a line.
        let [_, other] = self.own_and_other();
        if has_line(other) {
            Some(win_for(self.turn ^ 1))
        } else {
            (self.filled() == BOARD).then_some(0)
        }
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.outcome().is_none() {
            let full = self.filled() & TOP;
            if full == 0 {
                return actions.extend_from_slice(&[0, 1, 2, 3, 4, 5, 6]);
            }
            actions.extend((0..COLUMNS as Action).filter(|column| full & COLUMN << (u32::from(*column) * STRIDE) == 0));
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        u32::from(action) < COLUMNS && self.landing_cells() & COLUMN << (u32::from(action) * STRIDE) != 0 && self.outcome().is_none()
    }

    #[inline]
    fn play(&mut self, action: Action) {
        self.put(self.landing_cells() & COLUMN.wrapping_shl(u32::from(action) * STRIDE));
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        let mut cells = self.landing_cells();
        if self.filled() & TOP == 0 {
            cells &= COLUMN << (random.choose(COLUMNS) * STRIDE);
        } else {
            for _ in 0..random.choose(cells.count_ones()) {
                cells &= cells.wrapping_sub(1);
            }
            cells &= cells.wrapping_neg();
        }
        self.put(cells);
    }

    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        if let Some(result) = self.outcome() {
            return Some(result).into();
        }
        // The lowest bits of the open columns in ascending order, one byte each.
        let (mut open_columns, mut open_count) = (ALL_COLUMNS, COLUMNS);
        let mut full = self.filled() & TOP;
        while full != 0 {
            // From the right, so that the remaining columns keep their byte positions.
            let column = full.ilog2() / STRIDE;
            full &= !(COLUMN << (column * STRIDE));
            open_columns = without_byte(open_columns, 8 * column);
            open_count -= 1;
        }
        let mut landing = self.filled().wrapping_add(BOTTOM);
        let [mut mover, mut other] = self.own_and_other();
        // A local copy stays in registers, as do the boards, which are swapped after every move.
        let mut stream = random.clone();
        let mut result = None;
        let mut left = max_depth;
        while left != 0 {
            left -= 1;
            let shift = 8 * stream.choose(open_count);
            let cell = landing & COLUMN << (open_columns >> shift & 63);
            landing = landing.wrapping_add(cell);
            (mover, other) = (other, mover | cell);
            if has_line(other) {
                // The player to move at the start makes the odd moves.
                result = Some(win_for(self.turn ^ (max_depth - left + 1) as u8 & 1));
                break;
            }
            if cell & TOP != 0 {
                open_columns = without_byte(open_columns, shift);
                open_count -= 1;
                if open_count == 0 {
                    result = Some(0);
                    break;
                }
            }
        }
        *random = stream;
        self.turn ^= (max_depth - left) as u8 & 1;
        self.stones = if self.turn == 0 { [mover, other] } else { [other, mover] };
        result.into()
    }

    fn action_to_string(&self, action: Action) -> String {
        (u32::from(action) + 1).to_string()
    }

    /// Planes (row 0 is the top row): stones of the player to move, stones of the other. Scalar: 1 if player 0 is to move, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        pack_board(self.own_and_other().map(Self::plane), self.turn, planes, scalars);
    }
}

impl fmt::Display for ConnectFour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in (0..ROWS).rev() {
            for column in 0..COLUMNS {
                let gap = if column == 0 { "" } else { " " };
                write!(formatter, "{gap}{}", stone_symbol(self.stones.map(|stones| stones >> (column * STRIDE + row) & 1 != 0)))?;
            }
            writeln!(formatter)?;
        }
        writeln!(formatter, "1 2 3 4 5 6 7")?;
        write_status(self, formatter)
    }
}

impl Analyzed for ConnectFour {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::runtime::random::Purpose;

    fn after(columns: &[Action]) -> ConnectFour {
        let mut game = ConnectFour::start();
        for &column in columns {
            assert!(game.is_legal(column), "{column} in\n{game}");
            game.play(column);
        }
        game
    }

    #[test]
    fn lines_in_all_four_directions_win() {
        let across = after(&[0, 0, 1, 1, 2, 2, 3]);
        let upward = after(&[6, 0, 5, 0, 6, 0, 5, 0]);
        let rising = after(&[0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3]);
        let falling = after(&[6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3]);
        assert_eq!([across, upward, rising, falling].map(|game| game.outcome()), [Some(1), Some(-1), Some(1), Some(1)]);
        assert!((0..9).all(|action| !across.is_legal(action)));
        assert!(across.parse_action("7").expect_err("over").to_string().contains("the game is over"));
        // Three at the top of a column and one at the bottom of the next are no line.
        assert_eq!(after(&[0, 0, 0, 0, 6, 0, 6, 0, 5, 1]).outcome(), None);
    }

    #[test]
    fn full_columns_close_and_a_full_board_is_a_draw() {
        let game = after(&[2; 6]);
        assert!(!game.is_legal(2));
        let text = game.parse_action("3").expect_err("full").to_string();
        assert_eq!(text, "\"3\" is not a legal action of connect_four: legal are 1, 2, 4, 5, 6, 7");
        let mut draws = 0;
        for seed in 0..5000 {
            let mut game = ConnectFour::start();
            if game.playout(&mut Random::new(seed, Purpose::Playout), 42).result == Some(0) {
                draws += 1;
                assert_eq!((game.filled(), game.outcome(), game.to_play()), (BOARD, Some(0), 0));
                assert!((0..9).all(|action| !game.is_legal(action)));
                assert!(game.to_string().ends_with("draw"));
            }
        }
        assert!(draws > 0);
    }

    #[test]
    fn board_text_starts_at_the_top() {
        let game = after(&[3, 3, 6]);
        let empty = ". . . . . . .\n";
        assert_eq!(game.to_string(), empty.repeat(4) + ". . . O . . .\n. . . X . . X\n1 2 3 4 5 6 7\nO to move");
        for wrong in ["", "0", "8", "a1", "-1"] {
            assert!(matches!(game.parse_action(wrong), Err(Error::InvalidAction(_))), "{wrong}");
        }
    }
}
