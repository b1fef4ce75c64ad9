//! Standard algebraic notation: `Nf3`, `exd5`, `O-O`, `e8=Q+`.

use cozy_chess::{Board, File, Move, Piece, Rank, Square};

use super::notation::refusal;
use super::state::{board_after, captures, is_castling};
use super::{action, Chess};
use crate::error::Error;
use crate::games::Action;

impl Chess {
    /// Formats a legal action in standard algebraic notation.
    ///
    /// # Errors
    /// `Error::InvalidAction` if it is illegal.
    pub fn san(&self, action: Action) -> Result<String, Error> {
        match self.legal_move(action) {
            Some(mv) => Ok(write(self.board(), mv)),
            None => Err(refusal(self, &super::notation::uci(self.board(), action), "is not legal")),
        }
    }

    /// Parses standard algebraic notation. `x`, `=`, `+` and `#` are optional, castling may use zeros, and redundant origins are
    /// allowed (`Ng1f3`, `e2-e4`).
    ///
    /// # Errors
    /// `Error::InvalidAction` if the text matches no legal move, or several.
    pub fn parse_san(&self, text: &str) -> Result<Action, Error> {
        let Some(pattern) = Pattern::read(text) else {
            return Err(refusal(self, text, "is not a move in the notation of UCI (e2e4) or in algebraic notation (Nf3)"));
        };
        let board = self.board();
        let mut found = Vec::new();
        if !self.is_drawn_automatically() {
            board.generate_moves(|moves| {
                found.extend(moves.into_iter().filter(|&mv| pattern.fits(board, moves.piece, mv)));
                false
            });
        }
        match found[..] {
            [mv] => Ok(action::encode(board, mv)),
            [] => Err(refusal(self, text, "is not a legal move")),
            _ => {
                let names: Vec<String> = found.iter().map(|&mv| write(board, mv)).collect();
                Err(refusal(self, text, &format!("may be any of {}", names.join(", "))))
            }
        }
    }
}

fn capital(piece: Piece) -> char {
    char::from(piece).to_ascii_uppercase()
}

fn write(board: &Board, mv: Move) -> String {
    let piece = board.piece_on(mv.from).unwrap_or(Piece::Pawn);
    let mut text = String::new();
    if is_castling(board, mv) {
        text.push_str(if mv.to > mv.from { "O-O" } else { "O-O-O" });
    } else {
        let capture = captures(board, mv);
        if piece == Piece::Pawn {
            text.extend(capture.then(|| char::from(mv.from.file())));
        } else {
            text.push(capital(piece));
            text.push_str(&origin(board, piece, mv));
        }
        if capture {
            text.push('x');
        }
        text.push_str(&mv.to.to_string());
        if let Some(promotion) = mv.promotion {
            text.push('=');
            text.push(capital(promotion));
        }
    }
    let next = board_after(board, mv);
    if !next.checkers().is_empty() {
        text.push(if next.generate_moves(|_| true) { '+' } else { '#' });
    }
    text
}

/// Returns the shortest disambiguation among pieces of the same kind with the same target: none, file, rank, or both.
fn origin(board: &Board, piece: Piece, mv: Move) -> String {
    let (mut any, mut same_file, mut same_rank) = (false, false, false);
    board.generate_moves_for(board.pieces(piece), |moves| {
        if moves.from != mv.from && moves.to.has(mv.to) {
            any = true;
            same_file |= moves.from.file() == mv.from.file();
            same_rank |= moves.from.rank() == mv.from.rank();
        }
        false
    });
    match (any, same_file, same_rank) {
        (false, ..) => String::new(),
        (_, false, _) => mv.from.file().to_string(),
        (_, true, false) => mv.from.rank().to_string(),
        (_, true, true) => mv.from.to_string(),
    }
}

/// A parsed move text.
enum Pattern {
    Castling { short: bool },
    Piece { piece: Piece, file: Option<File>, rank: Option<Rank>, to: Square, promotion: Option<Piece> },
}

