//! The weights of the static evaluation: named fields, middlegame and endgame, in centipawns.

use super::attacks::DANGERS;
use crate::error::Error;

/// Middlegame, endgame.
pub type Pair = [i32; 2];
/// A number per square, middlegame and endgame: a8 first, h1 last, from White's side.
pub type Squares = [[i32; 64]; 2];
/// A number per rank from the owner's side, middlegame and endgame.
pub type Ranks = [[i32; 8]; 2];

/// A number per danger level, middlegame and endgame.
pub(super) type Dangers = [[i32; DANGERS]; 2];

/// Upper bound of |weight|, so that sums do not overflow.
pub const MAX_WEIGHT: i32 = 20_000;

/// A field as a list of numbers, the middlegame before the endgame.
trait Field: Sized {
    const LEN: usize;
    /// Pairs of numbers that the score is linear in.
    const TERMS: usize;
    const ZERO: Self;
    fn list(&self) -> Vec<i32>;
    fn fill(&mut self, numbers: &[i32]);
}

impl<const N: usize> Field for [i32; N] {
    const LEN: usize = N;
    // A pair is one term, the phase weights are none.
    const TERMS: usize = if N == 2 { 1 } else { 0 };
    const ZERO: Self = [0; N];

    fn list(&self) -> Vec<i32> {
        self.to_vec()
    }

    fn fill(&mut self, numbers: &[i32]) {
        self.copy_from_slice(numbers);
    }
}

impl<const N: usize> Field for [[i32; N]; 2] {
    const LEN: usize = 2 * N;
    const TERMS: usize = N;
    const ZERO: Self = [[0; N]; 2];

    fn list(&self) -> Vec<i32> {
        self.concat()
    }

    fn fill(&mut self, numbers: &[i32]) {
        self[0].copy_from_slice(&numbers[..N]);
        self[1].copy_from_slice(&numbers[N..]);
    }
}

/// Generates the struct, access by name, and the numbering of terms.
macro_rules! weights {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The weights, each for the side that has the feature.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Weights {
            $($(#[$doc])* pub $name: $type,)*
        }

        /// The first term of each field; those of a field with many are in the order of its numbers.
        pub(super) struct FirstTerms {
            $(pub(super) $name: usize,)*
        }

        /// Terms are numbered in the order of fields.
        pub(super) const TERMS: FirstTerms = {
            let mut next = 0;
            FirstTerms { $($name: {
                next += <$type as Field>::TERMS;
                next - <$type as Field>::TERMS
            },)* }
        };

        /// Number of terms.
        pub(super) const NUM_TERMS: usize = 0 $(+ <$type as Field>::TERMS)*;

        impl Weights {
            const ZERO: Self = Self { $($name: <$type as Field>::ZERO,)* };

            /// Returns the fields: name and numbers, the middlegame's first.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, Vec<i32>)> {
                vec![$((stringify!($name), self.$name.list()),)*]
            }

            /// Returns the middlegame and the endgame weight of each term.
            pub(super) fn terms(&self) -> [Pair; NUM_TERMS] {
                let mut terms = [[0; 2]; NUM_TERMS];
                $(
                    let numbers = self.$name.list();
                    for (place, term) in terms[TERMS.$name..][..<$type as Field>::TERMS].iter_mut().enumerate() {
                        *term = [numbers[place], numbers[place + numbers.len() / 2]];
                    }
                )*
                terms
            }

            /// Sets the numbers of a field.
            ///
            /// # Errors
            /// `Error::InvalidArgument` names an unknown field, a wrong length, or a number out of range.
            pub fn set(&mut self, name: &str, numbers: &[i32]) -> Result<(), Error> {
                let check = |len: usize| {
                    if numbers.len() != len {
                        return Err(Error::InvalidArgument(format!("{name} has {} numbers: it must have {len}", numbers.len())));
                    }
                    match numbers.iter().find(|number| number.unsigned_abs() > MAX_WEIGHT.unsigned_abs()) {
                        Some(number) => Err(Error::InvalidArgument(format!("{name} must be from -{MAX_WEIGHT} to {MAX_WEIGHT}, not {number}"))),
                        None => Ok(()),
                    }
                };
                match name {
                    $(stringify!($name) => {
                        check(<$type as Field>::LEN)?;
                        self.$name.fill(numbers);
                        Ok(())
                    })*
                    _ => Err(Error::InvalidArgument(format!("there is no weight {name:?}"))),
                }
            }
        }
    };
}

const PUBLISHED: &str = include_str!("../../../data/weights_published.txt");
const TUNED: &str = include_str!("../../../data/weights_tuned.txt");

impl Weights {
    /// Returns PeSTO's public values and tables with bonuses set by hand; other bonuses are 0.
    #[must_use]
    pub fn published() -> Self {
        Self::read(PUBLISHED)
    }

    /// Reads a data file of this crate, which the tests check.
    fn read(text: &str) -> Self {
        let mut weights = Self::ZERO;
        let words: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect();
        for field in words.chunk_by(|_, word| !word.starts_with(char::is_alphabetic)) {
            let numbers: Vec<i32> = field[1..].iter().filter_map(|word| word.parse().ok()).collect();
            weights.set(field[0], &numbers).unwrap_or_else(|error| unreachable!("a data file: {error}"));
        }
        weights
    }
}

impl Default for Weights {
    /// The tuned weights, which play better than the published ones.
    fn default() -> Self {
        Self::read(TUNED)
    }
}

