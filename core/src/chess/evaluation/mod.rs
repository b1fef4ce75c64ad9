//! Static evaluation: PeSTO's piece-square tables plus positional terms, tapered from middlegame to endgame. Scores are centipawns
//! for the side to move and colour-symmetric.

pub(super) mod attacks;
pub(super) mod bare_king;
pub(super) mod pawns;
mod terms;
mod weights;

pub use terms::count_terms;
pub use weights::{Pair, Ranks, Squares, Weights, MAX_WEIGHT};

use cozy_chess::{
    Board, Color,
    Piece::{self, Bishop, Knight, Pawn, Queen, Rook},
};

use attacks::Reach;
use pawns::Pawns;
use terms::visit_terms;
use weights::{NUM_TERMS, TERMS};

use crate::error::Error;

/// The scale of the sigmoid that maps centipawns to values, of published and tuned weights.
const SCALE: f64 = 153.4;
/// Upper bound of |score|.
pub const MAX_SCORE: i32 = 500_000;

/// Middlegame and endgame score packed into one integer, so that one addition adds both: `(endgame << 32) + middlegame`.
type Packed = i64;

const fn pack([middlegame, endgame]: Pair) -> Packed {
    ((endgame as i64) << 32) + middlegame as i64
}

const fn unpack(packed: Packed) -> (i64, i64) {
    // The lower half is signed: undo its borrow from the upper half.
    (packed as i32 as i64, (packed + (1 << 31)) >> 32)
}

/// The static evaluation: weights prepared for fast lookup.
#[derive(Clone, Debug, PartialEq)]
pub struct Pesto {
    weights: Weights,
    scale: f64,
    /// Piece value plus piece-square table, by colour, piece, square.
    squares: [[[Packed; 64]; 6]; 2],
    terms: [Packed; NUM_TERMS],
    full_phase: i32,
}

impl Pesto {
    /// Prepares weights and the scale of the sigmoid in centipawns, at which the value is `2 * sigmoid(1) - 1` = 0.46.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if the scale is not positive or the phase weights are invalid.
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
        let terms = weights.terms().map(pack);
        let mut squares = [[[0; 64]; 6]; 2];
        for piece in Piece::ALL {
            // A king has no value.
            let value = if piece == Piece::King { 0 } else { terms[TERMS.pawn_value + piece as usize] };
            for square in 0..64 {
                let packed = value + terms[TERMS.pawn_squares + 64 * piece as usize + square];
                squares[Color::White as usize][piece as usize][square ^ 56] = packed;
                squares[Color::Black as usize][piece as usize][square] = packed;
            }
        }
        Ok(Self { scale, squares, terms, full_phase, weights })
    }

    /// Returns the weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns the scale of the sigmoid in centipawns.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns the phase of a full middlegame; 0 is a pure endgame.
    #[must_use]
    pub fn full_phase(&self) -> i32 {
        self.full_phase
    }

    /// Returns the score in centipawns for the side to move.
    #[inline]
    #[must_use]
    pub fn eval(&self, board: &Board) -> i32 {
        self.eval_plus_game_phase(board).0
    }

    /// Returns the score in centipawns for the side to move and the game phase, from 0 (endgame) to `full_phase`.
    #[must_use]
    pub fn eval_plus_game_phase(&self, board: &Board) -> (i32, i32) {
        let color = board.side_to_move();
        let (pawns, other_pawns) = (Pawns::of(board, color), Pawns::of(board, !color));
        let (reach, other_reach) = (Reach::of(board, color, &pawns), Reach::of(board, !color, &other_pawns));
        let own = self.side(board, color, &pawns, &reach, &other_reach);
        let sum = own - self.side(board, !color, &other_pawns, &other_reach, &reach) + self.terms[TERMS.tempo_bonus];
        let (middlegame, endgame) = unpack(sum);
        let phase = self.phase(board);
        let (now, full) = (i64::from(phase), i64::from(self.full_phase));
        // Division rounds towards 0, symmetrically for both sides.
        let score = (middlegame * now + endgame * (full - now)) / full;
        (score.clamp(-i64::from(MAX_SCORE), i64::from(MAX_SCORE)) as i32, phase)
    }

    /// Converts a score to a value from -1 to 1: `2 * sigmoid(score / scale) - 1`.
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

    /// Returns the packed score of one side.
    fn side(&self, board: &Board, color: Color, pawns: &Pawns, reach: &Reach, other_reach: &Reach) -> Packed {
        let own = board.colors(color);
        let mut sum = 0;
        for (piece, squares) in Piece::ALL.into_iter().zip(&self.squares[color as usize]) {
            for square in own & board.pieces(piece) {
                sum += squares[square as usize];
            }
        }
        visit_terms(board, color, pawns, reach, other_reach, |term, count| sum += i64::from(count) * self.terms[term]);
        sum
    }
}

impl Pesto {
    /// Returns PeSTO's public weights. The scale gives a value of `tanh(0.326 * pawns)`.
    #[must_use]
    pub fn published() -> Self {
        Self::new(Weights::published(), SCALE).unwrap_or_else(|_| unreachable!("the published weights are valid"))
    }
}

impl Default for Pesto {
    /// Returns the tuned weights.
    fn default() -> Self {
        Self::new(Weights::default(), SCALE).unwrap_or_else(|_| unreachable!("the default weights are valid"))
    }
}
