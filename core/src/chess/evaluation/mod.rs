//! Static evaluation: PeSTO's piece-square tables plus positional terms, tapered from middlegame to endgame. Scores are centipawns
//! for the side to move and colour-symmetric.

mod attacks;
pub(super) mod bare_king;
mod features;
mod pawns;
mod weights;

pub use features::Terms;
pub use weights::{Pair, Ranks, Squares, Weights, MAX_WEIGHT};

use cozy_chess::{
    BitBoard, Board, Color,
    Piece::{self, Bishop, Knight, Pawn, Queen, Rook},
};

use attacks::{Reach, DANGERS};
use pawns::{files, Pawns};

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

fn pack_table<const N: usize>([middlegame, endgame]: &[[i32; N]; 2]) -> [Packed; N] {
    std::array::from_fn(|place| pack([middlegame[place], endgame[place]]))
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
    /// Knight, bishop, rook, queen.
    mobility: [Packed; 4],
    passed: [Packed; 8],
    guarded: [Packed; 8],
    danger: [Packed; DANGERS],
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
        let (passed, guarded) = (pack_table(&weights.passed_pawn_bonus), pack_table(&weights.guarded_pawn_bonus));
        let danger = pack_table(&weights.king_danger_bonus);
        Ok(Self { scale, squares, mobility: mobility.map(pack), passed, guarded, danger, full_phase, weights })
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
        let sum = own - self.side(board, !color, &other_pawns, &other_reach, &reach) + pack(self.weights.tempo_bonus);
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

        sum += count(pawns.isolated()) * pack(weights.isolated_pawn_bonus);
        sum += count(pawns.doubled()) * pack(weights.doubled_pawn_bonus);
        for square in BitBoard(pawns.passed()) {
            sum += self.passed[square.rank() as usize];
        }
        for square in BitBoard(pawns.guarded()) {
            sum += self.guarded[square.rank() as usize];
        }
        let (nearer, blocked) = attacks::passed(board, color, pawns);
        sum += i64::from(nearer) * pack(weights.passed_king_bonus) + i64::from(blocked) * pack(weights.passed_stopped_bonus);

        let rooks = pawns.relative(own & board.pieces(Rook)) & !files(pawns.own);
        let enemy_files = files(pawns.enemy);
        sum += count(rooks & !enemy_files) * pack(weights.rook_open_file_bonus);
        sum += count(rooks & enemy_files) * pack(weights.rook_half_open_file_bonus);

        for (squares, bonus) in reach.mobility.into_iter().zip(self.mobility) {
            sum += i64::from(squares) * bonus;
        }
        sum += i64::from(attacks::outposts(board, color, pawns)) * pack(weights.outpost_bonus);
        let bonuses = [weights.pawn_threat_bonus, weights.minor_threat_bonus, weights.rook_threat_bonus, weights.hanging_threat_bonus];
        for (targets, bonus) in reach.threats(board, color, other_reach).into_iter().zip(bonuses) {
            sum += i64::from(targets) * pack(bonus);
        }
        let (shield, open) = attacks::shelter(board, color, pawns);
        sum += i64::from(shield) * pack(weights.king_shield_bonus) + i64::from(open) * pack(weights.king_open_file_bonus);
        sum + self.danger[other_reach.danger]
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

fn count(squares: u64) -> i64 {
    i64::from(squares.count_ones())
}
