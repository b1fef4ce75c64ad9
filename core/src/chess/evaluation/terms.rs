//! The terms of the static evaluation, which is linear in all weights but the phase weights.
//!
//! A term is a pair of a middlegame and an endgame weight. With `n` the count of a term for the side to move minus that of the
//! opponent, and `phase` and `full` as in `Pesto`, the score is `trunc((phase * sum(n * middlegame) + (full - phase) * sum(n *
//! endgame)) / full)`. Only the truncation and the clamp to `MAX_SCORE`, which tuned weights never reach, are not linear.

use cozy_chess::{
    BitBoard, Board, Color,
    Piece::{self, Bishop, Rook},
};

use super::attacks::{self, Reach};
use super::pawns::{files, Pawns};
use super::weights::{NUM_TERMS, TERMS};

/// Calls `add` with the terms of one side and their counts, except for piece values, piece-square tables and tempo.
#[inline(always)]
pub(super) fn visit_terms(board: &Board, color: Color, pawns: &Pawns, reach: &Reach, other_reach: &Reach, mut add: impl FnMut(usize, i32)) {
    let own = board.colors(color);
    if (own & board.pieces(Bishop)).len() >= 2 {
        add(TERMS.two_bishops_bonus, 1);
    }

    add(TERMS.isolated_pawn_bonus, count(pawns.isolated()));
    add(TERMS.doubled_pawn_bonus, count(pawns.doubled()));
    for square in BitBoard(pawns.passed()) {
        add(TERMS.passed_pawn_bonus + square.rank() as usize, 1);
    }
    for square in BitBoard(pawns.guarded()) {
        add(TERMS.guarded_pawn_bonus + square.rank() as usize, 1);
    }
    let (nearer, blocked) = attacks::passed(board, color, pawns);
    add(TERMS.passed_king_bonus, nearer);
    add(TERMS.passed_stopped_bonus, blocked as i32);

    let rooks = pawns.relative(own & board.pieces(Rook)) & !files(pawns.own);
    let enemy_files = files(pawns.enemy);
    add(TERMS.rook_open_file_bonus, count(rooks & !enemy_files));
    add(TERMS.rook_half_open_file_bonus, count(rooks & enemy_files));

    for (place, squares) in reach.mobility.into_iter().enumerate() {
        add(TERMS.knight_mobility_bonus + place, squares as i32);
    }
    add(TERMS.outpost_bonus, attacks::outposts(board, color, pawns) as i32);
    for (place, targets) in reach.threats(board, color, other_reach).into_iter().enumerate() {
        add(TERMS.pawn_threat_bonus + place, targets as i32);
    }
    let (shield, open) = attacks::shelter(board, color, pawns);
    add(TERMS.king_shield_bonus, shield as i32);
    add(TERMS.king_open_file_bonus, open as i32);
    add(TERMS.king_danger_bonus + other_reach.danger, 1);
}

/// Appends the nonzero features of a position to `found`, for tuning: (term, count of the side to move minus count of the opponent),
/// in the order of terms.
pub fn count_terms(board: &Board, found: &mut Vec<(u32, i32)>) {
    let mut counts = vec![0; NUM_TERMS];
    let mover = board.side_to_move();
    for (color, sign) in [(mover, 1), (!mover, -1)] {
        for piece in Piece::ALL {
            for square in board.colored_pieces(color, piece) {
                // Tables begin with a8 from White's side.
                let seen = square as usize ^ if color == Color::White { 56 } else { 0 };
                counts[TERMS.pawn_squares + 64 * piece as usize + seen] += sign;
                if piece != Piece::King {
                    counts[TERMS.pawn_value + piece as usize] += sign;
                }
            }
        }
        let (pawns, other_pawns) = (Pawns::of(board, color), Pawns::of(board, !color));
        let (reach, other_reach) = (Reach::of(board, color, &pawns), Reach::of(board, !color, &other_pawns));
        visit_terms(board, color, &pawns, &reach, &other_reach, |term, count| counts[term] += sign * count);
    }
    counts[TERMS.tempo_bonus] += 1;
    found.extend((0u32..).zip(counts).filter(|&(_, count)| count != 0));
}

fn count(squares: u64) -> i32 {
    squares.count_ones() as i32
}

#[cfg(test)]
mod tests {
    use super::super::attacks::DANGERS;
    use super::super::{Pesto, Weights};
    use super::*;

    /// The score by the formula of the module documentation.
    fn score(pesto: &Pesto, board: &Board) -> i64 {
        let terms = pesto.weights().terms();
        let mut found = Vec::new();
        count_terms(board, &mut found);
        let sum = |stage: usize| found.iter().map(|&(term, count)| i64::from(count) * i64::from(terms[term as usize][stage])).sum::<i64>();
        let (phase, full) = (i64::from(pesto.eval_plus_game_phase(board).1), i64::from(pesto.full_phase()));
        (phase * sum(0) + (full - phase) * sum(1)) / full
    }

    #[test]
    fn terms_add_up_to_the_score() {
        let mut weights = Weights::default();
        for (place, (name, numbers)) in (1..).zip(weights.fields()) {
            // Changed weights, few of which are 0, so that a missing term is noticed.
            if name != "phase_weights" {
                let changed: Vec<i32> = (1..).zip(numbers).map(|(step, number)| number + (place * 7 + step * 3) % 11 - 5).collect();
                weights.set(name, &changed).expect("a weight");
            }
        }
        let pesto = Pesto::new(weights, 100.0).expect("weights");
        assert_eq!(NUM_TERMS, 5 + 6 * 64 + 2 + 8 + 2 + 2 + 4 + 8 + 2 + 1 + 4 + 2 + DANGERS);
        let mut board = Board::default();
        for step in 0..300usize {
            assert_eq!(score(&pesto, &board), i64::from(pesto.eval(&board)), "{board}");
            let mut moves = Vec::new();
            board.generate_moves(|some| {
                moves.extend(some);
                false
            });
            match moves.get(step * 7919 % moves.len().max(1)) {
                Some(&mv) => board.play_unchecked(mv),
                None => board = Board::default(),
            }
        }
    }
}
