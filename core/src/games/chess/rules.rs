//! Termination rules of chess.

use cozy_chess::{BitBoard, Board, Piece};

use super::{action, notation, Chess};

/// Why the game is over. The last two are claimable draws, which searches treat as ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Termination {
    /// The side to move is in check and has no legal move.
    Checkmate,
    /// The side to move is not in check and has no legal move.
    Stalemate,
    /// Neither side can mate: bare kings, a single knight, or bishops on one colour of squares alone.
    InsufficientMaterial,
    /// 75 moves of each side without capture or pawn move.
    SeventyFiveMoves,
    /// The fifth occurrence of the position.
    FivefoldRepetition,
    /// 50 moves of each side without capture or pawn move.
    FiftyMoves,
    /// The third occurrence of the position.
    ThreefoldRepetition,
}

impl Termination {
    /// Returns the name in the API, e.g. `insufficient_material`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkmate => "checkmate",
            Self::Stalemate => "stalemate",
            Self::InsufficientMaterial => "insufficient_material",
            Self::SeventyFiveMoves => "seventyfive_moves",
            Self::FivefoldRepetition => "fivefold_repetition",
            Self::FiftyMoves => "fifty_moves",
            Self::ThreefoldRepetition => "threefold_repetition",
        }
    }
}

impl Chess {
    /// Returns why the game is over without a claim; None if it is not.
    #[must_use]
    pub fn termination(&self) -> Option<Termination> {
        if is_insufficient(self.board()) {
            return Some(Termination::InsufficientMaterial);
        }
        if let Some(end) = self.no_move_left() {
            return Some(end);
        }
        if self.halfmove_clock() >= 150 {
            return Some(Termination::SeventyFiveMoves);
        }
        (self.repetitions() >= 4).then_some(Termination::FivefoldRepetition)
    }

    /// Like `termination`, with the claimable draws.
    #[must_use]
    pub fn termination_in_search(&self) -> Option<Termination> {
        self.termination().or_else(|| {
            if self.halfmove_clock() >= 100 {
                return Some(Termination::FiftyMoves);
            }
            (self.repetitions() >= 2).then_some(Termination::ThreefoldRepetition)
        })
    }

    fn no_move_left(&self) -> Option<Termination> {
        if has_move(self.board()) {
            None
        } else if self.in_check() {
            Some(Termination::Checkmate)
        } else {
            Some(Termination::Stalemate)
        }
    }

    /// Returns the moves on the board in UCI notation, each with the FEN after it; draws by rule are ignored.
    #[must_use]
    pub fn moves_on_board(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.board().generate_moves(|moves| {
            found.extend(moves.into_iter().map(|mv| {
                let mut next = self.clone();
                next.play_move(mv);
                (notation::uci(self.board(), action::encode(self.board(), mv)), next.fen())
            }));
            false
        });
        found
    }

    /// Returns whether the game is drawn without a claim although there may be legal moves.
    pub(crate) fn is_drawn_automatically(&self) -> bool {
        self.halfmove_clock() >= 150 || self.repetitions() >= 4 || is_insufficient(self.board())
    }
}

/// Returns whether there is a legal move. Tries the king first, the likeliest in check.
#[inline]
pub(crate) fn has_move(board: &Board) -> bool {
    let king = board.king(board.side_to_move()).bitboard();
    board.generate_moves_for(king, |_| true) || board.generate_moves_for(!king, |_| true)
}

/// Returns whether neither side has mating material. No such position is a checkmate.
#[inline]
pub(crate) fn is_insufficient(board: &Board) -> bool {
    let heavy = board.pieces(Piece::Pawn) | board.pieces(Piece::Rook) | board.pieces(Piece::Queen);
    heavy.is_empty() && is_insufficient_light(board)
}

