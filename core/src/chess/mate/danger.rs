//! A cheap filter for mate searches by the king's escape squares and attackers.

use cozy_chess::{get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks, get_rook_moves, BitBoard, Board, Piece};

/// Upper bound of escape squares with two attackers; with at most one escape square any attack suffices.
const MAX_ESCAPES: u32 = 3;

/// Returns whether the king of the side not to move has few escape squares and attackers near it.
#[must_use]
pub(super) fn is_in_danger(board: &Board) -> bool {
    let color = board.side_to_move();
    let (own, occupied) = (board.colors(color), board.occupied());
    let king = board.king(!color);
    let ring = get_king_moves(king);
    let free = ring & !board.colors(!color);
    let mut attacked = get_king_moves(board.king(color));
    let mut attackers = u32::from(!(attacked & ring).is_empty());
    for pawn in own & board.pieces(Piece::Pawn) {
        attacked |= get_pawn_attacks(pawn, color);
    }
    let mut add = |attacks: BitBoard| {
        attackers += u32::from(!(attacks & ring).is_empty());
        attacked |= attacks;
    };
    for knight in own & board.pieces(Piece::Knight) {
        add(get_knight_moves(knight));
    }
    let queens = board.pieces(Piece::Queen);
    for slider in own & (board.pieces(Piece::Bishop) | queens) {
        add(get_bishop_moves(slider, occupied));
    }
    for slider in own & (board.pieces(Piece::Rook) | queens) {
        add(get_rook_moves(slider, occupied));
    }
    let escapes = (free & !attacked).len();
    escapes <= 1 || attackers >= 2 && escapes <= MAX_ESCAPES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn danger_separates_mating_attacks_from_free_kings() {
        let dangerous = [
            "7k/6pp/8/8/8/8/8/R5K1 w - - 0 1",                                    // the back rank, in a corner
            "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 1", // queen and bishop on f7
            "6rk/6pp/8/6N1/8/8/8/6K1 w - - 0 1",                                  // smothered
            "7k/8/5K2/8/8/8/8/6Q1 w - - 0 1",                                     // king and queen
        ];
        let calm = ["4k3/8/8/8/3N4/8/8/4K3 w - - 0 1", "8/8/8/3k4/8/8/8/R3K3 w - - 0 1"];
        for (fens, expected) in [(&dangerous[..], true), (&calm[..], false)] {
            for fen in fens {
                assert_eq!(is_in_danger(&fen.parse().expect("a position")), expected, "{fen}");
            }
        }
    }
}