impl Pattern {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches(['+', '#', '!', '?']).trim_end();
        let text = text.strip_suffix("e.p.").unwrap_or(text).trim_end();
        match text {
            "O-O" | "0-0" | "o-o" => return Some(Self::Castling { short: true }),
            "O-O-O" | "0-0-0" | "o-o-o" => return Some(Self::Castling { short: false }),
            _ if !text.is_ascii() => return None,
            _ => {}
        }
        let mut rest = text;
        let mut piece = Piece::Pawn;
        if let Some(letter) = rest.chars().next().filter(char::is_ascii_uppercase) {
            piece = Piece::try_from(letter.to_ascii_lowercase()).ok().filter(|&piece| piece != Piece::Pawn)?;
            rest = &rest[1..];
        }
        let mut promotion = None;
        if let Some(letter) = rest.chars().last().filter(char::is_ascii_alphabetic) {
            promotion = Some(Piece::try_from(letter.to_ascii_lowercase()).ok()?);
            rest = &rest[..rest.len() - 1];
            rest = rest.strip_suffix('=').unwrap_or(rest);
        }
        let to: Square = rest.get(rest.len().checked_sub(2)?..)?.parse().ok()?;
        rest = &rest[..rest.len() - 2];
        rest = rest.strip_suffix(['x', '-']).unwrap_or(rest);
        let mut letters = rest.chars().peekable();
        let file = letters.next_if(|&letter| File::try_from(letter).is_ok()).and_then(|letter| File::try_from(letter).ok());
        let rank = letters.next_if(|&letter| Rank::try_from(letter).is_ok()).and_then(|letter| Rank::try_from(letter).ok());
        if letters.next().is_some() {
            return None;
        }
        // `d5` is a pawn advance on the d-file, never a capture.
        let file = if piece == Piece::Pawn { file.or(Some(to.file())) } else { file };
        Some(Self::Piece { piece, file, rank, to, promotion })
    }

    fn fits(&self, board: &Board, moved: Piece, mv: Move) -> bool {
        match *self {
            Self::Castling { short } => is_castling(board, mv) && (mv.to > mv.from) == short,
            Self::Piece { piece, file, rank, to, promotion } => {
                piece == moved
                    && to == mv.to
                    && promotion == mv.promotion
                    && !is_castling(board, mv)
                    && file.is_none_or(|file| file == mv.from.file())
                    && rank.is_none_or(|rank| rank == mv.from.rank())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::games::chess::fixtures::game;
    use crate::games::chess::Chess;
    use crate::games::Game;

    #[test]
    fn moves_format_and_parse() {
        let cases = [
            ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "g1f3", "Nf3"),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "O-O"),
            ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", "O-O-O"),
            ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "O-O+"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", "a8=Q+"),
            ("4k3/8/8/8/8/8/p7/1N2K3 b - - 0 1", "a2b1n", "axb1=N"),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", "exd6"),
            ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1", "a1d1", "Rd1"),
            ("7k/8/8/8/R7/8/8/R3K3 w - - 0 1", "a1a3", "R1a3"),
            ("6k1/8/8/8/8/8/8/RK5R w - - 0 1", "h1c1", "Rc1"),
            ("1k6/8/8/8/4Q2Q/K7/8/7Q w - - 0 1", "h4e1", "Qh4e1"),
            ("7k/8/8/8/8/4N3/8/N5NK w - - 0 1", "e3c2", "Nec2"),
            ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8", "Ra8#"),
            ("3k4/8/8/8/1b6/2N5/8/4K1N1 w - - 0 1", "g1e2", "Ne2"), // the other knight is pinned
        ];
        for (fen, uci, san) in cases {
            let game = game(fen);
            let action = game.parse_action(uci).unwrap();
            assert_eq!((game.action_to_string(action), game.san(action).unwrap()), (uci.to_owned(), san.to_owned()), "{fen}");
            assert_eq!(game.parse_action(san).unwrap(), action, "{fen}");
        }
        assert!(Chess::default().san(0).is_err());
        assert_eq!(Chess::default().action_to_string(4671), "<action 4671>");
    }

    #[test]
    fn san_parser_accepts_variants() {
        let cases = [
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "0-0", "e1g1"),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "0-0-0!?", "e1c1"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8Q", "a7a8q"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8=n", "a7a8n"),
            ("1r2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "ab8b", "a7b8b"),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "ed6", "e5d6"),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", " exd6 e.p. ", "e5d6"),
            ("4k3/8/8/3p4/8/4N3/8/4K3 w - - 0 1", "Nd5", "e3d5"),
            ("4k3/8/8/3p4/8/4N3/8/4K3 w - - 0 1", "Ne3xd5", "e3d5"),
            ("4k3/8/8/3p4/8/4N3/8/4K3 w - - 0 1", "Ne3-d5", "e3d5"),
            ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "e2-e4", "e2e4"),
        ];
        for (fen, text, uci) in cases {
            let game = game(fen);
            assert_eq!(game.parse_action(text).map(|action| game.action_to_string(action)), Ok(uci.to_owned()), "{fen} {text}");
        }
    }

    #[test]
    fn ambiguous_and_illegal_san_is_rejected() {
        let knights = game("4k3/8/8/8/8/8/8/1N1K1N2 w - - 0 1").parse_action("Nd2").unwrap_err().to_string();
        assert!(knights.contains("may be any of Nbd2, Nfd2"), "{knights}");
        // A pawn's capture must name its file.
        assert!(game("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1").parse_action("d5").is_err());
        assert!(game("4k3/8/8/8/8/8/8/4K2R w K - 0 1").parse_action("Kg1").is_err());
        assert!(Chess::default().parse_action("Pe4").is_err());
    }
}
