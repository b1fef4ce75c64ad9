//! Depth-first AND/OR search for mates: an OR node needs one mating attack, an AND node must refute every defence.
//!
//! Proofs do not depend on the path to a position, so that one table serves all paths:
//! - A position that occurred twice in the game is a draw when it recurs. Any other position would have to occur at least twice on
//!   the line, but the line of a shortest mate repeats no position.
//! - The halfmove clock is part of the key where the 50-move rule can apply.

use cozy_chess::{Board, Move, Piece, Square};

use super::table::{Key, Table};
use crate::chess::Checks;
use crate::games::chess::{board_after, has_move, is_insufficient, Chess};

/// Nodes between two polls of `stop`.
const NODES_PER_CHECK: u64 = 1 << 12;

/// The moves searched for the attacker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    /// All moves: unproven means disproven.
    FullWidth,
    /// Checks alone: unproven means unknown.
    Checks,
}

/// A running mate search. Functions return None if the budget is exhausted or `stop` returned true, which ends the search.
pub(super) struct Prover<'a> {
    attack: Attack,
    /// Positions that are draws when they recur.
    drawn: Vec<u64>,
    /// Whether the 50-move rule can apply.
    clock_matters: bool,
    table: Table,
    /// Stack of the moves along the current line, packed, with their ordering rank in the high bits.
    moves: Vec<u32>,
    /// The last refuting defence, by moves left.
    killers: [u16; super::MAX_DEPTH as usize + 1],
    /// Visited nodes.
    pub nodes: u64,
    /// Upper bound of visited nodes.
    pub budget: u64,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Prover<'a> {
    /// Creates a search from `state` for mates within `depth` moves of either side.
    pub(super) fn new(state: &Chess, depth: u32, attack: Attack, budget: u64, stop: &'a dyn Fn() -> bool) -> Self {
        let clock_matters = u32::from(state.halfmove_clock()) + 2 * depth >= 100;
        let killers = [0; super::MAX_DEPTH as usize + 1];
        let (drawn, table) = (state.seen_twice(), Table::default());
        Self { attack, drawn, clock_matters, table, moves: Vec::with_capacity(128), killers, nodes: 0, budget, stop }
    }

    #[inline]
    fn visit(&mut self) -> Option<()> {
        if self.nodes >= self.budget {
            return None;
        }
        self.nodes += 1;
        (!self.nodes.is_multiple_of(NODES_PER_CHECK) || !(self.stop)()).then_some(())
    }

    /// Returns whether the position is drawn unless it is mate.
    #[inline]
    fn is_drawn(&self, board: &Board) -> bool {
        let clock = board.halfmove_clock();
        clock >= 100 || (clock > 0 && !self.drawn.is_empty() && self.drawn.contains(&board.hash())) || is_insufficient(board)
    }

    fn key(&self, board: &Board, defends: bool) -> Key {
        Key::of(board, defends, if self.clock_matters { board.halfmove_clock() } else { 0 })
    }

    /// Returns whether the side to move mates within `n` >= 1 moves; the position is no draw.
    pub(super) fn attacker_mates(&mut self, board: &Board, n: u8) -> Option<bool> {
        self.visit()?;
        let mover = board.side_to_move();
        if board.colors(mover).len() == 1 {
            return Some(false);
        }
        let checks = Checks::new(board);
        if n == 1 {
            return Some(checks.mate_in_one().is_some());
        }
        let key = self.key(board, false);
        let entry = self.table.get(key).unwrap_or_default();
        if entry.proven_within != 0 && entry.proven_within <= n {
            return Some(true);
        }
        if entry.disproven_within >= n {
            return Some(false);
        }
        if entry.disproven_within == 0 {
            if let Some(mv) = checks.mate_in_one() {
                self.table.put(key, 1, true, pack(mv));
                return Some(true);
            }
        }
        let first = self.moves.len();
        self.push_attacks(board, &checks, entry.best);
        let mut proof = 0;
        for place in first..self.moves.len() {
            let mv = unpack(self.moves[place]);
            if self.defender_is_mated(&board_after(board, mv), n - 1)? {
                proof = pack(mv);
                break;
            }
        }
        self.moves.truncate(first);
        self.table.put(key, n, proof != 0, proof);
        Some(proof != 0)
    }

    /// Returns whether the side to move is mated within `n` >= 1 moves of the attacker, whatever it plays.
    fn defender_is_mated(&mut self, board: &Board, n: u8) -> Option<bool> {
        self.visit()?;
        if self.is_drawn(board) {
            return Some(!board.checkers().is_empty() && !has_move(board));
        }
        self.defender_is_mated_at_root(board, n)
    }

    /// `defender_is_mated` for the root, which is searched even if it is a draw.
    pub(super) fn defender_is_mated_at_root(&mut self, board: &Board, n: u8) -> Option<bool> {
        let key = self.key(board, true);
        let entry = if n > 1 { self.table.get(key).unwrap_or_default() } else { Default::default() };
        if entry.proven_within != 0 && entry.proven_within <= n {
            return Some(true);
        }
        if entry.disproven_within >= n {
            return Some(false);
        }
        let first = self.moves.len();
        let killer = self.killers[usize::from(n)];
        self.push_defences(board, entry.best, killer);
        if self.moves.len() == first {
            return Some(!board.checkers().is_empty());
        }
        let mut refutation = 0;
        for place in first..self.moves.len() {
            let mv = unpack(self.moves[place]);
            let next = board_after(board, mv);
            if self.is_drawn(&next) || !self.attacker_mates(&next, n)? {
                refutation = pack(mv);
                break;
            }
        }
        self.moves.truncate(first);
        if refutation != 0 {
            self.killers[usize::from(n)] = refutation;
        }
        if n > 1 {
            self.table.put(key, n, refutation == 0, refutation);
        }
        Some(refutation == 0)
    }

    /// Pushes attacking moves: hash move, checks, captures and promotions, quiet moves.
    fn push_attacks(&mut self, board: &Board, checks: &Checks<'_>, best: u16) {
        let first = self.moves.len();
        let theirs = board.colors(!board.side_to_move());
        let forcing = |mv: Move| theirs.has(mv.to) || mv.promotion == Some(Piece::Queen);
        let moves = &mut self.moves;
        match self.attack {
            Attack::Checks => {
                checks.any(|mv| {
                    moves.push(ranked(mv, if forcing(mv) { 1 } else { 2 }, best, 0));
                    false
                });
            }
            Attack::FullWidth => {
                board.generate_moves(|set| {
                    moves.extend(set.into_iter().map(|mv| {
                        let rank = if checks.gives_check(mv) { 1 } else { 3 };
                        ranked(mv, if forcing(mv) { rank } else { rank + 1 }, best, 0)
                    }));
                    false
                });
            }
        }
        self.moves[first..].sort_unstable();
    }

    /// Pushes defences: hash move, killer, captures, king moves, the rest.
    fn push_defences(&mut self, board: &Board, best: u16, killer: u16) {
        let first = self.moves.len();
        let theirs = board.colors(!board.side_to_move());
        let moves = &mut self.moves;
        board.generate_moves(|set| {
            let usual = if set.piece == Piece::King { 3 } else { 4 };
            moves.extend(set.into_iter().map(|mv| ranked(mv, if theirs.has(mv.to) { 2 } else { usual }, best, killer)));
            false
        });
        self.moves[first..].sort_unstable();
    }

    /// Returns the line of a shortest mate, proven in `n` moves for the side to move or against it (`attacks` false), with the
    /// longest defence.
    pub(super) fn line(&mut self, board: &Board, n: u8, attacks: bool) -> Option<Vec<Move>> {
        let (mut board, mut left, mut attacks) = (board.clone(), n, attacks);
        let mut line = Vec::new();
        while left > 0 {
            let mv = if attacks { self.attack_of(&board, left)? } else { self.defence_of(&board, left)? }?;
            line.push(mv);
            board.play_unchecked(mv);
            left -= u8::from(attacks);
            attacks = !attacks;
        }
        Some(line)
    }

    /// Returns the first move of a mate proven within `n` moves.
    pub(super) fn attack_of(&mut self, board: &Board, n: u8) -> Option<Option<Move>> {
        let checks = Checks::new(board);
        if n == 1 {
            return Some(checks.mate_in_one());
        }
        let best = self.table.get(self.key(board, false)).unwrap_or_default().best;
        let first = self.moves.len();
        self.push_attacks(board, &checks, best);
        let moves: Vec<Move> = self.moves.drain(first..).map(unpack).collect();
        for mv in moves {
            if self.defender_is_mated(&board_after(board, mv), n - 1)? {
                return Some(Some(mv));
            }
        }
        Some(None)
    }

    fn defence_of(&mut self, board: &Board, n: u8) -> Option<Option<Move>> {
        let first = self.moves.len();
        self.push_defences(board, 0, 0);
        let moves: Vec<Move> = self.moves.drain(first..).map(unpack).collect();
        for mv in moves {
            if n == 1 || !self.attacker_mates(&board_after(board, mv), n - 1)? {
                return Some(Some(mv));
            }
        }
        Some(None)
    }
}

