//! Static exchange evaluation (SEE): the material balance of a move and the captures on its target square.
//!
//! Both sides continue with any legal capture on that square or stop, whichever is better. Captures must be legal, so pins,
//! discovered attackers, promotions and checks count. En passant can only begin an exchange.

use cozy_chess::{
    get_bishop_moves, get_bishop_rays, get_king_moves, get_knight_moves, get_pawn_attacks, get_rook_moves, get_rook_rays, BitBoard, Board,
    Color, Move, Piece, Rank, Square,
};

use crate::games::chess::{board_after, is_castling};

/// Upper bound of captures searched with all alternatives, reached only with many queens; beyond, only the least valuable attacker
/// captures.
const MAX_CAPTURES: u32 = 1024;

/// Piece values in centipawns. A king is never captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeeValues {
    /// Pawn, knight, bishop, rook, queen, king.
    pieces: [i32; 6],
}

impl SeeValues {
    /// Creates values of pawn, knight, bishop, rook and queen.
    #[must_use]
    pub const fn new(pawn: i32, knight: i32, bishop: i32, rook: i32, queen: i32) -> Self {
        Self { pieces: [pawn, knight, bishop, rook, queen, 0] }
    }

    /// Returns the value of a piece; 0 for a king.
    #[inline]
    #[must_use]
    pub const fn of(&self, piece: Piece) -> i32 {
        self.pieces[piece as usize]
    }

    fn max_promotion_gain(&self) -> i32 {
        let best = [Piece::Knight, Piece::Bishop, Piece::Rook, Piece::Queen].map(|piece| self.of(piece)).into_iter().max();
        best.unwrap_or(0) - self.of(Piece::Pawn)
    }

    /// Returns the immediate gain of a move: capture and promotion.
    #[inline]
    #[must_use]
    pub fn gain(&self, board: &Board, mv: Move) -> i32 {
        let captured = if board.colors(!board.side_to_move()).has(mv.to) {
            board.piece_on(mv.to).map_or(0, |piece| self.of(piece))
        } else if mv.from.file() != mv.to.file() && board.pieces(Piece::Pawn).has(mv.from) {
            self.of(Piece::Pawn)
        } else {
            0
        };
        captured + mv.promotion.map_or(0, |piece| self.of(piece) - self.of(Piece::Pawn))
    }
}

impl Default for SeeValues {
    fn default() -> Self {
        Self::new(100, 320, 330, 500, 900)
    }
}

/// Returns the static exchange value of a legal move for its side, in centipawns.
#[must_use]
pub fn see(board: &Board, mv: Move, values: &SeeValues) -> i32 {
    let gain = values.gain(board, mv);
    if is_castling(board, mv) {
        return gain;
    }
    let next = board_after(board, mv);
    gain - Exchange { values, square: mv.to, captures: 0 }.best(&next, 0, i32::MAX)
}

/// Returns whether `see` is at least `threshold`; faster than `see`.
#[must_use]
pub fn see_at_least(board: &Board, mv: Move, values: &SeeValues, threshold: i32) -> bool {
    let gain = values.gain(board, mv);
    if gain < threshold {
        return false;
    }
    if is_castling(board, mv) {
        return true;
    }
    // Upper bound of the reply's gain.
    let margin = gain - threshold;
    let next = board_after(board, mv);
    Exchange { values, square: mv.to, captures: 0 }.best(&next, margin, margin.saturating_add(1)) <= margin
}

struct Exchange<'a> {
    values: &'a SeeValues,
    square: Square,
    captures: u32,
}

impl Exchange<'_> {
    /// Returns the gain of the side to move by continuing, at least 0: exact between `alpha` and `beta`, else a bound (fail-soft).
    fn best(&mut self, board: &Board, alpha: i32, beta: i32) -> i32 {
        let color = board.side_to_move();
        let attackers = attackers(board, self.square, color);
        if attackers.is_empty() {
            return 0;
        }
        let victim = board.piece_on(self.square).map_or(0, |piece| self.values.of(piece));
        let promotes = self.square.rank() == Rank::Eighth.relative_to(color);
        let max_gain = if promotes { victim + self.values.max_promotion_gain() } else { victim };
        let mut best = 0;
        for piece in Piece::ALL {
            let pawn = piece == Piece::Pawn;
            for from in attackers & board.pieces(piece) {
                let choices: &[Option<Piece>] = if pawn && promotes {
                    &[Some(Piece::Queen), Some(Piece::Rook), Some(Piece::Bishop), Some(Piece::Knight)]
                } else {
                    &[None]
                };
                for &promotion in choices {
                    let floor = alpha.max(best);
                    if floor >= beta.min(max_gain) {
                        return best;
                    }
                    let mv = Move { from, to: self.square, promotion };
                    let gain = victim + promotion.map_or(0, |piece| self.values.of(piece) - self.values.of(Piece::Pawn));
                    if gain <= floor || !board.is_legal(mv) {
                        continue;
                    }
                    self.captures += 1;
                    let reply = self.best(&board_after(board, mv), (gain - beta).max(0), gain - floor);
                    best = best.max(gain - reply);
                    if self.captures > MAX_CAPTURES {
                        return best;
                    }
                }
            }
        }
        best
    }
}

/// Returns the pieces of one colour that attack a square.
#[inline]
fn attackers(board: &Board, square: Square, color: Color) -> BitBoard {
    let own = board.colors(color);
    let queens = board.pieces(Piece::Queen);
    let diagonal = own & (board.pieces(Piece::Bishop) | queens);
    let straight = own & (board.pieces(Piece::Rook) | queens);
    let mut found = own
        & (get_pawn_attacks(square, !color) & board.pieces(Piece::Pawn)
            | get_knight_moves(square) & board.pieces(Piece::Knight)
            | get_king_moves(square) & board.pieces(Piece::King));
    if !get_bishop_rays(square).is_disjoint(diagonal) {
        found |= get_bishop_moves(square, board.occupied()) & diagonal;
    }
    if !get_rook_rays(square).is_disjoint(straight) {
        found |= get_rook_moves(square, board.occupied()) & straight;
    }
    found
}
