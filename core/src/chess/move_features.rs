//! Sparse features of moves, computed without playing them: destination, capture, risk, attacks.
//!
//! A feature is an index below `FEATURES`. A move has a dozen active features with values up to 1; square features are tapered
//! between middlegame and endgame by material. Squares are relative to the mover. `move_scores` weights them.

use cozy_chess::{
    BitBoard, Board, Color,
    Piece::{self, Bishop, King, Knight, Pawn, Queen, Rook},
    Square,
};

use super::evaluation::attacks::{attacks, distance};
use super::evaluation::pawns::Pawns;
use super::move_category::{Categorized, MoveCategory};
use crate::games::chess::{is_castling, Chess};

/// Captured piece: none, pawn, knight, bishop, rook, queen.
const VICTIMS: usize = 6;
/// Levels of `MoveFeatureContext::risk`.
const RISKS: usize = 4;

// The first index of each group of features.
const EXCHANGE: usize = 0;
const TO_SQUARE: usize = EXCHANGE + 6 * VICTIMS * RISKS * RISKS;
const FROM_SQUARE: usize = TO_SQUARE + 2 * 6 * 64;
const CHECK: usize = FROM_SQUARE + 2 * 6 * 64;
const PROMOTION: usize = CHECK + 6 * RISKS;
const CASTLING: usize = PROMOTION + 6;
const NEAR_KING: usize = CASTLING + 2;
const ATTACK: usize = NEAR_KING + 6 * 8;
const GUARD: usize = ATTACK + 6 * 6 * 2;
const PASSED: usize = GUARD + 6;
const EVASION: usize = PASSED + 8;
const RECAPTURE: usize = EVASION + 6 * 2;
const OUTCOME: usize = RECAPTURE + 6;
/// Number of features.
pub const FEATURES: usize = OUTCOME + 4 * VICTIMS;

/// Attack information of one position: computed once, queried per move.
pub struct MoveFeatureContext<'a> {
    board: &'a Board,
    color: Color,
    enemy_king: Square,
    /// Squares attacked by enemy pawns; by pawns and minor pieces; by rooks as well; by any piece.
    threats: [BitBoard; 4],
    /// Squares attacked by own pieces, once and at least twice.
    guarded: BitBoard,
    guarded_twice: BitBoard,
    /// Own pieces under a profitable attack.
    at_risk: BitBoard,
    /// Front spans of enemy pawns, adjacent files included: own pawns there are not passed.
    stopped: BitBoard,
    in_check: bool,
    /// Square of the last capture.
    captured_on: Option<Square>,
    /// Game phase, from 0 (endgame) to 1.
    middlegame: f32,
}

impl<'a> MoveFeatureContext<'a> {
    /// Computes the attacks of a position.
    #[must_use]
    pub fn new(game: &'a Chess) -> Self {
        let board = game.board();
        let color = board.side_to_move();
        let enemy = board.colors(!color);
        let mut threats = [BitBoard::EMPTY; 4];
        for (level, pieces) in [&[Pawn][..], &[Knight, Bishop], &[Rook], &[Queen, King]].into_iter().enumerate() {
            if level > 0 {
                threats[level] = threats[level - 1];
            }
            for &piece in pieces {
                for square in enemy & board.pieces(piece) {
                    threats[level] |= attacks(piece, !color, square, board.occupied());
                }
            }
        }
        let pawns = Pawns::of(board, color);
        let own = board.colors(color);
        let (mut guarded, mut guarded_twice) = (BitBoard::EMPTY, BitBoard::EMPTY);
        for piece in Piece::ALL {
            for square in own & board.pieces(piece) {
                let reached = attacks(piece, color, square, board.occupied());
                guarded_twice |= guarded & reached;
                guarded |= reached;
            }
        }
        let phase = [(Knight, 1), (Bishop, 1), (Rook, 2), (Queen, 4)].into_iter().map(|(piece, count)| board.pieces(piece).len() * count);
        let mut found = Self {
            board,
            color,
            enemy_king: board.king(!color),
            threats,
            guarded,
            guarded_twice,
            at_risk: BitBoard::EMPTY,
            stopped: BitBoard(pawns.relative(BitBoard(pawns.stopped()))),
            in_check: !board.checkers().is_empty(),
            captured_on: game.last_capture(),
            middlegame: phase.sum::<u32>().min(24) as f32 / 24.0,
        };
        for square in own & threats[3] & !board.pieces(King) {
            let piece = board.piece_on(square).unwrap_or(Pawn);
            if found.risk(piece, square, guarded) >= 2 {
                found.at_risk |= square.bitboard();
            }
        }
        found
    }

