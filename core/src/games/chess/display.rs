//! Board diagrams.

use std::fmt;

use cozy_chess::{Board, Color, File, Rank, Square};

use super::rules::Termination;
use super::Chess;

/// Returns the letter of the piece on a square, upper case for White.
pub(super) fn letter(board: &Board, square: Square) -> Option<char> {
    let letter = char::from(board.piece_on(square)?);
    Some(if board.colors(Color::White).has(square) { letter.to_ascii_uppercase() } else { letter })
}

impl fmt::Display for Chess {
    /// Formats the board with White at the bottom and coordinates, followed by the side to move or the result.
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
        let name = |color| if color == Color::White { "White" } else { "Black" };
        match self.termination() {
            None => write!(formatter, "{} to move", name(board.side_to_move())),
            Some(Termination::Checkmate) => write!(formatter, "{} wins by checkmate", name(!board.side_to_move())),
            Some(draw) => write!(formatter, "draw by {}", draw.name().replace('_', " ")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::games::chess::Chess;

    #[test]
    fn diagram_of_the_start_position() {
        let drawn = "8 r n b q k b n r\n7 p p p p p p p p\n6 . . . . . . . .\n5 . . . . . . . .\n4 . . . . . . . .\n\
                     3 . . . . . . . .\n2 P P P P P P P P\n1 R N B Q K B N R\n  a b c d e f g h\nWhite to move";
        assert_eq!(Chess::default().to_string(), drawn);
    }

    #[test]
    fn last_line_names_result_and_reason() {
        for (fen, last) in [
            ("7k/5KQ1/8/8/8/8/8/8 b - - 0 1", "White wins by checkmate"),
            ("8/8/8/8/8/8/5kq1/7K w - - 0 1", "Black wins by checkmate"),
            ("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1", "draw by stalemate"),
            ("7k/5K2/8/8/8/8/8/8 b - - 0 1", "draw by insufficient material"),
            ("7k/5K2/8/8/8/8/8/R7 b - - 150 90", "draw by seventyfive moves"),
            ("7k/5K2/8/8/8/8/8/R7 b - - 100 90", "Black to move"),
        ] {
            assert_eq!(Chess::from_fen(fen).unwrap().to_string().lines().last(), Some(last), "{fen}");
        }
    }
}
