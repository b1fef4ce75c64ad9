//! UCI notation of moves, and errors of move parsing.

use cozy_chess::{Board, Piece, Square};

use super::{action, Chess};
use crate::error::Error;
use crate::games::{Action, Game};

/// Upper bound of legal moves listed in an error.
const MAX_LISTED: usize = 40;

/// Formats an action in UCI notation; actions that no piece can make as `<action number>`.
pub(super) fn uci(board: &Board, action: Action) -> String {
    match action::squares(board, action) {
        None => format!("<action {action}>"),
        Some((from, to, None)) => format!("{from}{to}"),
        Some((from, to, Some(piece))) => format!("{from}{to}{piece}"),
    }
}

/// Parses a move in UCI or standard algebraic notation.
pub(super) fn parse(game: &Chess, text: &str) -> Result<Action, Error> {
    let text = text.trim();
    match read_uci(game.board(), text) {
        Some(action) if game.is_legal(action) => Ok(action),
        _ => game.parse_san(text),
    }
}

fn read_uci(board: &Board, text: &str) -> Option<Action> {
    let from: Square = text.get(0..2)?.parse().ok()?;
    let to: Square = text.get(2..4)?.parse().ok()?;
    let promotion = match text.get(4..)? {
        "" => None,
        letter => Some(letter.parse::<Piece>().ok()?),
    };
    action::from_squares(board, from, to, promotion)
}

/// Returns at most the first `most` characters of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// Returns the error of a text that names no legal move; it lists the legal ones.
pub(super) fn refusal(game: &Chess, text: &str, why: &str) -> Error {
    let short = shortened(text, 40);
    if let Some(end) = game.termination() {
        return Error::InvalidAction(format!("{short:?} cannot be played: the game is over by {}", end.name().replace('_', " ")));
    }
    let actions = game.legal();
    let listed: Vec<String> = actions
        .iter()
        .take(MAX_LISTED)
        .map(|&action| format!("{} ({})", uci(game.board(), action), game.san(action).unwrap_or_default()))
        .collect();
    let rest = if actions.len() > MAX_LISTED { format!(" and {} more", actions.len() - MAX_LISTED) } else { String::new() };
    Error::InvalidAction(format!("{short:?} {why}; legal moves here: {}{rest}", listed.join(", ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::game;

    #[test]
    fn errors_list_legal_moves() {
        let start = Chess::default();
        for text in ["", "e2e5", "e9", "e1h1", "0000", "Zf3", "e2e4q", "é2é4", "O-O", "Nf3f", "e4e2", "\u{1F600}\u{1F600}"] {
            let error = start.parse_action(text).unwrap_err().to_string();
            assert!(error.contains("legal moves here: a2a3 (a3), a2a4 (a4)"), "{error}");
        }
        let promotion = game("4k3/P7/8/8/8/8/8/4K3 w - - 0 1");
        for text in ["a7a8", "a8", "a7a8k", "a8=K"] {
            let error = promotion.parse_action(text).unwrap_err().to_string();
            assert!(error.contains("a7a8q (a8=Q+)"), "{error}");
        }
        // Castling in Chess960 notation is rejected.
        assert!(game("4k3/8/8/8/8/8/8/4K2R w K - 0 1").parse_action("e1h1").is_err());
        let over = game("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1").parse_action("h6").unwrap_err().to_string();
        assert_eq!(over, "\"h6\" cannot be played: the game is over by checkmate");
    }
}