    /// Returns the risk of `piece` on a square: 0 not attacked, 1 attacked and guarded, 2 attacked and not guarded, 3 attacked by a
    /// cheaper piece.
    fn risk(&self, piece: Piece, square: Square, guarded: BitBoard) -> usize {
        let cheaper = match piece {
            Pawn | King => false,
            Knight | Bishop => self.threats[0].has(square),
            Rook => self.threats[1].has(square),
            Queen => self.threats[2].has(square),
        };
        match self.threats[3].has(square) {
            false => 0,
            true if cheaper => 3,
            true if guarded.has(square) => 1,
            true => 2,
        }
    }

    /// Calls `visit` with the active features of a legal move and their values.
    #[inline]
    pub fn features(&self, one: &Categorized, mut visit: impl FnMut(usize, f32)) {
        let (board, mv) = (self.board, one.mv);
        let piece = board.piece_on(mv.from).unwrap_or(Pawn);
        let kind = piece as usize;
        if is_castling(board, mv) {
            visit(CASTLING + usize::from(mv.to.file() < mv.from.file()), 1.0);
            return;
        }
        let en_passant = piece == Pawn && mv.from.file() != mv.to.file() && !board.occupied().has(mv.to);
        let victim = if en_passant { 1 } else { board.piece_on(mv.to).map_or(0, |piece| piece as usize + 1) };
        // A piece does not guard its destination; neither does a pawn that advances.
        let straight = piece == Pawn && mv.from.file() == mv.to.file();
        let to_risk = self.risk(piece, mv.to, if straight { self.guarded } else { self.guarded_twice });
        let from_risk = self.risk(piece, mv.from, self.guarded);
        visit(EXCHANGE + ((kind * VICTIMS + victim) * RISKS + from_risk) * RISKS + to_risk, 1.0);

        let (to, from) = (self.relative_square(mv.to), self.relative_square(mv.from));
        let (middlegame, endgame) = (self.middlegame, 1.0 - self.middlegame);
        visit(TO_SQUARE + kind * 64 + to, middlegame);
        visit(TO_SQUARE + (6 + kind) * 64 + to, endgame);
        visit(FROM_SQUARE + kind * 64 + from, middlegame);
        visit(FROM_SQUARE + (6 + kind) * 64 + from, endgame);
        visit(NEAR_KING + kind * 8 + distance(mv.to, self.enemy_king), 1.0);
        // Killers and history distinguish quiet moves; the features do not.
        match one.category {
            MoveCategory::ForcedMate => visit(OUTCOME, 1.0),
            MoveCategory::WinningCapture => visit(OUTCOME + VICTIMS + victim, 1.0),
            MoveCategory::EqualCapture => visit(OUTCOME + 2 * VICTIMS + victim, 1.0),
            MoveCategory::LosingCapture => visit(OUTCOME + 3 * VICTIMS + victim, 1.0),
            _ => {}
        }
        if one.gives_check {
            visit(CHECK + kind * RISKS + to_risk, 1.0);
        }
        if let Some(promotion) = mv.promotion {
            visit(PROMOTION + promotion as usize, 1.0);
        }
        if self.in_check {
            visit(EVASION + kind * 2 + usize::from(victim > 0), 1.0);
        }
        if self.captured_on == Some(mv.to) {
            visit(RECAPTURE + kind, 1.0);
        }
        if piece == Pawn && !self.stopped.has(mv.to) {
            visit(PASSED + mv.to.rank().relative_to(self.color) as usize, 1.0);
        }
        let occupied = board.occupied();
        let reached = attacks(mv.promotion.unwrap_or(piece), self.color, mv.to, occupied) & !attacks(piece, self.color, mv.from, occupied);
        for target in reached & board.colors(!self.color) {
            let guarded = usize::from(self.threats[3].has(target));
            visit(ATTACK + (kind * 6 + board.piece_on(target).map_or(0, |piece| piece as usize)) * 2 + guarded, 1.0);
        }
        for target in reached & self.at_risk {
            visit(GUARD + board.piece_on(target).map_or(0, |piece| piece as usize), 1.0);
        }
    }

    /// Returns the index of a square relative to the mover, own first rank first.
    fn relative_square(&self, square: Square) -> usize {
        square.relative_to(self.color) as usize
    }
}
