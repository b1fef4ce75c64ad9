//! One ending, solved backwards from its mates: a king and one piece, here White's, against a king.
//!
//! Every position has a byte: 0 if it is not won, else one more than the plies to the mate. The board is mirrored so that
//! White's king stands on the files a to d: the rules here know no left and right.

use cozy_chess::{get_bishop_moves, get_king_moves, get_pawn_attacks, get_rook_moves, BitBoard, Color, Piece, Rank, Square};

/// White's king on 32 squares, Black's king on 64, the piece on 64.
const POSITIONS: usize = 32 * 64 * 64;

/// No win takes so many plies: the longest, of a pawn, takes 28 moves.
const MOST_PLIES: usize = 64;

/// Where the pieces stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub king: Square,
    pub enemy: Square,
    pub piece: Square,
}

impl Place {
    fn index(self) -> usize {
        let mirror = |square: Square| if self.king as usize % 8 < 4 { square } else { square.flip_file() };
        let [king, enemy, piece] = [self.king, self.enemy, self.piece].map(|square| mirror(square) as usize);
        ((king / 8 * 4 + king % 8) * 64 + enemy) * 64 + piece
    }

    /// Whether the pieces can stand like this, whoever is to move.
    fn is_possible(self, kind: Piece) -> bool {
        let on_last_ranks = matches!(self.piece.rank(), Rank::First | Rank::Eighth);
        self.king != self.enemy
            && self.piece != self.king
            && self.piece != self.enemy
            && !get_king_moves(self.king).has(self.enemy)
            && !(kind == Piece::Pawn && on_last_ranks)
    }

    /// The squares that the piece attacks. Black's king hides none: it would still stand there if it stepped back.
    fn attacks(self, kind: Piece) -> BitBoard {
        let blockers = self.king.bitboard();
        match kind {
            Piece::Queen => get_rook_moves(self.piece, blockers) | get_bishop_moves(self.piece, blockers),
            Piece::Rook => get_rook_moves(self.piece, blockers),
            _ => get_pawn_attacks(self.piece, Color::White),
        }
    }

    /// Whether it can be White's move: Black is not in check.
    fn is_white_to_move(self, kind: Piece) -> bool {
        self.is_possible(kind) && !self.attacks(kind).has(self.enemy)
    }

    /// Where Black's king may go, the square of an unguarded piece included.
    fn escapes(self, kind: Piece) -> BitBoard {
        get_king_moves(self.enemy) & !get_king_moves(self.king) & !self.attacks(kind)
    }

    /// The positions from which White may have come here by a quiet move; some may not be legal with White to move.
    fn before(self, kind: Piece) -> impl Iterator<Item = Self> {
        let (king, piece) = (self.king.bitboard(), self.piece.bitboard());
        let taken = king | piece | self.enemy.bitboard();
        let back = match kind {
            Piece::Queen => get_rook_moves(self.piece, taken) | get_bishop_moves(self.piece, taken),
            Piece::Rook => get_rook_moves(self.piece, taken),
            // As a pawn of the other side would go: one back, and from the fourth rank two.
            _ => {
                let one = BitBoard(piece.0 >> 8) & !taken;
                one | BitBoard(one.0 >> 8) & Rank::Second.bitboard()
            }
        };
        let kings = get_king_moves(self.king) & !taken;
        let by_king = kings.into_iter().map(move |king| Self { king, ..self });
        let by_piece = (back & !taken).into_iter().map(move |piece| Self { piece, ..self });
        by_king.chain(by_piece)
    }
}

/// The wins of White with one kind of piece.
pub(super) struct Table {
    kind: Piece,
    white_to_move: Vec<u8>,
    black_to_move: Vec<u8>,
}

impl Table {
    /// Solves the ending of a queen, a rook or a pawn; a pawn's rests on the `promoted` two.
    pub(super) fn new(kind: Piece, promoted: &[&Self]) -> Self {
        let mut table = Self { kind, white_to_move: vec![0; POSITIONS], black_to_move: vec![0; POSITIONS] };
        // By plies to the mate: wins of White to move that a promotion brings about, and losses of Black.
        let mut promotions: Vec<Vec<Place>> = vec![Vec::new(); MOST_PLIES];
        let mut lost = Vec::new();
        for place in all_places() {
            if !place.is_possible(kind) {
                continue;
            }
            if place.attacks(kind).has(place.enemy) {
                if place.escapes(kind).is_empty() {
                    table.black_to_move[place.index()] = 1;
                    lost.push(place);
                }
            } else if let Some(plies) = promoted.iter().filter_map(|other| place.promoted(other)).min() {
                promotions[usize::from(plies) + 1].push(place);
            }
        }
        for plies in (1..MOST_PLIES).step_by(2) {
            let mut won: Vec<Place> = std::mem::take(&mut promotions[plies]);
            won.extend(lost.drain(..).flat_map(|place: Place| place.before(kind)));
            // Most are known already, which is the quickest to see.
            won.retain(|place| {
                let byte = &mut table.white_to_move[place.index()];
                let is_new = *byte == 0 && place.is_white_to_move(kind);
                *byte = if is_new { plies as u8 + 1 } else { *byte };
                is_new
            });
            for place in won {
                for enemy in get_king_moves(place.enemy) {
                    let before = Place { enemy, ..place };
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

    /// The plies to White's mate; None if it has none.
    pub(super) fn plies(&self, place: Place, white_to_move: bool) -> Option<u16> {
        let side = if white_to_move { &self.white_to_move } else { &self.black_to_move };
        side[place.index()].checked_sub(1).map(u16::from)
    }

    /// Whether Black has moves, and each of them lets White win.
    fn is_lost(&self, place: Place) -> bool {
        let escapes = place.escapes(self.kind);
        // Where the king takes the piece, two would stand on a square: never won.
        let lets_win = |enemy| self.white_to_move[Place { enemy, ..place }.index()] != 0;
        !escapes.is_empty() && escapes.into_iter().all(lets_win)
    }
}

impl Place {
    /// A pawn that can be made a piece of another table at once: the plies in which Black is then mated.
    fn promoted(self, other: &Table) -> Option<u16> {
        let piece = (self.piece.rank() == Rank::Seventh).then(|| Square::index(self.piece as usize + 8))?;
        let after = Self { piece, ..self };
        after.is_possible(other.kind).then(|| other.plies(after, false))?
    }
}

/// Every way to put three pieces on the board, White's king on the files a to d.
fn all_places() -> impl Iterator<Item = Place> {
    let kings = Square::ALL.into_iter().filter(|king| (*king as usize) % 8 < 4);
    kings.flat_map(|king| {
        Square::ALL.into_iter().flat_map(move |enemy| Square::ALL.into_iter().map(move |piece| Place { king, enemy, piece }))
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
    fn endings_are_as_long_as_they_are_known_to_be() {
        let (queen, rook) = (Table::new(Piece::Queen, &[]), Table::new(Piece::Rook, &[]));
        let pawn = Table::new(Piece::Pawn, &[&queen, &rook]);
        // A queen or a rook always wins if it moves first; of a pawn's 163,328 positions, 124,960 are won.
        assert_eq!(counted(&queen), [144_508, 144_508, 223_944, 200_896, 10]);
        assert_eq!(counted(&rook), [175_168, 175_168, 223_944, 201_700, 16]);
        assert_eq!(counted(&pawn), [163_328, 124_960, 168_024, 97_604, 28]);
    }
}
