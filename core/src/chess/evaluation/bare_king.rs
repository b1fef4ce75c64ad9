//! Mop-up evaluation against a bare king: from the ending tables, and by progress towards mate with bishops and knights.
//!
//! Without it all such positions have values near 1, and a search makes no progress. The constants are hand-set, since such
//! positions are too rare for tuning.

use cozy_chess::{get_bishop_moves, get_king_moves, get_knight_moves, BitBoard, Board, Color, Piece, Square};

use crate::chess::endings::{ending, Ending};
use crate::games::chess::Chess;

/// Value lost per ply to mate: the longest win, with a pawn, has value 0.72.
const PER_PLY: f64 = 0.005;

/// Progress factor of a bishop and knight ending without progress.
const MIN_PROGRESS: f64 = 0.1;

/// Weights of the bare king's distance to the corner, the distance of the kings, and the mobility of the bare king.
const CORNER: f64 = 3.0;
const CLOSE: f64 = 1.0;
const MOBILITY: f64 = 0.3;

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
    // The nearest such corner is at most 7 steps away, and kings are at least 2 steps apart.
    let to_corner = corners.into_iter().map(|corner| steps(bare, corner)).min().unwrap_or(7);
    let in_corner = 1.0 - f64::from(to_corner) / 7.0;
    let close = 1.0 - f64::from(steps(king, bare).saturating_sub(2)) / 12.0;
    let confined = 1.0 - f64::from(mobility(board, strong, bare).min(32)) / 32.0;
    let reached = (CORNER * in_corner + CLOSE * close + MOBILITY * confined) / (CORNER + CLOSE + MOBILITY);
    // Squared, since the last steps are the hardest to find.
    MIN_PROGRESS + (1.0 - MIN_PROGRESS) * reached * reached
}

/// Returns the corners where bishops and knights can force mate: all with bishops on both colours, those of the bishop's colour
/// with a knight; else none.
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

/// Returns the number of squares that the bare king can reach while the other pieces stay (flood fill).
fn mobility(board: &Board, strong: Color, bare: Square) -> u32 {
    // Bishops attack through the bare king.
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
    fn progress_is_highest_in_the_corner_of_the_bishop() {
        // The bishop on f1 is on light squares, as are h1 and a8.
        let right = share("k7/2K5/8/8/8/8/8/5BN1 w - - 0 1");
        let wrong = share("8/8/8/8/8/8/2K5/k4BN1 w - - 0 1");
        let centre = share("8/8/8/3k4/8/3K4/8/5BN1 w - - 0 1");
        assert!(right > centre && centre >= MIN_PROGRESS && right > wrong + 0.5, "{right} {centre} {wrong}");
        // With bishops on both colours every corner counts.
        assert_eq!(share("8/8/8/8/8/8/2K5/k4B1B w - - 0 1"), 1.0); // both light: no mate
        assert!(share("8/8/8/8/8/8/2K5/k4BB1 w - - 0 1") > wrong + 0.5);
    }

    #[test]
    fn progress_grows_with_closer_kings_and_lower_mobility() {
        let near = share("8/8/8/3k4/8/3K4/8/5BN1 w - - 0 1");
        assert!(near > share("8/8/8/3k4/8/8/8/K4BN1 w - - 0 1"));
        assert_eq!(near, share("5bn1/8/3k4/8/3K4/8/8/8 b - - 0 1").max(share("5nb1/8/3k4/8/3K4/8/8/8 b - - 0 1")));
    }

    #[test]
    fn progress_is_one_without_bare_king() {
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
