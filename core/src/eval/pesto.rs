//! The classical evaluation of chess: PeSTO's piece values and squares with a few bonuses, tapered from middlegame to endgame.
//!
//! Scores are centipawns for the side to move. Turning the board upside down with colours changed leaves them as they are.

use cozy_chess::{
    get_bishop_moves, get_knight_moves, get_rook_moves, BitBoard, Board, Color,
    Piece::{self, Bishop, Knight, Pawn, Queen, Rook},
};

use super::pesto_weights::{Pair, Weights};
use super::quiescence::Quiescence;
use crate::error::Error;
use crate::games::chess::Chess;

/// No score is further from 0.
pub const MAX_SCORE: i32 = 500_000;

/// A middlegame and an endgame score in one number, so that both are added at once: `endgame << 32` plus `middlegame`.
type Packed = i64;

const fn pack([middlegame, endgame]: Pair) -> Packed {
    ((endgame as i64) << 32) + middlegame as i64
}

const fn unpack(packed: Packed) -> (i64, i64) {
    // The lower half is signed: what it borrowed from the upper one is given back.
    (packed as i32 as i64, (packed + (1 << 31)) >> 32)
}

/// Weights made ready for use.
#[derive(Clone, Debug, PartialEq)]
pub struct Pesto {
    weights: Weights,
    scale: f64,
    /// Value and square together: by colour, piece, square.
    squares: [[[Packed; 64]; 6]; 2],
    /// Knight, bishop, rook, queen.
    mobility: [Packed; 4],
    passed: [Packed; 8],
    full_phase: i32,
}

impl Pesto {
    /// Weights, and the scale of the sigmoid in centipawns: the score for which `2 * sigmoid(1) - 1` = 0.46 is the value.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the argument: a scale that is not above 0, phase weights that make no phases.
    pub fn new(weights: Weights, scale: f64) -> Result<Self, Error> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Error::InvalidArgument(format!("scale must be a finite number above 0, not {scale}")));
        }
        let [pawn, knight, bishop, rook, queen] = weights.phase_weights;
        let full_phase = 16 * pawn + 4 * knight + 4 * bishop + 4 * rook + 2 * queen;
        if weights.phase_weights.iter().any(|&weight| weight < 0) || full_phase == 0 {
            let text = format!("phase_weights must be at least 0 and not all 0, not {:?}", weights.phase_weights);
            return Err(Error::InvalidArgument(text));
        }
        let values = [weights.pawn_value, weights.knight_value, weights.bishop_value, weights.rook_value, weights.queen_value, [0, 0]];
        let tables = [
            &weights.pawn_squares,
            &weights.knight_squares,
            &weights.bishop_squares,
            &weights.rook_squares,
            &weights.queen_squares,
            &weights.king_squares,
        ];
        let mut squares = [[[0; 64]; 6]; 2];
        for (piece, (value, [middlegame, endgame])) in values.into_iter().zip(tables).enumerate() {
            for square in 0..64 {
                let packed = pack(value) + pack([middlegame[square], endgame[square]]);
                squares[Color::White as usize][piece][square ^ 56] = packed;
                squares[Color::Black as usize][piece][square] = packed;
            }
        }
        let mobility =
            [weights.knight_mobility_bonus, weights.bishop_mobility_bonus, weights.rook_mobility_bonus, weights.queen_mobility_bonus];
        let [middlegame, endgame] = &weights.passed_pawn_bonus;
        let passed = std::array::from_fn(|rank| pack([middlegame[rank], endgame[rank]]));
        Ok(Self { scale, squares, mobility: mobility.map(pack), passed, full_phase, weights })
    }

    /// The weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The scale of the sigmoid, in centipawns.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The phase that is all middlegame; 0 is all endgame.
    #[must_use]
    pub fn full_phase(&self) -> i32 {
        self.full_phase
    }

    /// The score of a position in centipawns for the side to move.
    #[inline]
    #[must_use]
    pub fn eval(&self, board: &Board) -> i32 {
        self.eval_plus_game_phase(board).0
    }

    /// The score in centipawns for the side to move, and the phase of the game, from 0 (endgame) to `full_phase`.
    #[must_use]
    pub fn eval_plus_game_phase(&self, board: &Board) -> (i32, i32) {
        let color = board.side_to_move();
        let sum = self.side(board, color) - self.side(board, !color) + pack(self.weights.tempo_bonus);
        let (middlegame, endgame) = unpack(sum);
        let phase = self.phase(board);
        let (now, full) = (i64::from(phase), i64::from(self.full_phase));
        // Division rounds towards 0, for both sides alike.
        let score = (middlegame * now + endgame * (full - now)) / full;
        (score.clamp(-i64::from(MAX_SCORE), i64::from(MAX_SCORE)) as i32, phase)
    }

    /// A score as a value from -1 to 1: `2 * sigmoid(score / scale) - 1`.
    #[must_use]
    pub fn squash(&self, score: i32) -> f64 {
        (f64::from(score) / (2.0 * self.scale)).tanh()
    }

    fn phase(&self, board: &Board) -> i32 {
        let pieces = [Pawn, Knight, Bishop, Rook, Queen];
        let weights = self.weights.phase_weights;
        let sum: i32 = pieces.into_iter().zip(weights).map(|(piece, weight)| weight * board.pieces(piece).len() as i32).sum();
        sum.min(self.full_phase)
    }

    /// What one side has.
    fn side(&self, board: &Board, color: Color) -> Packed {
        let weights = &self.weights;
        let own = board.colors(color);
        let mut sum = 0;
        for (piece, squares) in Piece::ALL.into_iter().zip(&self.squares[color as usize]) {
            for square in own & board.pieces(piece) {
                sum += squares[square as usize];
            }
        }
        if (own & board.pieces(Bishop)).len() >= 2 {
            sum += pack(weights.two_bishops_bonus);
        }

        let pawns = Pawns::of(board, color);
        sum += count(pawns.isolated()) * pack(weights.isolated_pawn_bonus);
        sum += count(pawns.doubled()) * pack(weights.doubled_pawn_bonus);
        for square in BitBoard(pawns.passed()) {
            sum += self.passed[square.rank() as usize];
        }

        let rooks = pawns.turned(own & board.pieces(Rook)) & !files(pawns.own);
        let enemy_files = files(pawns.enemy);
        sum += count(rooks & !enemy_files) * pack(weights.rook_open_file_bonus);
        sum += count(rooks & enemy_files) * pack(weights.rook_half_open_file_bonus);
        sum + self.mobility(board, own, BitBoard(pawns.turned(BitBoard(pawns.enemy_guards()))))
    }

    fn mobility(&self, board: &Board, own: BitBoard, guarded: BitBoard) -> Packed {
        let occupied = board.occupied();
        let area = !(own | guarded);
        let reach = |squares: BitBoard| i64::from((squares & area).len());
        let [knight, bishop, rook, queen] = self.mobility;
        let mut sum = 0;
        for square in own & board.pieces(Knight) {
            sum += reach(get_knight_moves(square)) * knight;
        }
        for square in own & board.pieces(Bishop) {
            sum += reach(get_bishop_moves(square, occupied)) * bishop;
        }
        for square in own & board.pieces(Rook) {
            sum += reach(get_rook_moves(square, occupied)) * rook;
        }
        for square in own & board.pieces(Queen) {
            sum += reach(get_bishop_moves(square, occupied) | get_rook_moves(square, occupied)) * queen;
        }
        sum
    }
}

