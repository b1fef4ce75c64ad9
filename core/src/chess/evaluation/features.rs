//! Feature extraction for tuning: the static evaluation is linear in all weights but the phase weights.
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
use super::weights::Weights;

/// The field that the score is not linear in.
const PHASE_FIELD: &str = "phase_weights";

/// The first term index of each field; a field has half as many terms as numbers.
#[derive(Clone, Debug)]
pub struct Terms {
    values: [usize; 5],
    squares: [usize; 6],
    two_bishops: usize,
    tempo: usize,
    passed: usize,
    isolated: usize,
    doubled: usize,
    open_file: usize,
    half_open_file: usize,
    /// Knight, bishop, rook, queen.
    mobility: [usize; 4],
    guarded: usize,
    passed_king: usize,
    passed_stopped: usize,
    outpost: usize,
    /// By pawns, minor pieces, rooks; hanging pieces.
    threats: [usize; 4],
    shield: usize,
    king_open_file: usize,
    danger: usize,
    len: usize,
}

impl Terms {
    /// Lists the terms of all weights.
    #[must_use]
    pub fn new() -> Self {
        let mut starts = Vec::new();
        let mut len = 0;
        for (name, numbers) in Weights::default().fields() {
            if name != PHASE_FIELD {
                starts.push((name, len));
                len += numbers.len() / 2;
            }
        }
        let of = |field: &str| {
            let found = starts.iter().find(|(name, _)| *name == field);
            found.map_or_else(|| unreachable!("there is a weight {field}"), |(_, start)| *start)
        };
        let pieces = ["pawn", "knight", "bishop", "rook", "queen", "king"];
        Self {
            values: std::array::from_fn(|piece| of(&format!("{}_value", pieces[piece]))),
            squares: std::array::from_fn(|piece| of(&format!("{}_squares", pieces[piece]))),
            two_bishops: of("two_bishops_bonus"),
            tempo: of("tempo_bonus"),
            passed: of("passed_pawn_bonus"),
            isolated: of("isolated_pawn_bonus"),
            doubled: of("doubled_pawn_bonus"),
            open_file: of("rook_open_file_bonus"),
            half_open_file: of("rook_half_open_file_bonus"),
            mobility: std::array::from_fn(|piece| of(&format!("{}_mobility_bonus", pieces[piece + 1]))),
            guarded: of("guarded_pawn_bonus"),
            passed_king: of("passed_king_bonus"),
            passed_stopped: of("passed_stopped_bonus"),
            outpost: of("outpost_bonus"),
            threats: ["pawn", "minor", "rook", "hanging"].map(|by| of(&format!("{by}_threat_bonus"))),
            shield: of("king_shield_bonus"),
            king_open_file: of("king_open_file_bonus"),
            danger: of("king_danger_bonus"),
            len,
        }
    }

    /// Returns the number of terms.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there always are some")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends the nonzero features of a position to `found`: (term, count of the side to move minus count of the opponent), in the
    /// order of terms.
    pub fn count(&self, board: &Board, found: &mut Vec<(u32, i32)>) {
        let mut counts = vec![0; self.len];
        let color = board.side_to_move();
        self.side(board, color, 1, &mut counts);
        self.side(board, !color, -1, &mut counts);
        counts[self.tempo] += 1;
        found.extend((0u32..).zip(counts).filter(|&(_, count)| count != 0));
    }

    /// Counts the terms of one side.
    fn side(&self, board: &Board, color: Color, sign: i32, counts: &mut [i32]) {
        let mut add = |term: usize, count: u32| counts[term] += sign * count as i32;
        let own = board.colors(color);
        for (place, piece) in Piece::ALL.into_iter().enumerate() {
            for square in own & board.pieces(piece) {
                // Tables begin with a8 from White's side.
                let seen = square as usize ^ if color == Color::White { 56 } else { 0 };
                add(self.squares[place] + seen, 1);
                if let Some(&value) = self.values.get(place) {
                    add(value, 1);
                }
            }
        }
        if (own & board.pieces(Bishop)).len() >= 2 {
            add(self.two_bishops, 1);
        }

        let pawns = Pawns::of(board, color);
        add(self.isolated, pawns.isolated().count_ones());
        add(self.doubled, pawns.doubled().count_ones());
        for square in BitBoard(pawns.passed()) {
            add(self.passed + square.rank() as usize, 1);
        }

        let rooks = pawns.relative(own & board.pieces(Rook)) & !files(pawns.own);
        let enemy_files = files(pawns.enemy);
        add(self.open_file, (rooks & !enemy_files).count_ones());
        add(self.half_open_file, (rooks & enemy_files).count_ones());

        for square in BitBoard(pawns.guarded()) {
            add(self.guarded + square.rank() as usize, 1);
        }
        let (nearer, blocked) = attacks::passed(board, color, &pawns);
        add(self.passed_stopped, blocked);
        add(self.outpost, attacks::outposts(board, color, &pawns));
        let reach = Reach::of(board, color, &pawns);
        let other_reach = Reach::of(board, !color, &Pawns::of(board, !color));
        for (term, squares) in self.mobility.into_iter().zip(reach.mobility) {
            add(term, squares);
        }
        for (term, targets) in self.threats.into_iter().zip(reach.threats(board, color, &other_reach)) {
            add(term, targets);
        }
        let (shield, open) = attacks::shelter(board, color, &pawns);
        add(self.shield, shield);
        add(self.king_open_file, open);
        add(self.danger + other_reach.danger, 1);
        counts[self.passed_king] += sign * nearer;
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::attacks::DANGERS;
    use super::super::Pesto;
    use super::*;

    /// The score by the formula of the module documentation.
    fn score(pesto: &Pesto, board: &Board) -> i64 {
        let (mut middlegame, mut endgame) = (Vec::new(), Vec::new());
        for (name, numbers) in pesto.weights().fields() {
            if name != PHASE_FIELD {
                let half = numbers.len() / 2;
                middlegame.extend_from_slice(&numbers[..half]);
                endgame.extend_from_slice(&numbers[half..]);
            }
        }
        let mut found = Vec::new();
        Terms::new().count(board, &mut found);
        let sum = |weights: &[i32]| found.iter().map(|&(term, count)| i64::from(count) * i64::from(weights[term as usize])).sum::<i64>();
        let (phase, full) = (i64::from(pesto.eval_plus_game_phase(board).1), i64::from(pesto.full_phase()));
        (phase * sum(&middlegame) + (full - phase) * sum(&endgame)) / full
    }

    #[test]
    fn terms_add_up_to_the_score() {
        let mut weights = Weights::default();
        for (place, (name, numbers)) in (1..).zip(weights.fields()) {
            // Distinct nonzero weights, so that a missing term is noticed.
            if name != PHASE_FIELD {
                let changed: Vec<i32> = (1..).zip(numbers).map(|(step, number)| number + (place * 7 + step * 3) % 11 - 5).collect();
                weights.set(name, &changed).expect("a weight");
            }
        }
        let pesto = Pesto::new(weights, 100.0).expect("weights");
        assert_eq!(Terms::new().len(), 5 + 6 * 64 + 2 + 8 + 2 + 2 + 4 + 8 + 2 + 1 + 4 + 2 + DANGERS);
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