/// `is_insufficient` without pawns, rooks and queens.
fn is_insufficient_light(board: &Board) -> bool {
    let knights = board.pieces(Piece::Knight);
    let bishops = board.pieces(Piece::Bishop);
    if knights.is_empty() {
        bishops.is_subset(BitBoard::DARK_SQUARES) || bishops.is_subset(BitBoard::LIGHT_SQUARES)
    } else {
        bishops.is_empty() && knights.len() == 1
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::{game, play};
    use crate::games::Game;

    #[test]
    fn mate_and_stalemate_end_the_game() {
        let mut fool = Chess::default();
        play(&mut fool, "f3 e5 g4 Qh4#");
        assert_eq!((fool.termination(), fool.outcome()), (Some(Termination::Checkmate), Some(-1)));
        assert!(fool.legal().is_empty());
        let back_rank = game("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1");
        assert_eq!(back_rank.outcome(), Some(1));
        let stale = game("7k/5Q2/8/8/8/8/8/K7 b - - 0 1");
        assert_eq!((stale.termination(), stale.outcome()), (Some(Termination::Stalemate), Some(0)));
        assert_eq!(Chess::default().termination_in_search(), None);
    }

    #[test]
    fn insufficient_material_is_a_draw() {
        let cases = [
            ("k7/8/8/8/8/8/8/7K w - - 0 1", true),
            ("k7/8/8/8/8/8/8/6NK w - - 0 1", true),
            ("kn6/8/8/8/8/8/8/7K w - - 0 1", true),
            ("k7/8/8/8/8/8/8/6BK w - - 0 1", true),
            ("k7/8/8/8/8/8/8/5B1K w - - 0 1", true),
            ("k2b4/8/8/8/8/8/8/2B4K w - - 0 1", true),  // d8 and c1 are both dark
            ("k1b5/8/8/8/8/8/8/2B4K w - - 0 1", false), // c8 is light
            ("k7/8/8/8/8/8/B7/1B5K w - - 0 1", true),   // a2 and b1: two light bishops
            ("k7/8/8/8/8/8/8/1BB4K w - - 0 1", false),  // the pair
            ("k7/8/8/8/8/8/8/5NNK w - - 0 1", false),   // two knights can mate with help
            ("kn6/8/8/8/8/8/8/6NK w - - 0 1", false),
            ("kb6/8/8/8/8/8/8/6NK w - - 0 1", false),
            ("k7/8/8/8/8/8/P7/7K w - - 0 1", false),
            ("k7/8/8/8/8/8/8/6RK w - - 0 1", false),
            ("k7/8/8/8/8/8/8/6QK w - - 0 1", false),
        ];
        for (fen, dead) in cases {
            let game = game(fen);
            assert_eq!(game.termination() == Some(Termination::InsufficientMaterial), dead, "{fen}");
            assert_eq!(game.legal().is_empty(), dead, "{fen}");
        }
    }

    #[test]
    fn move_rules_end_the_game_at_50_by_claim_and_at_75() {
        let mut slow = game("k7/8/8/8/8/8/8/6RK w - - 99 80");
        assert_eq!(slow.termination_in_search(), None);
        play(&mut slow, "Rg2");
        assert_eq!((slow.termination(), slow.termination_in_search()), (None, Some(Termination::FiftyMoves)));
        assert_eq!(slow.outcome_in_search(), Some(0));
        let mut end = game("k7/8/8/8/8/8/8/6RK w - - 149 100");
        assert_eq!(end.termination(), None);
        play(&mut end, "Rg2");
        assert_eq!((end.halfmove_clock(), end.termination()), (150, Some(Termination::SeventyFiveMoves)));
        assert!(end.legal().is_empty());
        assert!(!end.is_legal(end.parse_action("a8a7").unwrap_or(0)));
        // A checkmate on the last move counts.
        let mut mate = game("7k/8/6K1/8/8/8/8/R7 w - - 149 100");
        play(&mut mate, "Ra8#");
        assert_eq!((mate.termination(), mate.outcome_in_search()), (Some(Termination::Checkmate), Some(1)));
        // A capture resets the clock.
        let mut taken = game("k7/8/8/8/8/8/6p1/6RK w - - 149 100");
        play(&mut taken, "Rxg2");
        assert_eq!((taken.halfmove_clock(), taken.termination_in_search()), (0, None));
    }

    #[test]
    fn repetitions_end_the_game_at_3_by_claim_and_at_5() {
        let mut game = Chess::default();
        for round in 0..4u32 {
            assert_eq!(game.repetitions(), round);
            let expected = if round >= 2 { Some(Termination::ThreefoldRepetition) } else { None };
            assert_eq!((game.termination(), game.termination_in_search()), (None, expected));
            play(&mut game, "Nf3 Nf6 Ng1 Ng8");
        }
        assert_eq!((game.repetitions(), game.termination()), (4, Some(Termination::FivefoldRepetition)));
        assert!(game.legal().is_empty());
    }

    #[test]
    fn repetition_compares_castling_rights_and_legal_en_passant() {
        let mut rights = game("4k3/8/8/8/8/8/8/4K2R w K - 0 1");
        play(&mut rights, "Rh2 Kd8 Rh1 Ke8");
        assert_eq!(rights.repetitions(), 0);
        play(&mut rights, "Rh2 Kd8 Rh1 Ke8");
        assert_eq!(rights.repetitions(), 1);
        // The double step can be captured: after the knight moves the position differs.
        let mut real = game("4k1n1/8/8/8/3p4/8/4P3/4K1N1 w - - 0 1");
        play(&mut real, "e4 Nf6 Nf3 Ng8 Ng1");
        assert_eq!(real.repetitions(), 0);
        // Here it cannot, so the position repeats.
        let mut idle = game("4k1n1/8/8/8/7p/8/4P3/4K1N1 w - - 0 1");
        play(&mut idle, "e4 Nf6 Nf3 Ng8 Ng1");
        assert_eq!(idle.repetitions(), 1);
        // A bishop that can go to the square behind the pawn changes nothing.
        let mut bishop = game("4k1n1/8/8/8/5b2/8/4P3/4K1N1 w - - 0 1");
        play(&mut bishop, "e4");
        let fen = "4k1n1/8/8/8/4Pb2/8/8/4K1N1 b - - 0 1";
        assert_eq!((bishop.fen().as_str(), &bishop), (fen, &game(fen)));
        // Here the capturing pawn is pinned, so the position repeats.
        let mut pinned = game("3k2n1/8/8/8/3p4/8/4P3/3RK1N1 w - - 0 1");
        play(&mut pinned, "e4 Nf6 Nf3 Ng8 Ng1");
        assert_eq!(pinned.repetitions(), 1);
    }
}
