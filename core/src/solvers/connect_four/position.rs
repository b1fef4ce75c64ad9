//! A position of Connect 4 as the solver wants it: with the cells that win, and the moves that do not lose at once.

use crate::games::connect_four::{ConnectFour, BOARD, BOTTOM, COLUMN, COLUMNS, ROWS, STRIDE};

/// Cells of the board.
pub(super) const CELLS: u32 = COLUMNS * ROWS;

/// The first row from below, the third and the fifth.
const ODD_ROWS: u64 = BOTTOM * 0b1_0101;

/// A position in which the game goes on. Cells are bits as in `games::connect_four`.
#[derive(Clone, Copy)]
pub(super) struct Position {
    own: u64,
    filled: u64,
    /// Empty cells, whether a stone can fall there now or not, that would complete a line of the player to move; of the other.
    own_wins: u64,
    other_wins: u64,
    /// Stones on the board.
    pub stones: u32,
}

impl Position {
    pub(super) fn of(state: &ConnectFour) -> Self {
        let [own, other] = state.own_and_other();
        let filled = own | other;
        let [own_wins, other_wins] = [own, other].map(|stones| completing(stones) & !filled);
        Self { own, filled, own_wins, other_wins, stones: filled.count_ones() }
    }

    /// The cells where a stone would come to lie, one for each open column.
    #[inline]
    pub(super) fn landing(&self) -> u64 {
        (self.filled + BOTTOM) & BOARD
    }

    /// Whether the player to move can end the game with a line.
    #[inline]
    pub(super) fn wins_at_once(&self) -> bool {
        self.own_wins & self.landing() != 0
    }

    /// Whether a stone in `cell` makes a line.
    pub(super) fn wins_by(&self, cell: u64) -> bool {
        self.own_wins & cell != 0
    }

    /// The moves, as cells, after which the other player cannot win at once. Meant for players who cannot win at once themselves.
    #[inline]
    pub(super) fn safe_moves(&self) -> u64 {
        let landing = self.landing();
        let forced = self.other_wins & landing;
        let moves = match forced {
            0 => landing,
            // One stone answers one threat; two cannot be answered.
            _ if forced & (forced - 1) == 0 => forced,
            _ => return 0,
        };
        // A stone right below a winning cell of the other player gives it away.
        moves & !(self.other_wins >> 1)
    }

    /// The position after a stone in `cell`, which makes no line.
    #[inline]
    pub(super) fn after(&self, cell: u64) -> Self {
        let filled = self.filled | cell;
        Self {
            own: self.own ^ self.filled,
            filled,
            own_wins: self.other_wins & !cell,
            other_wins: completing(self.own | cell) & !filled,
            stones: self.stones + 1,
        }
    }

    /// How well the player who has just moved threatens, for the order of moves: two for each winning cell, and one more if it
    /// will be his to fill. When all other columns are full, the first player has to fill odd rows (counted from 1), the second
    /// even ones; a cell that can be filled now is blocked now.
    #[inline]
    pub(super) fn threat_worth(&self) -> u32 {
        let rows = if self.stones % 2 == 1 { ODD_ROWS } else { ODD_ROWS << 1 };
        2 * self.other_wins.count_ones() + (self.other_wins & !self.landing() & rows).count_ones()
    }

    /// A number that no other position has, below 2^49: in each column, a one above the stones of the player to move. A position
    /// and its mirror image have the same where `mirrored` is asked for; the second part says whether this one was turned.
    #[inline]
    pub(super) fn key(&self, mirrored: bool) -> (u64, bool) {
        // The stones of a column of height h are 2^h - 1; with own stones (at most that much) added, columns of other heights
        // give other numbers, and none runs over into the next column.
        let key = self.own + self.filled;
        if mirrored {
            let image = mirror(key);
            if image < key {
                return (image, true);
            }
        }
        (key, false)
    }
}

