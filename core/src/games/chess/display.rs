//! The board as people draw it.

use std::fmt;

use cozy_chess::{Board, Color, File, Rank, Square};

use super::Chess;

/// The letter of the piece on a square: capital for White.
pub(super) fn letter(board: &Board, square: Square) -> Option<char> {
    let letter = char::from(board.piece_on(square)?);
    Some(if board.colors(Color::White).has(square) { letter.to_ascii_uppercase() } else { letter })
}

impl fmt::Display for Chess {
    /// White below, capital letters for White, the coordinates at the edges, and who moves.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let board = self.board();
        for rank in Rank::ALL.into_iter().rev() {
            write!(formatter, "{rank}")?;
            for file in File::ALL {
                write!(formatter, " {}", letter(board, Square::new(file, rank)).unwrap_or('.'))?;
            }
            writeln!(formatter)?;
        }
        writeln!(formatter, "  a b c d e f g h")?;
        write!(formatter, "{} to move", if board.side_to_move() == Color::White { "White" } else { "Black" })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::games::chess::Chess;

    #[test]
    fn the_start_is_drawn() {
        let drawn = "8 r n b q k b n r\n7 p p p p p p p p\n6 . . . . . . . .\n5 . . . . . . . .\n4 . . . . . . . .\n\
                     3 . . . . . . . .\n2 P P P P P P P P\n1 R N B Q K B N R\n  a b c d e f g h\nWhite to move";
        assert_eq!(Chess::default().to_string(), drawn);
    }
}
