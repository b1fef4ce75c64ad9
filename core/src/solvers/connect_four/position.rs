//! Bitboard positions of the solver: winning cells and non-losing moves.

use crate::games::connect_four::{ConnectFour, BOARD, BOTTOM, COLUMN, COLUMNS, ROWS, STRIDE};

/// Cells of the board.
pub(super) const CELLS: u32 = COLUMNS * ROWS;

/// Rows 1, 3 and 5 from below.
const ODD_ROWS: u64 = BOTTOM * 0b1_0101;

/// A nonterminal position. Cells are bits as in `games::connect_four`.
#[derive(Clone, Copy)]
pub(super) struct Position {
    own: u64,
    filled: u64,
    /// Winning cells (threats) of the player to move, playable or not; of the opponent.
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

    /// Returns the playable cells, one per open column.
    #[inline]
    pub(super) fn landing(&self) -> u64 {
        (self.filled + BOTTOM) & BOARD
    }

    /// Returns whether the player to move can complete a line.
    #[inline]
    pub(super) fn wins_at_once(&self) -> bool {
        self.own_wins & self.landing() != 0
    }

    /// Returns whether a stone in `cell` completes a line.
    pub(super) fn wins_by(&self, cell: u64) -> bool {
        self.own_wins & cell != 0
    }

    /// Returns the non-losing moves, as cells: the opponent cannot win at once. Requires that the player to move cannot either.
    #[inline]
    pub(super) fn safe_moves(&self) -> u64 {
        let landing = self.landing();
        let forced = self.other_wins & landing;
        let moves = match forced {
            0 => landing,
            // One stone blocks one threat; a double threat is lost.
            _ if forced & (forced - 1) == 0 => forced,
            _ => return 0,
        };
        // A stone directly below a winning cell of the opponent makes it playable.
        moves & !(self.other_wins >> 1)
    }

    /// Returns the position after a stone in `cell`, which completes no line.
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

    /// Returns the threat score of the player who moved last, for move ordering: 2 per winning cell, 3 if zugzwang lets that
    /// player fill it (odd rows, counted from 1, for the first player, even ones for the second); a playable cell is
    /// blocked at once.
    #[inline]
    pub(super) fn threat_score(&self) -> u32 {
        let rows = if self.stones % 2 == 1 { ODD_ROWS } else { ODD_ROWS << 1 };
        2 * self.other_wins.count_ones() + (self.other_wins & !self.landing() & rows).count_ones()
    }

    /// Returns a unique key below 2^49: per column, a one above the stones of the player to move. With `mirrored`, a position
    /// and its mirror image share the key; the second value tells whether this one was mirrored.
    #[inline]
    pub(super) fn key(&self, mirrored: bool) -> (u64, bool) {
        // A column of height h has the stones 2^h - 1; adding own stones (at most as much) keeps columns of different heights
        // distinct and does not carry into the next column.
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

/// Returns the cells that complete a line of `stones`, occupied ones included.
#[inline]
fn completing(stones: u64) -> u64 {
    // Vertically only the cell above three stones can be empty.
    let mut cells = (stones << 1) & (stones << 2) & (stones << 3);
    for step in [STRIDE - 1, STRIDE, STRIDE + 1] {
        // Two adjacent stones on one side: with a third behind them, or with one on the other side.
        let pair = (stones << step) & (stones << (2 * step));
        cells |= pair & ((stones << (3 * step)) | (stones >> step));
        let pair = (stones >> step) & (stones >> (2 * step));
        cells |= pair & ((stones >> (3 * step)) | (stones << step));
    }
    cells & BOARD
}

/// Reverses the order of columns.
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

/// Returns all cells of a column.
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

    fn random_games(games: u64, mut count_threats: impl FnMut(&ConnectFour, &[Action])) {
        for seed in 0..games {
            let mut random = Random::new(seed, Purpose::Playout);
            let (mut state, mut actions) = (ConnectFour::start(), Vec::new());
            while state.outcome().is_none() {
                count_threats(&state, &actions);
                let legal = state.legal();
                actions.push(legal[random.choose(legal.len() as u32) as usize]);
                state.play(actions[actions.len() - 1]);
            }
        }
    }

    /// Returns whether the player to move has a winning move.
    fn can_win(state: &ConnectFour) -> bool {
        state.legal().into_iter().any(|action| state.after(action).outcome().is_some_and(|result| result != 0))
    }

    #[test]
    fn threats_match_played_positions() {
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
                let next = state.after(column as Action);
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
    fn keys_are_unique_up_to_mirroring() {
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
