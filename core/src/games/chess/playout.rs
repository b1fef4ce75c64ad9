//! Random moves and playouts with one move generation per move.

use cozy_chess::{BitBoard, Board, Move, Piece, PieceMoves, Rank, Square};

use super::rules::is_insufficient;
use super::Chess;
use crate::games::Game;
use crate::runtime::random::Random;

/// Upper bound of move sets per position: 16 pieces and two en passant captures.
const MAX_SETS: usize = 18;

/// The legal moves of a position as generated: a set of targets per piece.
struct MoveSets {
    sets: [PieceMoves; MAX_SETS],
    /// Cumulative number of moves.
    totals: [u32; MAX_SETS],
    used: usize,
    count: u32,
}

impl MoveSets {
    fn new() -> Self {
        let none = PieceMoves { piece: Piece::Pawn, from: Square::A1, to: BitBoard::EMPTY };
        Self { sets: [none; MAX_SETS], totals: [0; MAX_SETS], used: 0, count: 0 }
    }

    /// Replaces the moves by those of `board`.
    #[inline]
    fn fill(&mut self, board: &Board) {
        let Self { sets, totals, .. } = self;
        let (mut used, mut count) = (0, 0);
        board.generate_moves(|moves| {
            if let (Some(slot), Some(total)) = (sets.get_mut(used), totals.get_mut(used)) {
                let targets = moves.to.len();
                count += if promotes(&moves) { 4 * targets } else { targets };
                *slot = moves;
                *total = count;
                used += 1;
            }
            false
        });
        (self.used, self.count) = (used, count);
    }

    /// Returns the `index`-th move in the order of `legal_actions`.
    #[inline]
    fn pick(&self, index: u32) -> Option<Move> {
        let mut before = 0;
        for (moves, &total) in self.sets.iter().zip(&self.totals).take(self.used) {
            if index < total {
                return nth(moves, index - before);
            }
            before = total;
        }
        None
    }
}

/// Returns whether the moves are promotions; a pawn that can promote has no other moves.
#[inline]
fn promotes(moves: &PieceMoves) -> bool {
    const LAST_RANKS: BitBoard = BitBoard(Rank::First.bitboard().0 | Rank::Eighth.bitboard().0);
    moves.piece == Piece::Pawn && !moves.to.is_disjoint(LAST_RANKS)
}

#[inline]
fn nth(moves: &PieceMoves, index: u32) -> Option<Move> {
    let (square, promotion) = if promotes(moves) {
        let piece = [Piece::Knight, Piece::Bishop, Piece::Rook, Piece::Queen][index as usize % 4];
        (index / 4, Some(piece))
    } else {
        (index, None)
    };
    let mut targets = moves.to.0;
    for _ in 0..square {
        targets &= targets.wrapping_sub(1);
    }
    BitBoard(targets).next_square().map(|to| Move { from: moves.from, to, promotion })
}

/// Plays a uniformly random move: the `random.choose(n)`-th in the order of `legal_actions`.
pub(super) fn play_random(game: &mut Chess, random: &mut Random) {
    let mut moves = MoveSets::new();
    moves.fill(game.board());
    choose(game, &moves, random);
}

#[inline]
fn choose(game: &mut Chess, moves: &MoveSets, random: &mut Random) {
    if moves.count > 0 {
        if let Some(mv) = moves.pick(random.choose(moves.count)) {
            game.advance(mv);
        }
    }
}

/// Equal to `Game::playout` (same random numbers), with one move generation per move.
pub(super) fn playout(game: &mut Chess, random: &mut Random, max_depth: u32) -> Option<i8> {
    let mut moves = MoveSets::new();
    let mut depth = 0;
    loop {
        // Neither can be checkmate: a repeated position had a move.
        if game.repetitions() >= 2 || is_insufficient(game.board()) {
            return Some(0);
        }
        if game.halfmove_clock() >= 100 {
            return game.outcome_in_search();
        }
        moves.fill(game.board());
        if moves.count == 0 {
            return game.outcome_in_search();
        }
        if depth == max_depth {
            return None;
        }
        choose(game, &moves, random);
        depth += 1;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::{game, POSITIONS};
    use crate::games::Action;
    use crate::runtime::random::Purpose;

    /// The default playout of the trait, with the number of plies.
    fn plain(game: &mut Chess, random: &mut Random, max_depth: u32) -> (Option<i8>, u32) {
        for depth in 0..max_depth {
            if let Some(result) = game.outcome_in_search() {
                return (Some(result), depth);
            }
            game.play_random(random);
        }
        (game.outcome_in_search(), max_depth)
    }

    fn ends() -> Vec<&'static str> {
        let mut fens = POSITIONS.to_vec();
        fens.extend([
            "8/8/8/4k3/8/8/4K3/7R w - - 0 1",
            "8/8/8/4k3/8/8/4K3/5BN1 w - - 90 100",
            "7k/8/6K1/8/8/8/8/R7 w - - 99 100",
            "k7/8/8/8/8/8/8/7K w - - 0 1",
            "7k/5Q2/8/8/8/8/8/K7 b - - 0 1",
            "k7/8/8/8/8/8/8/6RK w - - 100 100",
            "6k1/PPPP4/8/8/8/8/4pppp/1K6 w - - 0 1",
        ]);
        fens
    }

    #[test]
    fn playout_matches_trait_default() {
        let mut results = [0; 4];
        for (number, fen) in ends().into_iter().enumerate() {
            for seed in 0..60 {
                for max_depth in [0, 1, 7, 60, 100_000] {
                    let start = game(fen);
                    let (mut fast, mut slow) = (start.clone(), start);
                    let mut random = Random::new(seed * 100 + number as u64, Purpose::Playout);
                    let mut reference = random.clone();
                    let result = fast.playout(&mut random, max_depth).result;
                    assert_eq!(result, plain(&mut slow, &mut reference, max_depth).0, "{fen} {seed} {max_depth}");
                    // The same game, position by position, and as many numbers drawn.
                    assert_eq!((&fast, fast.fen(), random.next_u64()), (&slow, slow.fen(), reference.next_u64()));
                    results[result.map_or(3, |value| (value + 1) as usize)] += 1;
                }
            }
        }
        assert!(results.iter().all(|&count| count > 20), "{results:?}");
    }

    #[test]
    fn play_random_indexes_legal_actions() {
        let mut random = Random::new(5, Purpose::Playout);
        for fen in POSITIONS {
            let mut game = game(fen);
            let mut actions: Vec<Action> = Vec::new();
            while game.outcome().is_none() {
                game.legal_actions(&mut actions);
                let mut expected = game.clone();
                expected.play(actions[random.clone().choose(actions.len() as u32) as usize]);
                game.play_random(&mut random);
                assert_eq!(game, expected);
            }
            // Without legal moves the state is unchanged.
            if game.board().status() != cozy_chess::GameStatus::Ongoing && !game.board().generate_moves(|_| true) {
                let before = game.clone();
                game.play_random(&mut random);
                assert_eq!(game, before);
            }
        }
    }
}
