//! Which moves give check, read off bitboards before they are played; and mate in one.

use cozy_chess::{
    get_between_rays, get_bishop_moves, get_bishop_rays, get_knight_moves, get_line_rays, get_pawn_attacks, get_rook_moves, get_rook_rays,
    BitBoard, Board, Move, Piece, PieceMoves, Rank, Square,
};

const LAST_RANKS: BitBoard = BitBoard(Rank::First.bitboard().0 | Rank::Eighth.bitboard().0);

/// What decides in a position whether a move of the side to move gives check.
pub(super) struct Checks {
    king: Square,
    /// The squares from which a pawn, knight, bishop, rook or queen attacks the king; a king attacks from none.
    direct: [BitBoard; 6],
    /// The mover's pieces that stand alone between the king and one of the mover's own sliders.
    blockers: BitBoard,
    /// Targets of pawns and of kings whose check is seen only on the board after the move: promotions and en passant, castling.
    pawn_specials: BitBoard,
    castlings: BitBoard,
}

impl Checks {
    pub fn of(board: &Board) -> Self {
        let mover = board.side_to_move();
        let king = board.king(!mover);
        let (ours, occupied) = (board.colors(mover), board.occupied());
        let (diagonal, straight) = (get_bishop_moves(king, occupied), get_rook_moves(king, occupied));
        let direct = [get_pawn_attacks(king, !mover), get_knight_moves(king), diagonal, straight, diagonal | straight, BitBoard::EMPTY];
        let queens = board.pieces(Piece::Queen);
        let sliders =
            (get_bishop_rays(king) & (board.pieces(Piece::Bishop) | queens)) | (get_rook_rays(king) & (board.pieces(Piece::Rook) | queens));
        let mut blockers = BitBoard::EMPTY;
        for slider in sliders & ours {
            let between = get_between_rays(king, slider) & occupied;
            if between.len() == 1 {
                blockers |= between & ours;
            }
        }
        let en_passant = board.en_passant().map_or(BitBoard::EMPTY, |file| Square::new(file, Rank::Sixth.relative_to(mover)).bitboard());
        Self { king, direct, blockers, pawn_specials: LAST_RANKS | en_passant, castlings: ours }
    }

    /// The targets of these moves that give check, but for those among `unclear`.
    #[inline]
    fn clear(&self, moves: &PieceMoves) -> BitBoard {
        let mut targets = self.direct[moves.piece as usize];
        if self.blockers.has(moves.from) {
            targets |= !get_line_rays(self.king, moves.from);
        }
        targets & moves.to
    }

    /// The targets of these moves that must be played to see whether they give check.
    #[inline]
    fn unclear(&self, moves: &PieceMoves) -> BitBoard {
        match moves.piece {
            Piece::Pawn => moves.to & self.pawn_specials,
            Piece::King => moves.to & self.castlings,
            _ => BitBoard::EMPTY,
        }
    }

    /// The targets of these moves that give check.
    pub fn targets(&self, board: &Board, moves: &PieceMoves) -> BitBoard {
        let unclear = self.unclear(moves);
        let mut targets = self.clear(moves) & !unclear;
        for mv in (PieceMoves { to: unclear, ..*moves }) {
            if !after(board, mv).checkers().is_empty() {
                targets |= mv.to.bitboard();
            }
        }
        targets
    }

    /// Whether there is a move that gives check.
    pub fn any(&self, board: &Board) -> bool {
        board.generate_moves(|moves| !self.targets(board, &moves).is_empty())
    }

    /// A move that mates at once. Of the pieces a pawn may become, the queen and the knight say it all: whatever a rook or a
    /// bishop attacks, a queen does, too.
    pub fn mate_in_one(&self, board: &Board) -> Option<Move> {
        let mut found = None;
        board.generate_moves(|moves| {
            let candidates = PieceMoves { to: self.clear(&moves) | self.unclear(&moves), ..moves };
            found = candidates.into_iter().find(|&mv| {
                !matches!(mv.promotion, Some(Piece::Rook | Piece::Bishop)) && {
                    let next = after(board, mv);
                    !next.checkers().is_empty() && !has_move(&next)
                }
            });
            found.is_some()
        });
        found
    }
}

/// The board after a legal move.
#[inline]
pub(super) fn after(board: &Board, mv: Move) -> Board {
    let mut next = board.clone();
    next.play_unchecked(mv);
    next
}

/// Whether there is a legal move. The king is asked first: in check it is the likeliest to have one.
#[inline]
pub(super) fn has_move(board: &Board) -> bool {
    let king = board.king(board.side_to_move()).bitboard();
    board.generate_moves_for(king, |_| true) || board.generate_moves_for(!king, |_| true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::game::Game;
    use crate::games::chess::Chess;
    use crate::random::{Purpose, Random};

    /// Every kind of check, and every kind of move that is special.
    const POSITIONS: [&str; 7] = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        "5k2/8/8/8/8/8/8/R3K2R w KQ - 0 1",
        "8/8/8/1k1pP2R/8/8/1K6/8 w - d6 0 2",
        "6k1/PPPP4/8/8/8/8/4pppp/1K6 w - - 0 1",
    ];

    #[test]
    fn checks_and_mates_in_one_are_those_of_the_board_after_the_move() {
        let mut random = Random::new(3, Purpose::Playout);
        let (mut checks_seen, mut mates_seen) = (0, 0);
        for fen in POSITIONS {
            for _ in 0..60 {
                let mut game = Chess::from_fen(fen).unwrap();
                for _ in 0..60 {
                    if game.outcome().is_some() {
                        break;
                    }
                    let board = game.board();
                    let checks = Checks::of(board);
                    let (mut expected, mut mate) = (0, false);
                    board.generate_moves(|moves| {
                        let mut targets = BitBoard::EMPTY;
                        for mv in moves {
                            let next = after(board, mv);
                            if !next.checkers().is_empty() {
                                targets |= mv.to.bitboard();
                                mate |= !next.generate_moves(|_| true);
                            }
                        }
                        assert_eq!(checks.targets(board, &moves), targets, "{game:?}");
                        expected += targets.len();
                        false
                    });
                    assert_eq!(checks.any(board), expected > 0, "{game:?}");
                    assert_eq!(checks.mate_in_one(board).is_some(), mate, "{game:?}");
                    checks_seen += expected;
                    mates_seen += u32::from(mate);
                    game.play_random(&mut random);
                }
            }
        }
        assert!(checks_seen > 5_000 && mates_seen > 100, "{checks_seen} {mates_seen}");
    }
}
