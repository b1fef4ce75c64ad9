//! Checking moves, detected without playing them, and mate in one.

use cozy_chess::{
    get_between_rays, get_bishop_moves, get_bishop_rays, get_knight_moves, get_line_rays, get_pawn_attacks, get_rook_moves, get_rook_rays,
    BitBoard, Board, Move, Piece, PieceMoves, Rank, Square,
};

use crate::games::chess::{board_after, has_move, is_castling};

const LAST_RANKS: BitBoard = BitBoard(Rank::First.bitboard().0 | Rank::Eighth.bitboard().0);

/// Check information of one position: computed once, queried per move.
pub struct Checks<'a> {
    board: &'a Board,
    king: Square,
    /// The squares from which the mover's pawn, knight, bishop, rook or queen would attack the king; a king never does.
    from: [BitBoard; 6],
    /// Own pieces whose moves can discover a check of a slider.
    covers: BitBoard,
}

impl<'a> Checks<'a> {
    /// Computes the checks of the side to move.
    #[must_use]
    pub fn new(board: &'a Board) -> Self {
        let color = board.side_to_move();
        let (own, occupied) = (board.colors(color), board.occupied());
        let king = board.king(!color);
        let (diagonal, straight) = (get_bishop_moves(king, occupied), get_rook_moves(king, occupied));
        let pawn = get_pawn_attacks(king, !color);
        let from = [pawn, get_knight_moves(king), diagonal, straight, diagonal | straight, BitBoard::EMPTY];
        let queens = board.pieces(Piece::Queen);
        let sliders = own
            & (get_bishop_rays(king) & (board.pieces(Piece::Bishop) | queens) | get_rook_rays(king) & (board.pieces(Piece::Rook) | queens));
        let mut covers = BitBoard::EMPTY;
        for slider in sliders {
            let between = get_between_rays(slider, king) & occupied;
            if between.len() == 1 {
                covers |= between & own;
            }
        }
        Self { board, king, from, covers }
    }

    /// Returns whether a legal move gives check.
    #[inline]
    #[must_use]
    pub fn gives_check(&self, mv: Move) -> bool {
        let Some(piece) = self.board.piece_on(mv.from) else { return false };
        let en_passant = piece == Piece::Pawn && mv.from.file() != mv.to.file() && !self.board.occupied().has(mv.to);
        if mv.promotion.is_some() || en_passant || is_castling(self.board, mv) {
            // The move changes several lines at once, so it is played.
            return !board_after(self.board, mv).checkers().is_empty();
        }
        self.from[piece as usize].has(mv.to) || self.covers.has(mv.from) && !get_line_rays(self.king, mv.from).has(mv.to)
    }

    /// Returns whether a legal move mates.
    #[must_use]
    pub fn mates(&self, mv: Move) -> bool {
        let next = board_after(self.board, mv);
        !next.checkers().is_empty() && !has_move(&next)
    }

    /// Returns the targets of a piece that give check, and those that must be played to decide.
    #[inline]
    fn candidates(&self, moves: &PieceMoves) -> (BitBoard, BitBoard) {
        let unclear = match moves.piece {
            Piece::Pawn => {
                let en_passant = self.board.en_passant().map(|file| Square::new(file, Rank::Sixth.relative_to(self.board.side_to_move())));
                LAST_RANKS | en_passant.map_or(BitBoard::EMPTY, Square::bitboard)
            }
            Piece::King => self.board.colors(self.board.side_to_move()),
            _ => BitBoard::EMPTY,
        };
        let mut clear = self.from[moves.piece as usize];
        if self.covers.has(moves.from) {
            clear |= !get_line_rays(self.king, moves.from);
        }
        (clear & moves.to & !unclear, unclear & moves.to)
    }

    /// Calls `visit` with the checking moves until it returns true; returns whether it did.
    #[inline]
    pub(crate) fn any(&self, mut visit: impl FnMut(Move) -> bool) -> bool {
        self.board.generate_moves(|moves| {
            let (clear, unclear) = self.candidates(&moves);
            (PieceMoves { to: clear, ..moves }).into_iter().any(&mut visit)
                || (PieceMoves { to: unclear, ..moves })
                    .into_iter()
                    .any(|mv| !board_after(self.board, mv).checkers().is_empty() && visit(mv))
        })
    }

    /// Returns a mate in one. Rook and bishop promotions are skipped, since the queen attacks a superset.
    #[must_use]
    pub fn mate_in_one(&self) -> Option<Move> {
        let mut found = None;
        self.board.generate_moves(|moves| {
            let (clear, unclear) = self.candidates(&moves);
            let mut to_play = (PieceMoves { to: clear | unclear, ..moves }).into_iter();
            found = to_play.find(|mv| !matches!(mv.promotion, Some(Piece::Rook | Piece::Bishop)) && self.mates(*mv));
            found.is_some()
        });
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::{game, POSITIONS};
    use crate::games::Game;
    use crate::runtime::random::{Purpose, Random};

    #[test]
    fn checks_and_mates_match_played_moves() {
        let mut starts = POSITIONS.to_vec();
        starts.extend([
            "4k3/PPP3PP/8/8/8/8/ppp3pp/4K3 w - - 0 1",
            "6k1/PPPP4/8/8/8/8/4pppp/1K6 w - - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
            "5k2/8/8/8/8/8/8/R3K2R w KQ - 0 1",
            "8/8/8/1k1pP2R/8/8/8/4K3 w - d6 0 2",
            "4k3/p1p1p1p1/8/1P1P1P1P/1p1p1p1p/8/P1P1P1P1/4K3 w - - 0 1",
        ]);
        let (mut seen, mut found, mut mated) = (0, 0, 0);
        for seed in 0..400 {
            let mut random = Random::new(seed, Purpose::Playout);
            let mut game = game(starts[seed as usize % starts.len()]);
            for _ in 0..80 {
                if game.outcome().is_some() {
                    break;
                }
                let checks = Checks::new(game.board());
                let (mut expected, mut mate) = (Vec::new(), false);
                game.board().generate_moves(|moves| {
                    for mv in moves {
                        let next = board_after(game.board(), mv);
                        let check = !next.checkers().is_empty();
                        assert_eq!(checks.gives_check(mv), check, "{mv} {game:?}");
                        seen += 1;
                        if check {
                            expected.push(mv.to_string());
                            mate |= !next.generate_moves(|_| true);
                        }
                    }
                    false
                });
                let mut visited = Vec::new();
                assert!(!checks.any(|mv| {
                    visited.push(mv.to_string());
                    false
                }));
                visited.sort();
                expected.sort();
                assert_eq!(visited, expected, "{game:?}");
                assert_eq!(checks.any(|_| true), !expected.is_empty());
                assert_eq!(checks.mate_in_one().is_some(), mate, "{game:?}");
                found += expected.len();
                mated += u32::from(mate);
                game.play_random(&mut random);
            }
        }
        assert!(seen > 200_000 && found > 8_000 && mated > 100, "{seen} {found} {mated}");
    }
}
