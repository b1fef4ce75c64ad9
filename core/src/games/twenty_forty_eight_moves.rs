//! The moves of 2048 by tables of rows.

use std::sync::LazyLock;

pub(super) const CELLS: usize = SIDE * SIDE;
pub(super) const SIDE: usize = 4;
/// The highest exponent of a tile, which does not merge.
pub(super) const LARGEST: u64 = 15;
pub(super) const PROBABILITIES: [f64; 2] = [0.9, 0.1];

/// What moves do to a row.
#[derive(Clone, Copy, Default)]
pub(super) struct RowMoves {
    left: u16,
    right: u16,
    /// The value of the new tiles, the same in both directions.
    reward: u32,
}

pub(super) struct Tables {
    /// By row, four bits a cell.
    pub(super) rows: Box<[RowMoves]>,
    /// By the number of empty cells, the sums of the probabilities of the first outcomes.
    pub(super) cumulative: Vec<Vec<f64>>,
}

pub(super) static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let reverse = |row: u16| row >> 12 | row >> 4 & 0xF0 | row << 4 & 0xF00 | row << 12;
    let mut rows = vec![RowMoves::default(); 1 << 16];
    for row in 0..=u16::MAX {
        let (left, reward) = slide_left(row);
        (rows[usize::from(row)].left, rows[usize::from(row)].reward) = (left, reward);
        rows[usize::from(reverse(row))].right = reverse(left);
    }
    let sums = |empty: usize| {
        let mut total = 0.0;
        let outcomes = (0..empty).flat_map(|_| PROBABILITIES);
        outcomes
            .map(|probability| {
                total += probability / empty as f64;
                total
            })
            .collect()
    };
    Tables { rows: rows.into(), cumulative: (0..=CELLS).map(sums).collect() }
});

/// Slides a row towards its first cell; returns it with the value of the new tiles.
fn slide_left(row: u16) -> (u16, u32) {
    let (mut slid, mut place, mut reward) = (0, 0, 0);
    // The last tile if it may still merge.
    let mut open = 0;
    for cell in 0..SIDE {
        let tile = row >> (4 * cell) & 15;
        if tile == 0 {
            continue;
        }
        if tile == open && u64::from(tile) < LARGEST {
            slid += 1 << (4 * (place - 1));
            reward += 2 << tile;
            open = 0;
        } else {
            slid |= tile << (4 * place);
            place += 1;
            open = tile;
        }
    }
    (slid, reward)
}

/// Exchanges rows and columns.
#[inline]
pub(super) fn transpose(board: u64) -> u64 {
    let pairs = board & 0xF0F0_0F0F_F0F0_0F0F | (board & 0x0000_F0F0_0000_F0F0) << 12 | (board & 0x0F0F_0000_0F0F_0000) >> 12;
    pairs & 0xFF00_FF00_00FF_00FF | (pairs & 0x00FF_00FF_0000_0000) >> 24 | (pairs & 0x0000_0000_FF00_FF00) << 24
}

/// Returns the rows slid to the left and to the right, and the value of the new tiles.
#[inline]
pub(super) fn slide(board: u64) -> (u64, u64, u32) {
    let rows = &TABLES.rows;
    let (mut left, mut right, mut reward) = (0, 0, 0);
    for shift in [0, 16, 32, 48] {
        let moves = rows[usize::from((board >> shift) as u16)];
        left |= u64::from(moves.left) << shift;
        right |= u64::from(moves.right) << shift;
        reward += moves.reward;
    }
    (left, right, reward)
}
