//! Action encoding: `from * 73 + plane`, as in AlphaZero, from the mover's perspective.
//!
//! For Black the board is flipped vertically (`square ^ 56`), so that both sides move up the board; left is the side of the a-file
//! for both. The planes:
//!
//! - 0 to 55: `direction * 7 + distance - 1`, directions N, NE, E, SE, S, SW, W, NW (N is up the board, E towards the h-file).
//!   Includes promotion to a queen, and castling as the king's move of two squares.
//! - 56 to 63: knight moves, clockwise: (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2) in
//!   (files to the right, ranks up).
//! - 64 to 72: `64 + piece * 3 + direction`: underpromotion to a knight, bishop, rook; by capture to the left, straight, by capture
//!   to the right.

use cozy_chess::{Board, Color, Move, Piece, Square};

use crate::games::Action;

const PLANES: usize = 73;
/// The size of the action space.
pub(crate) const NUM_ACTIONS: usize = 64 * PLANES;
const FIRST_KNIGHT: usize = 56;
const FIRST_UNDERPROMOTION: usize = 64;
const NONE: u8 = u8::MAX;

const DIRECTIONS: [(i32, i32); 8] = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)];
const KNIGHT: [(i32, i32); 8] = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)];

/// The target square of each action from the mover's perspective; NONE off the board.
static TARGET: [u8; NUM_ACTIONS] = targets();
/// The plane of each (from, to) from the mover's perspective, underpromotions excluded; NONE if no piece moves that way.
static PLANE: [[u8; 64]; 64] = planes();

const fn step(plane: usize) -> (i32, i32) {
    if plane < FIRST_KNIGHT {
        let (files, ranks) = DIRECTIONS[plane / 7];
        let distance = (plane % 7 + 1) as i32;
        (files * distance, ranks * distance)
    } else if plane < FIRST_UNDERPROMOTION {
        KNIGHT[plane - FIRST_KNIGHT]
    } else {
        ((plane - FIRST_UNDERPROMOTION) as i32 % 3 - 1, 1)
    }
}

const fn targets() -> [u8; NUM_ACTIONS] {
    let mut table = [NONE; NUM_ACTIONS];
    let mut index = 0;
    while index < NUM_ACTIONS {
        let (from, plane) = ((index / PLANES) as i32, index % PLANES);
        let (files, ranks) = step(plane);
        let (file, rank) = (from % 8 + files, from / 8 + ranks);
        let on_board = file >= 0 && file < 8 && rank >= 0 && rank < 8;
        if on_board && (plane < FIRST_UNDERPROMOTION || rank == 7) {
            table[index] = (rank * 8 + file) as u8;
        }
        index += 1;
    }
    table
}

const fn planes() -> [[u8; 64]; 64] {
    let targets = targets();
    let mut table = [[NONE; 64]; 64];
    let mut index = 0;
    while index < NUM_ACTIONS {
        let (from, plane, to) = (index / PLANES, index % PLANES, targets[index]);
        if plane < FIRST_UNDERPROMOTION && to != NONE {
            table[from][to as usize] = plane as u8;
        }
        index += 1;
    }
    table
}

#[inline]
const fn flip(color: Color) -> usize {
    match color {
        Color::White => 0,
        Color::Black => 56,
    }
}

/// Encodes a legal move.
#[inline]
pub(crate) fn encode(board: &Board, mv: Move) -> Action {
    let color = board.side_to_move();
    let from = mv.from as usize ^ flip(color);
    let mut to = mv.to as usize ^ flip(color);
    if board.colors(color).has(mv.to) {
        to = if to > from { from + 2 } else { from.saturating_sub(2) };
    }
    let plane = match mv.promotion {
        None | Some(Piece::Queen) => PLANE[from][to] as usize,
        Some(piece) => FIRST_UNDERPROMOTION + (piece as usize - Piece::Knight as usize) * 3 + (to % 8 + 1 - from % 8),
    };
    debug_assert!(plane < PLANES, "no plane encodes {mv}");
    (from * PLANES + plane) as Action
}

/// Returns from, to and promotion of an action in UCI form, castling as the king's move of two squares.
pub(crate) fn squares(board: &Board, action: Action) -> Option<(Square, Square, Option<Piece>)> {
    let index = usize::from(action);
    let target = *TARGET.get(index)?;
    if target == NONE {
        return None;
    }
    let flip = flip(board.side_to_move());
    let plane = index % PLANES;
    let from = Square::index_const((index / PLANES) ^ flip);
    let promotion = if plane >= FIRST_UNDERPROMOTION {
        Some([Piece::Knight, Piece::Bishop, Piece::Rook][(plane - FIRST_UNDERPROMOTION) / 3])
    } else if target >= 56 && board.pieces(Piece::Pawn).has(from) {
        Some(Piece::Queen)
    } else {
        None
    };
    Some((from, Square::index_const(usize::from(target) ^ flip), promotion))
}

