//! Quiescence search: captures and queen promotions, in check all evasions, with stand pat, delta and SEE pruning.

use cozy_chess::{BitBoard, Board, Color, Move, Piece, PieceMoves, Rank, Square};

use super::evaluation::Pesto;
use crate::chess::{see_at_least, SeeValues};
use crate::games::chess::{board_after, is_insufficient};

/// The score of a mate; mate in n plies scores `MATE - n`.
pub const MATE: i32 = 1_000_000;

/// Limits of the quiescence search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiescence {
    /// Maximum depth in plies; 0 is the static evaluation.
    pub max_depth: u32,
    /// Upper bound of visited nodes; later ones get their static evaluation.
    pub max_nodes: u32,
    /// Margin of delta pruning in centipawns; None disables it.
    pub delta_margin: Option<i32>,
    /// Piece values of the static exchange evaluation, which prunes losing captures.
    pub values: SeeValues,
}

impl Default for Quiescence {
    fn default() -> Self {
        Self { max_depth: 8, max_nodes: 1000, delta_margin: Some(200), values: SeeValues::default() }
    }
}

/// The result of a quiescence search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuiescenceResult {
    /// Centipawns for the side to move; above `MATE - 100` for a mate.
    pub score: i32,
    /// Visited nodes.
    pub nodes: u32,
}

impl Quiescence {
    /// Returns the quiescence score of a position.
    #[must_use]
    pub fn search(&self, board: &Board, pesto: &Pesto) -> QuiescenceResult {
        self.search_within(board, pesto, -MATE, MATE)
    }

    /// `search` with a window: exact between `alpha` and `beta`, outside a bound (fail-soft).
    #[must_use]
    pub fn search_within(&self, board: &Board, pesto: &Pesto, alpha: i32, beta: i32) -> QuiescenceResult {
        let mut search = Search { options: self, pesto, nodes: 0, moves: Vec::with_capacity(128) };
        let score = search.node(board, alpha, beta, 0);
        QuiescenceResult { score, nodes: search.nodes }
    }
}

struct Search<'a> {
    options: &'a Quiescence,
    pesto: &'a Pesto,
    nodes: u32,
    /// Stack of the moves along the current line, with distinct ordering keys per node.
    moves: Vec<(i64, Move)>,
}

impl Search<'_> {
    fn node(&mut self, board: &Board, mut alpha: i32, beta: i32, ply: u32) -> i32 {
        self.nodes += 1;
        if is_insufficient(board) {
            return 0;
        }
        if ply >= self.options.max_depth || self.nodes > self.options.max_nodes {
            return self.pesto.eval(board);
        }
        let in_check = !board.checkers().is_empty();
        let mut best = -MATE + ply as i32;
        if !in_check {
            best = self.pesto.eval(board);
            if best >= beta {
                return best;
            }
            alpha = alpha.max(best);
        }
        let stand_pat = best;
        let first = self.moves.len();
        self.generate(board, in_check);
        while let Some(mv) = self.next_move(first) {
            if !in_check {
                let gain = self.options.values.gain(board, mv);
                if let Some(margin) = self.options.delta_margin {
                    let bound = stand_pat + gain + margin;
                    if bound <= alpha {
                        best = best.max(bound);
                        continue;
                    }
                }
                if self.loses(board, mv, gain) {
                    continue;
                }
            }
            let score = -self.node(&board_after(board, mv), -beta, -alpha, ply + 1);
            best = best.max(score);
            alpha = alpha.max(score);
            if alpha >= beta {
                break;
            }
        }
        self.moves.truncate(first);
        best
    }

    /// Returns whether SEE prunes the move; capturing a more valuable piece never loses.
    fn loses(&self, board: &Board, mv: Move, gain: i32) -> bool {
        let risk = mv.promotion.or_else(|| board.piece_on(mv.from)).map_or(0, |piece| self.options.values.of(piece));
        gain < risk && !see_at_least(board, mv, &self.options.values, 0)
    }

    /// Pushes captures and queen promotions; in check, all evasions.
    fn generate(&mut self, board: &Board, in_check: bool) {
        let color = board.side_to_move();
        let enemy = board.colors(!color);
        let last_rank = Rank::Eighth.relative_to(color).bitboard();
        let en_passant = board.en_passant().map_or(BitBoard::EMPTY, |file| Square::new(file, Rank::Sixth.relative_to(color)).bitboard());
        let Self { moves: stack, options, .. } = self;
        board.generate_moves(|moves: PieceMoves| {
            let pawn = moves.piece == Piece::Pawn;
            let mut wanted = enemy;
            if pawn {
                // A pawn that advances to the en passant square does not capture.
                let other_files = !moves.from.file().bitboard();
                wanted |= last_rank | en_passant & other_files;
            }
            let targets = if in_check { moves.to } else { moves.to & wanted };
            for mv in (PieceMoves { to: targets, ..moves }) {
                if !in_check && mv.promotion.is_some_and(|piece| piece != Piece::Queen) {
                    continue;
                }
                // MVV-LVA; ties are broken relative to the mover, so that the order is colour-symmetric.
                let ordering_score = 16 * options.values.gain(board, mv) - options.values.of(moves.piece);
                let order = (i64::from(ordering_score) << 16) + tie_break(mv, color);
                stack.push((order, mv));
            }
            false
        });
    }

    /// Pops the best remaining move of the node whose moves start at `first`.
    fn next_move(&mut self, first: usize) -> Option<Move> {
        let (offset, _) = self.moves.get(first..)?.iter().enumerate().max_by_key(|(_, (order, _))| *order)?;
        Some(self.moves.swap_remove(first + offset).1)
    }
}

/// Returns a unique index of a move relative to the mover, below 2^16.
fn tie_break(mv: Move, color: Color) -> i64 {
    let [from, to] = [mv.from, mv.to].map(|square| square.relative_to(color) as i64);
    from << 9 | to << 3 | mv.promotion.map_or(0, |piece| piece as i64)
}
