//! Retrograde analysis of one ending; White is the strong side.
//!
//! One byte per position: 0 if not won, else plies to mate plus 1. Mirrored so that White's king is on files a to d.

use cozy_chess::{get_bishop_moves, get_king_moves, get_pawn_attacks, get_rook_moves, BitBoard, Color, Piece, Rank, Square};

/// White's king on 32 squares, Black's king on 64, the piece on 64.
const POSITIONS: usize = 32 * 64 * 64;

/// Upper bound of plies to mate; the longest win, with a pawn, takes 28 moves.
const MAX_PLIES: usize = 64;

/// The squares of the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub strong_king: Square,
    pub weak_king: Square,
    pub piece: Square,
}

impl Place {
    fn index(self) -> usize {
        let mirror = |square: Square| if self.strong_king as usize % 8 < 4 { square } else { square.flip_file() };
        let [strong_king, weak_king, piece] = [self.strong_king, self.weak_king, self.piece].map(|square| mirror(square) as usize);
        ((strong_king / 8 * 4 + strong_king % 8) * 64 + weak_king) * 64 + piece
    }

    /// Returns whether the squares are consistent, whoever is to move.
    fn is_possible(self, kind: Piece) -> bool {
        let on_last_ranks = matches!(self.piece.rank(), Rank::First | Rank::Eighth);
        self.strong_king != self.weak_king
            && self.piece != self.strong_king
            && self.piece != self.weak_king
            && !get_king_moves(self.strong_king).has(self.weak_king)
            && !(kind == Piece::Pawn && on_last_ranks)
    }

    /// Returns the squares that the piece attacks, through the weak king, which cannot evade along the line.
    fn attacks(self, kind: Piece) -> BitBoard {
        let blockers = self.strong_king.bitboard();
        match kind {
            Piece::Queen => get_rook_moves(self.piece, blockers) | get_bishop_moves(self.piece, blockers),
            Piece::Rook => get_rook_moves(self.piece, blockers),
            _ => get_pawn_attacks(self.piece, Color::White),
        }
    }

    /// Returns whether the position is legal with White to move: Black is not in check.
    fn is_white_to_move(self, kind: Piece) -> bool {
        self.is_possible(kind) && !self.attacks(kind).has(self.weak_king)
    }

    /// Returns the legal moves of the weak king, capture of an unguarded piece included.
    fn escapes(self, kind: Piece) -> BitBoard {
        get_king_moves(self.weak_king) & !get_king_moves(self.strong_king) & !self.attacks(kind)
    }

    /// Returns the predecessors by a quiet move of White; some may be illegal with White to move.
    fn before(self, kind: Piece) -> impl Iterator<Item = Self> {
        let (strong_king, piece) = (self.strong_king.bitboard(), self.piece.bitboard());
        let taken = strong_king | piece | self.weak_king.bitboard();
        let back = match kind {
            Piece::Queen => get_rook_moves(self.piece, taken) | get_bishop_moves(self.piece, taken),
            Piece::Rook => get_rook_moves(self.piece, taken),
            // Pawn moves backwards: one step, and two from the fourth rank.
            _ => {
                let one = BitBoard(piece.0 >> 8) & !taken;
                one | BitBoard(one.0 >> 8) & Rank::Second.bitboard()
            }
        };
        let kings = get_king_moves(self.strong_king) & !taken;
        let by_king = kings.into_iter().map(move |strong_king| Self { strong_king, ..self });
        let by_piece = (back & !taken).into_iter().map(move |piece| Self { piece, ..self });
        by_king.chain(by_piece)
    }
}

/// White's wins with one kind of piece.
pub(super) struct Table {
    kind: Piece,
    white_to_move: Vec<u8>,
    black_to_move: Vec<u8>,
}

