//! Pawn structure: doubled, isolated, passed and protected pawns.

use cozy_chess::{BitBoard, Board, Color, Piece::Pawn};

/// Pawn bitboards relative to one side: `own` moves up.
pub(in crate::chess) struct Pawns {
    pub(super) own: u64,
    pub(super) enemy: u64,
    color: Color,
}

const A_FILE: u64 = 0x0101_0101_0101_0101;
const H_FILE: u64 = A_FILE << 7;

impl Pawns {
    pub(in crate::chess) fn of(board: &Board, color: Color) -> Self {
        let pawns = board.pieces(Pawn);
        let mut found = Self { own: 0, enemy: 0, color };
        found.own = found.relative(pawns & board.colors(color));
        found.enemy = found.relative(pawns & board.colors(!color));
        found
    }

    /// Flips squares vertically if `own` is Black; self-inverse.
    pub(in crate::chess) fn relative(&self, squares: BitBoard) -> u64 {
        match self.color {
            Color::White => squares.0,
            Color::Black => squares.0.swap_bytes(),
        }
    }

    pub(super) fn doubled(&self) -> u64 {
        self.own & below(self.own)
    }

    pub(super) fn isolated(&self) -> u64 {
        self.own & !adjacent_files(files(self.own))
    }

    /// Returns the front spans of enemy pawns, adjacent files included: own pawns there are not passed.
    pub(in crate::chess) fn stopped(&self) -> u64 {
        let stopped = below(self.enemy);
        stopped | adjacent_files(stopped)
    }

    pub(super) fn passed(&self) -> u64 {
        self.own & !(self.stopped() | below(self.own))
    }

    pub(super) fn guards(&self) -> u64 {
        adjacent_files(self.own << 8)
    }

    pub(super) fn enemy_guards(&self) -> u64 {
        adjacent_files(self.enemy >> 8)
    }

    /// Returns the attack spans of enemy pawns: squares that they attack now or after advancing.
    pub(super) fn enemy_guards_ever(&self) -> u64 {
        adjacent_files(below(self.enemy))
    }

    pub(super) fn guarded(&self) -> u64 {
        self.own & self.guards()
    }
}

/// Returns the squares on adjacent files.
fn adjacent_files(squares: u64) -> u64 {
    (squares & !A_FILE) >> 1 | (squares & !H_FILE) << 1
}

/// Returns the rear spans: all squares below on the same file.
fn below(squares: u64) -> u64 {
    let mut fill = squares >> 8;
    fill |= fill >> 8;
    fill |= fill >> 16;
    fill | fill >> 32
}

/// Returns the file fill: all squares of the occupied files.
pub(super) fn files(squares: u64) -> u64 {
    let mut fill = squares | squares >> 32;
    fill |= fill >> 16;
    fill |= fill >> 8;
    (fill & 0xff) * A_FILE
}