/// The cells that would complete a line of `stones`; those that hold a stone are not taken out.
#[inline]
fn completing(stones: u64) -> u64 {
    // Upwards only the cell on top of three can be empty.
    let mut cells = (stones << 1) & (stones << 2) & (stones << 3);
    for step in [STRIDE - 1, STRIDE, STRIDE + 1] {
        // Two neighbours on one side: with a third behind them, or with one on the other side.
        let pair = (stones << step) & (stones << (2 * step));
        cells |= pair & ((stones << (3 * step)) | (stones >> step));
        let pair = (stones >> step) & (stones >> (2 * step));
        cells |= pair & ((stones >> (3 * step)) | (stones << step));
    }
    cells & BOARD
}

/// Columns in the opposite order.
#[inline]
fn mirror(bits: u64) -> u64 {
    const WIDTH: u32 = STRIDE;
    let pair = |left: u32| {
        let right = COLUMNS - 1 - left;
        let distance = (right - left) * WIDTH;
        let from = COLUMN << (left * WIDTH);
        ((bits & from) << distance) | ((bits >> distance) & from)
    };
    pair(0) | pair(1) | pair(2) | (bits & (COLUMN << (3 * WIDTH)))
}

/// All cells of a column.
#[inline]
pub(super) fn cells_of(column: u32) -> u64 {
    COLUMN << (column * STRIDE)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::games::{Action, Game};
    use crate::runtime::random::{Purpose, Random};

    fn random_games(games: u64, mut look: impl FnMut(&ConnectFour, &[Action])) {
        for seed in 0..games {
            let mut random = Random::new(seed, Purpose::Playout);
            let (mut state, mut actions) = (ConnectFour::start(), Vec::new());
            while state.outcome().is_none() {
                look(&state, &actions);
                let mut legal = Vec::new();
                state.legal_actions(&mut legal);
                actions.push(legal[random.choose(legal.len() as u32) as usize]);
                state.play(actions[actions.len() - 1]);
            }
        }
    }

    /// Whether the player to move has a move that ends the game with a line.
    fn can_win(state: &ConnectFour) -> bool {
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        legal.iter().any(|&action| {
            let mut next = *state;
            next.play(action);
            next.outcome().is_some_and(|result| result != 0)
        })
    }

    #[test]
    fn winning_and_safe_moves_are_those_that_playing_shows() {
        random_games(400, |state, _| {
            let position = Position::of(state);
            assert_eq!(position.wins_at_once(), can_win(state), "{state}");
            let safe = position.safe_moves();
            for column in 0..COLUMNS {
                let cell = position.landing() & cells_of(column);
                assert_eq!(cell != 0, state.is_legal(column as Action));
                if cell == 0 {
                    continue;
                }
                let mut next = *state;
                next.play(column as Action);
                let wins = next.outcome().is_some_and(|result| result != 0);
                assert_eq!(position.wins_by(cell), wins, "{column} in\n{state}");
                if !wins {
                    assert_eq!(safe & cell != 0, !can_win(&next), "{column} in\n{state}");
                    let (after, fresh) = (position.after(cell), Position::of(&next));
                    assert_eq!((after.own, after.filled, after.stones), (fresh.own, fresh.filled, fresh.stones));
                    assert_eq!((after.own_wins, after.other_wins), (fresh.own_wins, fresh.other_wins), "{column} in\n{state}");
                }
            }
        });
    }

    #[test]
    fn keys_tell_positions_apart_but_not_from_their_mirror_images() {
        let mut seen: HashMap<u64, ConnectFour> = HashMap::new();
        random_games(400, |state, actions| {
            let position = Position::of(state);
            let (key, turned) = position.key(false);
            assert!(key < 1 << 49 && !turned);
            assert_eq!(seen.entry(key).or_insert(*state), state);
            let mut image = ConnectFour::start();
            for &action in actions {
                image.play(6 - action);
            }
            let ((one, one_turned), (other, other_turned)) = (position.key(true), Position::of(&image).key(true));
            assert_eq!(one, other, "{state}");
            assert_eq!(one_turned != other_turned, image != *state, "{state}");
        });
        assert!(seen.len() > 5_000);
    }
}