/// Packs a move in 15 bits; never 0, since from and to differ.
#[inline]
fn pack(mv: Move) -> u16 {
    (mv.promotion.map_or(0, |piece| piece as u16) << 12) | ((mv.from as u16) << 6) | mv.to as u16
}

#[inline]
fn unpack(packed: u32) -> Move {
    let square = |shift: u32| Square::index_const((packed >> shift) as usize & 63);
    let promotion = match packed >> 12 & 7 {
        0 => None,
        piece => Some(Piece::index_const(piece as usize)),
    };
    Move { from: square(6), to: square(0), promotion }
}

/// Packs a move with its ordering rank in the high bits.
#[inline]
fn ranked(mv: Move, rank: u32, best: u16, killer: u16) -> u32 {
    let packed = pack(mv);
    let rank = if packed == best {
        0
    } else if packed == killer {
        1
    } else {
        rank
    };
    rank << 16 | u32::from(packed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn key_contains_the_halfmove_clock_near_100() {
        let key = |clock: u32, depth: u32| {
            let state = Chess::from_fen(&format!("7k/8/5K2/8/8/8/8/R7 w - - {clock} 90")).unwrap();
            Prover::new(&state, depth, Attack::FullWidth, 0, &|| false).key(state.board(), false)
        };
        assert!(key(0, 3) == key(2, 3));
        assert!(key(94, 3) != key(95, 3));
        assert!(key(94, 2) == key(95, 2));
    }

    #[test]
    fn packed_moves_round_trip() {
        for promotion in [None, Some(Piece::Knight), Some(Piece::Bishop), Some(Piece::Rook), Some(Piece::Queen)] {
            for (from, to) in [(Square::A7, Square::A8), (Square::H2, Square::G1), (Square::B1, Square::A1)] {
                let mv = Move { from, to, promotion };
                assert_eq!(unpack(ranked(mv, 4, 0, 0)), mv);
                assert!(pack(mv) != 0 && ranked(mv, 4, pack(mv), 0) < ranked(mv, 1, 0, pack(mv)));
            }
        }
    }
}
