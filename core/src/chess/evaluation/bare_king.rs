//! Evaluation of positions against a bare king: exact from the ending tables, and by progress towards mate with bishops and
//! knights.
//!
//! Without it all such positions have values near 1, and a search makes no progress. The numbers are fixed: such positions are
//! too rare to tune on.

use cozy_chess::{get_bishop_moves, get_king_moves, get_knight_moves, BitBoard, Board, Color, Piece, Square};

use crate::chess::endings::{ending, Ending};
use crate::games::chess::Chess;

/// Value lost per ply to the mate: the longest one, with a pawn, is worth 0.72.
const PER_PLY: f64 = 0.005;

/// Share of the value of a bishop and knight ending without progress; the rest rewards progress in steps of some hundredths.
const LEAST: f64 = 0.1;

/// Weights of progress: a king in a corner, kings close to each other, low mobility of the bare king.
const CORNER: f64 = 3.0;
const CLOSE: f64 = 1.0;
const ROOM: f64 = 0.3;

/// Returns the value of a three-piece ending for the side to move, if a table has it.
pub(in crate::chess) fn in_table(state: &Chess) -> Option<f64> {
    Some(match ending(state)? {
        Ending::Wins(plies) => 1.0 - PER_PLY * f64::from(plies),
        Ending::Loses(plies) => PER_PLY * f64::from(plies) - 1.0,
        Ending::Drawn => 0.0,
    })
}

/// Returns the progress factor of endings with bishops, or a bishop and knights, against a bare king; 1 elsewhere.
pub(in crate::chess) fn progress(board: &Board) -> f64 {
    let Some(strong) = Color::ALL.into_iter().find(|&color| board.colors(!color).len() == 1) else { return 1.0 };
    let Some(corners) = corners(board) else { return 1.0 };
    let (king, bare) = (board.king(strong), board.king(!strong));
    // No square is further than 7 from such a corner, and kings are at least 2 apart.
    let to_corner = corners.into_iter().map(|corner| steps(bare, corner)).min().unwrap_or(7);
    let in_corner = 1.0 - f64::from(to_corner) / 7.0;
    let close = 1.0 - f64::from(steps(king, bare).saturating_sub(2)) / 12.0;
    let confined = 1.0 - f64::from(mobility(board, strong, bare).min(32)) / 32.0;
    let reached = (CORNER * in_corner + CLOSE * close + ROOM * confined) / (CORNER + CLOSE + ROOM);
    // Squared: the last steps are the hardest to find.
    LEAST + (1.0 - LEAST) * reached * reached
}

/// Returns the corners in which bishops and knights can force mate: all with bishops of both colours, else those of the
/// bishop's colour if there is a knight; none otherwise.
fn corners(board: &Board) -> Option<BitBoard> {
    let others = board.pieces(Piece::Pawn) | board.pieces(Piece::Rook) | board.pieces(Piece::Queen);
    if !others.is_empty() {
        return None;
    }
    let bishops = board.pieces(Piece::Bishop);
    let colours = [BitBoard::LIGHT_SQUARES, BitBoard::DARK_SQUARES].into_iter().filter(|&squares| !bishops.is_disjoint(squares));
    let corners = colours.fold(BitBoard::EMPTY, |all, squares| all | BitBoard::CORNERS & squares);
    (corners.len() == 4 || (!corners.is_empty() && !board.pieces(Piece::Knight).is_empty())).then_some(corners)
}

/// Returns how many squares the bare king could reach if nothing else moved.
fn mobility(board: &Board, strong: Color, bare: Square) -> u32 {
    // The king does not shield squares from a bishop that attacks it.
    let blockers = board.occupied() ^ bare.bitboard();
    let mut guarded = get_king_moves(board.king(strong));
    for square in board.pieces(Piece::Bishop) {
        guarded |= get_bishop_moves(square, blockers);
    }
    for square in board.pieces(Piece::Knight) {
        guarded |= get_knight_moves(square);
    }
    let (mut walked, mut new) = (bare.bitboard(), bare.bitboard());
    while !new.is_empty() {
        let around = new.into_iter().fold(BitBoard::EMPTY, |all, square| all | get_king_moves(square));
        new = around & !guarded & !walked;
        walked |= new;
    }
    walked.len()
}

/// Returns the Manhattan distance of two squares.
fn steps(from: Square, to: Square) -> u32 {
    let apart = |one: usize, other: usize| one.abs_diff(other) as u32;
    apart(from.file() as usize, to.file() as usize) + apart(from.rank() as usize, to.rank() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(fen: &str) -> f64 {
        progress(&fen.parse::<Board>().expect("a position"))
    }

    #[test]
    fn a_bishop_and_a_knight_drive_the_king_to_the_corner_of_the_bishop() {
        // The bishop on f1 is on light squares, as are h1 and a8.
        let right = share("k7/2K5/8/8/8/8/8/5BN1 w - - 0 1");
        let wrong = share("8/8/8/8/8/8/2K5/k4BN1 w - - 0 1");
        let centre = share("8/8/8/3k4/8/3K4/8/5BN1 w - - 0 1");
        assert!(right > centre && centre >= LEAST && right > wrong + 0.5, "{right} {centre} {wrong}");
        // With a second bishop, any corner will do.
        assert_eq!(share("8/8/8/8/8/8/2K5/k4B1B w - - 0 1"), 1.0); // both light: no mate
        assert!(share("8/8/8/8/8/8/2K5/k4BB1 w - - 0 1") > wrong + 0.5);
    }

    #[test]
    fn closer_kings_and_less_room_are_progress() {
        let near = share("8/8/8/3k4/8/3K4/8/5BN1 w - - 0 1");
        assert!(near > share("8/8/8/3k4/8/8/8/K4BN1 w - - 0 1"));
        assert_eq!(near, share("5bn1/8/3k4/8/3K4/8/8/8 b - - 0 1").max(share("5nb1/8/3k4/8/3K4/8/8/8 b - - 0 1")));
    }

    #[test]
    fn nothing_else_is_touched() {
        for fen in [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "8/8/8/3k4/8/3K4/8/4QR2 w - - 0 1",
            "8/8/8/3k4/8/3K4/P7/5BN1 w - - 0 1",
            "8/8/8/3k4/8/3K4/8/4NN2 w - - 0 1",
            "8/p7/8/3k4/8/3K4/8/5BN1 w - - 0 1",
        ] {
            assert_eq!(share(fen), 1.0, "{fen}");
        }
    }
}
