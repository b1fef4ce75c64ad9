//! Perft: counts move sequences, to verify the move generator.

use cozy_chess::Board;

use super::Chess;

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
            let mut next = board.clone();
            next.play_unchecked(mv);
            nodes += count(&next, depth - 1);
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
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// The positions of the page "Perft Results" of the Chess Programming Wiki.
    pub(crate) const POSITIONS: [&str; 6] = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    ];

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
            let game = Chess::from_fen(fen).unwrap();
            for (depth, &nodes) in (0..).zip(counts) {
                assert_eq!(perft(&game, depth), nodes, "{fen} at depth {depth}");
            }
        }
    }
}