impl Default for Pesto {
    /// PeSTO's weights. The scale makes a value of `tanh(0.326 * pawns)`.
    fn default() -> Self {
        Self::new(Weights::default(), 153.4).unwrap_or_else(|_| unreachable!("the default weights are right"))
    }
}

/// What a position is worth for the side to move, from -1 to 1; with `quiescence`, after the captures are played out.
/// Ends of the game are for the caller to know.
#[must_use]
pub fn value(state: &Chess, pesto: &Pesto, quiescence: bool) -> f64 {
    let score = if quiescence { Quiescence::default().search(state.board(), pesto).score } else { pesto.eval(state.board()) };
    pesto.squash(score)
}

/// The pawns as bits, the board turned so that `own` moves up.
pub(super) struct Pawns {
    pub(super) own: u64,
    pub(super) enemy: u64,
    color: Color,
}

const A_FILE: u64 = 0x0101_0101_0101_0101;
const H_FILE: u64 = A_FILE << 7;

impl Pawns {
    pub(super) fn of(board: &Board, color: Color) -> Self {
        let pawns = board.pieces(Pawn);
        let mut turned = Self { own: 0, enemy: 0, color };
        turned.own = turned.turned(pawns & board.colors(color));
        turned.enemy = turned.turned(pawns & board.colors(!color));
        turned
    }

    /// Squares as `own` sees them, and back.
    pub(super) fn turned(&self, squares: BitBoard) -> u64 {
        match self.color {
            Color::White => squares.0,
            Color::Black => squares.0.swap_bytes(),
        }
    }

    pub(super) fn doubled(&self) -> u64 {
        self.own & below(self.own)
    }

    pub(super) fn isolated(&self) -> u64 {
        self.own & !beside(files(self.own))
    }

    pub(super) fn passed(&self) -> u64 {
        let stopped = below(self.enemy);
        self.own & !(stopped | beside(stopped) | below(self.own))
    }

    pub(super) fn enemy_guards(&self) -> u64 {
        beside(self.enemy >> 8)
    }
}

fn count(squares: u64) -> i64 {
    i64::from(squares.count_ones())
}

/// The squares on both sides.
fn beside(squares: u64) -> u64 {
    (squares & !A_FILE) >> 1 | (squares & !H_FILE) << 1
}

/// All squares below, on the same file.
fn below(squares: u64) -> u64 {
    let mut fill = squares >> 8;
    fill |= fill >> 8;
    fill |= fill >> 16;
    fill | fill >> 32
}

/// The whole files.
pub(super) fn files(squares: u64) -> u64 {
    let mut fill = squares | squares >> 32;
    fill |= fill >> 16;
    fill |= fill >> 8;
    (fill & 0xff) * A_FILE
}