// Terms are found as the first of a group plus the number of a piece or place, so the order of these fields matters.
const _: () = {
    let FirstTerms { pawn_value, knight_value, bishop_value, rook_value, queen_value, .. } = TERMS;
    assert!(are_in_a_row(&[pawn_value, knight_value, bishop_value, rook_value, queen_value], 1));
    let FirstTerms { pawn_squares, knight_squares, bishop_squares, rook_squares, queen_squares, king_squares, .. } = TERMS;
    assert!(are_in_a_row(&[pawn_squares, knight_squares, bishop_squares, rook_squares, queen_squares, king_squares], 64));
    let FirstTerms { knight_mobility_bonus, bishop_mobility_bonus, rook_mobility_bonus, queen_mobility_bonus, .. } = TERMS;
    assert!(are_in_a_row(&[knight_mobility_bonus, bishop_mobility_bonus, rook_mobility_bonus, queen_mobility_bonus], 1));
    let FirstTerms { pawn_threat_bonus, minor_threat_bonus, rook_threat_bonus, hanging_threat_bonus, .. } = TERMS;
    assert!(are_in_a_row(&[pawn_threat_bonus, minor_threat_bonus, rook_threat_bonus, hanging_threat_bonus], 1));
};

const fn are_in_a_row(first_terms: &[usize], terms: usize) -> bool {
    let mut place = 1;
    while place < first_terms.len() && first_terms[place] == first_terms[place - 1] + terms {
        place += 1;
    }
    place == first_terms.len()
}

weights! {
    /// Piece value of a pawn.
    pawn_value: Pair,
    /// Piece value of a knight.
    knight_value: Pair,
    /// Piece value of a bishop.
    bishop_value: Pair,
    /// Piece value of a rook.
    rook_value: Pair,
    /// Piece value of a queen.
    queen_value: Pair,
    /// Piece-square table of pawns.
    pawn_squares: Squares,
    /// Piece-square table of knights.
    knight_squares: Squares,
    /// Piece-square table of bishops.
    bishop_squares: Squares,
    /// Piece-square table of rooks.
    rook_squares: Squares,
    /// Piece-square table of queens.
    queen_squares: Squares,
    /// Piece-square table of the king.
    king_squares: Squares,
    /// Phase weights of pawn, knight, bishop, rook, queen. The initial material is the full middlegame.
    phase_weights: [i32; 5],
    /// Bishop pair.
    two_bishops_bonus: Pair,
    /// Tempo.
    tempo_bonus: Pair,
    /// Passed pawn, by rank from the owner's side; only the foremost of its file.
    passed_pawn_bonus: Ranks,
    /// Isolated pawn.
    isolated_pawn_bonus: Pair,
    /// Doubled pawn: an own pawn is ahead on the same file.
    doubled_pawn_bonus: Pair,
    /// Rook on an open file.
    rook_open_file_bonus: Pair,
    /// Rook on a half-open file.
    rook_half_open_file_bonus: Pair,
    /// Knight mobility, per target square not attacked by enemy pawns.
    knight_mobility_bonus: Pair,
    /// Bishop mobility.
    bishop_mobility_bonus: Pair,
    /// Rook mobility.
    rook_mobility_bonus: Pair,
    /// Queen mobility.
    queen_mobility_bonus: Pair,
    /// Protected pawn, by rank.
    guarded_pawn_bonus: Ranks,
    /// King proximity to the stop square of each passed pawn: enemy minus own king distance.
    passed_king_bonus: Pair,
    /// Blocked passed pawn.
    passed_stopped_bonus: Pair,
    /// Outpost: a minor piece on ranks 4 to 6, protected by a pawn, outside the attack spans of enemy pawns.
    outpost_bonus: Pair,
    /// Threat by a pawn against a piece.
    pawn_threat_bonus: Pair,
    /// Threat by a minor piece against a rook or queen.
    minor_threat_bonus: Pair,
    /// Threat by a rook against a queen.
    rook_threat_bonus: Pair,
    /// Hanging enemy piece or pawn: attacked and not guarded.
    hanging_threat_bonus: Pair,
    /// Pawn shield: own pawn on the two ranks before the king, on its file or an adjacent one.
    king_shield_bonus: Pair,
    /// Open file next to the king: such a file without own pawns.
    king_open_file_bonus: Pair,
    /// King danger, 16 levels, by weighted attacks on the squares around the king.
    king_danger_bonus: Dangers,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn data_files_have_every_field_once() {
        for text in [PUBLISHED, TUNED] {
            let names: Vec<&str> = text.split_whitespace().filter(|word| word.contains('_')).filter(|word| !word.contains('/')).collect();
            assert!(names.iter().eq(Weights::default().fields().iter().map(|(name, _)| name)));
        }
    }

    #[test]
    fn fields_round_trip() {
        let weights = Weights::default();
        let mut other = Weights::default();
        for (name, numbers) in weights.fields() {
            let changed: Vec<i32> = numbers.iter().map(|number| number + 1).collect();
            other.set(name, &changed).unwrap();
        }
        assert!(weights.fields().iter().zip(other.fields()).all(|((_, one), (_, two))| one.iter().zip(two).all(|(a, b)| a + 1 == b)));
        assert_eq!(other.king_squares[1][63], weights.king_squares[1][63] + 1);
    }

    #[test]
    fn invalid_weights_are_named() {
        let mut weights = Weights::default();
        let text = |result: Result<(), Error>| result.unwrap_err().to_string();
        assert_eq!(text(weights.set("rook_value", &[1])), "rook_value has 1 numbers: it must have 2");
        assert_eq!(text(weights.set("rook_value", &[1, 20_001])), "rook_value must be from -20000 to 20000, not 20001");
        assert!(text(weights.set("rook_value", &[1, i32::MIN])).contains("rook_value"));
        assert_eq!(text(weights.set("rooks", &[1, 2])), "there is no weight \"rooks\"");
        assert_eq!(weights, Weights::default());
    }
}