impl Table {
    /// Solves the ending of a queen, rook or pawn; a pawn needs the tables of queen and rook, `promoted`.
    pub(super) fn new(kind: Piece, promoted: &[&Self]) -> Self {
        let mut table = Self { kind, white_to_move: vec![0; POSITIONS], black_to_move: vec![0; POSITIONS] };
        // By plies to mate: wins of White by promotion, and losses of Black.
        let mut promotions: Vec<Vec<Place>> = vec![Vec::new(); MAX_PLIES];
        let mut lost = Vec::new();
        for place in all_places() {
            if !place.is_possible(kind) {
                continue;
            }
            if place.attacks(kind).has(place.weak_king) {
                if place.escapes(kind).is_empty() {
                    table.black_to_move[place.index()] = 1;
                    lost.push(place);
                }
            } else if let Some(plies) = promoted.iter().filter_map(|other| place.promoted(other)).min() {
                promotions[usize::from(plies) + 1].push(place);
            }
        }
        for plies in (1..MAX_PLIES).step_by(2) {
            let mut won: Vec<Place> = std::mem::take(&mut promotions[plies]);
            won.extend(lost.drain(..).flat_map(|place: Place| place.before(kind)));
            // Tests for known positions first, the most frequent case.
            won.retain(|place| {
                let byte = &mut table.white_to_move[place.index()];
                let is_new = *byte == 0 && place.is_white_to_move(kind);
                *byte = if is_new { plies as u8 + 1 } else { *byte };
                is_new
            });
            for place in won {
                for weak_king in get_king_moves(place.weak_king) {
                    let before = Place { weak_king, ..place };
                    let index = before.index();
                    if table.black_to_move[index] == 0 && before.is_possible(kind) && table.is_lost(before) {
                        table.black_to_move[index] = plies as u8 + 2;
                        lost.push(before);
                    }
                }
            }
        }
        table
    }

    /// Returns the plies to White's mate; None if not won.
    pub(super) fn plies(&self, place: Place, white_to_move: bool) -> Option<u16> {
        let side = if white_to_move { &self.white_to_move } else { &self.black_to_move };
        side[place.index()].checked_sub(1).map(u16::from)
    }

    /// Returns whether Black has moves and all of them lose.
    fn is_lost(&self, place: Place) -> bool {
        let escapes = place.escapes(self.kind);
        // Capturing the piece leaves two kings: never won.
        let lets_win = |weak_king| self.white_to_move[Place { weak_king, ..place }.index()] != 0;
        !escapes.is_empty() && escapes.into_iter().all(lets_win)
    }
}

impl Place {
    /// Returns the plies in which Black is mated after an immediate promotion.
    fn promoted(self, other: &Table) -> Option<u16> {
        let piece = (self.piece.rank() == Rank::Seventh).then(|| Square::index(self.piece as usize + 8))?;
        let after = Self { piece, ..self };
        after.is_possible(other.kind).then(|| other.plies(after, false))?
    }
}

/// Returns all placements of three pieces with White's king on files a to d.
fn all_places() -> impl Iterator<Item = Place> {
    let kings = Square::ALL.into_iter().filter(|strong_king| (*strong_king as usize) % 8 < 4);
    kings.flat_map(|strong_king| {
        Square::ALL.into_iter().flat_map(move |weak_king| Square::ALL.into_iter().map(move |piece| Place { strong_king, weak_king, piece }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (positions with White to move, of them won; with Black to move, of them lost; the longest win in moves), counted on
    /// the whole board.
    fn counted(table: &Table) -> [usize; 5] {
        let mut counts = [0; 5];
        for place in all_places().filter(|place| place.is_possible(table.kind)) {
            counts[2] += 2;
            counts[3] += 2 * usize::from(table.plies(place, false).is_some());
            if place.is_white_to_move(table.kind) {
                counts[0] += 2;
                let plies = table.plies(place, true);
                counts[1] += 2 * usize::from(plies.is_some());
                counts[4] = counts[4].max(plies.map_or(0, |plies| usize::from(plies).div_ceil(2)));
            }
        }
        counts
    }

    #[test]
    fn longest_wins_match_known_values() {
        let (queen, rook) = (Table::new(Piece::Queen, &[]), Table::new(Piece::Rook, &[]));
        let pawn = Table::new(Piece::Pawn, &[&queen, &rook]);
        // A queen or a rook always wins if it moves first; of a pawn's 163,328 positions, 124,960 are won.
        assert_eq!(counted(&queen), [144_508, 144_508, 223_944, 200_896, 10]);
        assert_eq!(counted(&rook), [175_168, 175_168, 223_944, 201_700, 16]);
        assert_eq!(counted(&pawn), [163_328, 124_960, 168_024, 97_604, 28]);
    }
}