/// Encodes a move in UCI form; legality is not checked. Promotions must name the piece.
pub(crate) fn from_squares(board: &Board, from: Square, to: Square, promotion: Option<Piece>) -> Option<Action> {
    let flip = flip(board.side_to_move());
    let (start, end) = (from as usize ^ flip, to as usize ^ flip);
    let promotes = end >= 56 && board.pieces(Piece::Pawn).has(from);
    let plane = match promotion {
        None if !promotes => PLANE[start][end],
        Some(Piece::Queen) if promotes => PLANE[start][end],
        Some(piece @ (Piece::Knight | Piece::Bishop | Piece::Rook)) if promotes && (end % 8).abs_diff(start % 8) <= 1 => {
            (FIRST_UNDERPROMOTION + (piece as usize - Piece::Knight as usize) * 3 + (end % 8 + 1 - start % 8)) as u8
        }
        _ => NONE,
    };
    (plane != NONE).then_some((start * PLANES + usize::from(plane)) as Action)
}

/// Decodes an action to a move of `cozy-chess` (castling as king takes rook). None if no piece can make it; legality is not
/// checked.
#[inline]
pub(crate) fn decode(board: &Board, action: Action) -> Option<Move> {
    let (from, to, promotion) = squares(board, action)?;
    if !board.pieces(Piece::King).has(from) {
        return Some(Move { from, to, promotion });
    }
    // A king step, or castling by two squares; actions do not encode king takes rook.
    let files = (to.file() as usize).abs_diff(from.file() as usize);
    let ranks = (to.rank() as usize).abs_diff(from.rank() as usize);
    match (files, ranks) {
        (0 | 1, 0 | 1) => Some(Move { from, to, promotion }),
        (2, 0) => {
            let rights = board.castle_rights(board.side_to_move());
            let rook = if to > from { rights.short } else { rights.long };
            Some(Move { from, to: Square::new(rook?, from.rank()), promotion })
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::{game, POSITIONS};
    use crate::games::chess::Chess;
    use crate::games::Game;
    use crate::runtime::random::{Purpose, Random};
    use std::collections::HashSet;

    /// Checks that `encode` is a bijection from legal moves to legal actions, inverted by `decode`.
    fn check(game: &Chess) {
        let board = game.board();
        let mut seen = HashSet::new();
        board.generate_moves(|moves| {
            for mv in moves {
                let action = encode(board, mv);
                assert!(usize::from(action) < NUM_ACTIONS);
                assert!(seen.insert(action), "{mv} shares its action in {game:?}");
                assert_eq!(decode(board, action), Some(mv), "{game:?}");
                let (from, to, promotion) = squares(board, action).unwrap();
                assert_eq!(from_squares(board, from, to, promotion), Some(action));
            }
            false
        });
        if game.outcome().is_none() {
            let legal: HashSet<Action> = (0..=Action::MAX).filter(|&action| game.is_legal(action)).collect();
            assert_eq!(legal, seen, "{game:?}");
        }
    }

    #[test]
    fn actions_match_pinned_numbers() {
        let start = Chess::default();
        // e2 is square 12; one north is plane 0, two north plane 1.
        assert_eq!(start.parse_action("e2e4").unwrap(), 12 * 73 + 1);
        // g1 (square 6) to f3: (-1, 2), the last knight plane.
        assert_eq!(start.parse_action("g1f3").unwrap(), 6 * 73 + 63);
        let castling = game("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
        assert_eq!(castling.parse_action("e1g1").unwrap(), 4 * 73 + 2 * 7 + 1);
        assert_eq!(castling.parse_action("e1c1").unwrap(), 4 * 73 + 6 * 7 + 1);
        let black = game("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1");
        assert_eq!(black.parse_action("e8g8").unwrap(), 4 * 73 + 2 * 7 + 1);
        let promotion = game("4k3/8/8/8/8/8/1p6/R1R1K3 b - - 0 1");
        let number = |text| usize::from(promotion.parse_action(text).unwrap());
        assert_eq!(number("b2a1q"), (8 * 6 + 1) * 73 + 7 * 7);
        assert_eq!(number("b2b1q"), (8 * 6 + 1) * 73);
        assert_eq!(number("b2a1n"), (8 * 6 + 1) * 73 + 64);
        assert_eq!(number("b2b1b"), (8 * 6 + 1) * 73 + 64 + 3 + 1);
        assert_eq!(number("b2c1r"), (8 * 6 + 1) * 73 + 64 + 6 + 2);
    }

    #[test]
    fn encoding_is_a_bijection_on_legal_moves() {
        let mut random = Random::new(11, Purpose::Playout);
        for fen in POSITIONS {
            let start = game(fen);
            for _ in 0..8 {
                let mut game = start.clone();
                for _ in 0..40 {
                    check(&game);
                    if game.outcome().is_some() {
                        break;
                    }
                    game.play_random(&mut random);
                }
            }
        }
    }
}
