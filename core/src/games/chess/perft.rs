//! Perft: counts move sequences, to verify the move generator.

use cozy_chess::Board;

use super::{board_after, Chess};

/// Returns the number of sequences of `depth` legal moves. By convention draws other than stalemate are ignored.
#[must_use]
pub fn perft(game: &Chess, depth: u32) -> u64 {
    match depth {
        0 => 1,
        _ => count(game.board(), depth),
    }
}

fn count(board: &Board, depth: u32) -> u64 {
    if depth == 1 {
        return count_moves(board);
    }
    let mut nodes = 0;
    board.generate_moves(|moves| {
        for mv in moves {
            nodes += count(&board_after(board, mv), depth - 1);
        }
        false
    });
    nodes
}

/// Bulk counting: leaf moves are counted, not played.
fn count_moves(board: &Board) -> u64 {
    let mut nodes = 0;
    board.generate_moves(|moves| {
        nodes += moves.len() as u64;
        false
    });
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::{game, POSITIONS};

    /// Counts at depths 0 and up.
    const COUNTS: [&[u64]; 6] = [
        &[1, 20, 400, 8_902, 197_281, 4_865_609],
        &[1, 48, 2_039, 97_862, 4_085_603, 193_690_690],
        &[1, 14, 191, 2_812, 43_238, 674_624, 11_030_083],
        &[1, 6, 264, 9_467, 422_333, 15_833_292],
        &[1, 44, 1_486, 62_379, 2_103_487, 89_941_194],
        &[1, 46, 2_079, 89_890, 3_894_594, 164_075_551],
    ];

    #[test]
    fn perft_matches_the_wiki() {
        for (fen, counts) in POSITIONS.into_iter().zip(COUNTS) {
            let game = game(fen);
            for (depth, &nodes) in (0..).zip(counts) {
                assert_eq!(perft(&game, depth), nodes, "{fen} at depth {depth}");
            }
        }
    }
}
