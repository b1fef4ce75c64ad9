//! What can be told of a move without playing it: where it goes, what it takes, what it puts at risk, what it attacks.
//!
//! A feature is a number below `FEATURES`. A move has a dozen of them, each in full or in part: those of squares are shared
//! between middlegame and endgame by the material that is left. Squares are seen from the side that moves, so that colours do
//! not matter. `move_scores.rs` gives each feature a weight.

use cozy_chess::{
    get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks, get_rook_moves, BitBoard, Board, Color, File,
    Piece::{self, Bishop, King, Knight, Pawn, Queen, Rook},
    Square,
};

use super::move_category::{Categorized, MoveCategory};
use super::see::is_castling;
use crate::games::chess::Chess;

/// Nothing, pawn, knight, bishop, rook, queen.
const VICTIMS: usize = 6;
/// How safe a square is for a piece: see `Surroundings::risk`.
const RISKS: usize = 4;

// Where each kind of feature begins.
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
/// How many features there are.
pub const FEATURES: usize = OUTCOME + 4 * VICTIMS;

/// What one position knows: made once, asked for each of its moves.
pub struct Surroundings<'a> {
    board: &'a Board,
    color: Color,
    enemy_king: Square,
    /// What the other side attacks with pawns; with knights and bishops too; with rooks too; with anything.
    threats: [BitBoard; 4],
    /// What the side to move attacks with anything, and with two pieces or more.
    guarded: BitBoard,
    guarded_twice: BitBoard,
    /// Its pieces that could be taken at a profit.
    at_risk: BitBoard,
    /// Where an enemy pawn stands in the way of a pawn, or may capture it later.
    stopped: BitBoard,
    in_check: bool,
    /// Where the last move captured.
    captured_on: Option<Square>,
    /// From 0, the endgame, to 1.
    middlegame: f32,
}

impl<'a> Surroundings<'a> {
    /// What the moves of `game` are told about its position.
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
                    threats[level] |= attacks(board, piece, !color, square);
                }
            }
        }
        let own = board.colors(color);
        let (mut guarded, mut guarded_twice) = (BitBoard::EMPTY, BitBoard::EMPTY);
        for piece in Piece::ALL {
            for square in own & board.pieces(piece) {
                let reached = attacks(board, piece, color, square);
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
            stopped: in_front_of(enemy & board.pieces(Pawn), !color),
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

    /// 0: nobody attacks the square; 1: nobody does at a profit, `piece` being guarded there; 2: it is not guarded; 3: something
    /// cheaper attacks it.
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

    /// Calls `visit` with the features of a legal move, and how much of each it has.
    #[inline]
    pub fn features(&self, one: &Categorized, mut visit: impl FnMut(usize, f32)) {
        let (board, mv) = (self.board, one.mv);
        let piece = board.piece_on(mv.from).unwrap_or(Pawn);
        let place = piece as usize;
        if is_castling(board, mv) {
            visit(CASTLING + usize::from(mv.to.file() < mv.from.file()), 1.0);
            return;
        }
        let en_passant = piece == Pawn && mv.from.file() != mv.to.file() && !board.occupied().has(mv.to);
        let victim = if en_passant { 1 } else { board.piece_on(mv.to).map_or(0, |piece| piece as usize + 1) };
        // A piece does not guard the square it goes to; a pawn that goes straight on never did.
        let straight = piece == Pawn && mv.from.file() == mv.to.file();
        let to_risk = self.risk(piece, mv.to, if straight { self.guarded } else { self.guarded_twice });
        let from_risk = self.risk(piece, mv.from, self.guarded);
        visit(EXCHANGE + ((place * VICTIMS + victim) * RISKS + from_risk) * RISKS + to_risk, 1.0);

        let (to, from) = (self.seen(mv.to), self.seen(mv.from));
        let (middlegame, endgame) = (self.middlegame, 1.0 - self.middlegame);
        visit(TO_SQUARE + place * 64 + to, middlegame);
        visit(TO_SQUARE + (6 + place) * 64 + to, endgame);
        visit(FROM_SQUARE + place * 64 + from, middlegame);
        visit(FROM_SQUARE + (6 + place) * 64 + from, endgame);
        visit(NEAR_KING + place * 8 + distance(mv.to, self.enemy_king), 1.0);
        // QuiescenceResult moves differ by killers and history, which are another matter.
        match one.category {
            MoveCategory::ForcedMate => visit(OUTCOME, 1.0),
            MoveCategory::WinningCapture => visit(OUTCOME + VICTIMS + victim, 1.0),
            MoveCategory::EqualCapture => visit(OUTCOME + 2 * VICTIMS + victim, 1.0),
            MoveCategory::LosingCapture => visit(OUTCOME + 3 * VICTIMS + victim, 1.0),
            _ => {}
        }
        if one.gives_check {
            visit(CHECK + place * RISKS + to_risk, 1.0);
        }
        if let Some(promotion) = mv.promotion {
            visit(PROMOTION + promotion as usize, 1.0);
        }
        if self.in_check {
            visit(EVASION + place * 2 + usize::from(victim > 0), 1.0);
        }
        if self.captured_on == Some(mv.to) {
            visit(RECAPTURE + place, 1.0);
        }
        if piece == Pawn && !self.stopped.has(mv.to) {
            visit(PASSED + mv.to.rank().relative_to(self.color) as usize, 1.0);
        }
        let reached = attacks(board, mv.promotion.unwrap_or(piece), self.color, mv.to) & !attacks(board, piece, self.color, mv.from);
        for target in reached & board.colors(!self.color) {
            let guarded = usize::from(self.threats[3].has(target));
            visit(ATTACK + (place * 6 + board.piece_on(target).map_or(0, |piece| piece as usize)) * 2 + guarded, 1.0);
        }
        for target in reached & self.at_risk {
            visit(GUARD + board.piece_on(target).map_or(0, |piece| piece as usize), 1.0);
        }
    }

    /// The number of a square as the side to move sees it, its own first rank first.
    fn seen(&self, square: Square) -> usize {
        square.relative_to(self.color) as usize
    }
}

/// What a piece attacks from a square, the board being as it is.
#[inline]
fn attacks(board: &Board, piece: Piece, color: Color, square: Square) -> BitBoard {
    match piece {
        Pawn => get_pawn_attacks(square, color),
        Knight => get_knight_moves(square),
        Bishop => get_bishop_moves(square, board.occupied()),
        Rook => get_rook_moves(square, board.occupied()),
        Queen => get_bishop_moves(square, board.occupied()) | get_rook_moves(square, board.occupied()),
        King => get_king_moves(square),
    }
}

/// Moves of a king from one square to the other.
fn distance(one: Square, other: Square) -> usize {
    let files = (one.file() as usize).abs_diff(other.file() as usize);
    files.max((one.rank() as usize).abs_diff(other.rank() as usize))
}

/// The squares in front of pawns, on their files and those beside them: no pawn of the other side passes there.
fn in_front_of(pawns: BitBoard, color: Color) -> BitBoard {
    let squares = if color == Color::White { pawns.0 } else { pawns.0.swap_bytes() };
    let mut fill = squares << 8;
    fill |= fill << 8;
    fill |= fill << 16;
    fill |= fill << 32;
    fill |= (fill & !File::A.bitboard().0) >> 1 | (fill & !File::H.bitboard().0) << 1;
    BitBoard(if color == Color::White { fill } else { fill.swap_bytes() })
}
