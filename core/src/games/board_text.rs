//! Text of the small games: results, names of squares, drawn boards.

use std::fmt;

use crate::error::Error;
use crate::games::{Action, Game};

/// Returns the result for player 0 of a game that `player` won.
#[inline]
pub(super) fn win_of(player: u8) -> i8 {
    1 - 2 * player as i8
}

/// Returns `a1` for 0, with columns lettered from the left and rows numbered from the top; a number outside the board as it is.
pub(super) fn square_name(square: Action, side: Action) -> String {
    if square < side * side {
        format!("{}{}", char::from(b'a' + (square % side) as u8), square / side + 1)
    } else {
        square.to_string()
    }
}

/// Returns the legal action named `text`; ignores case and surrounding blanks.
pub(super) fn parse_by_name<G: Game>(game: &G, text: &str) -> Result<Action, Error> {
    let mut legal = Vec::new();
    game.legal_actions(&mut legal);
    if let Some(action) = legal.iter().find(|action| game.action_to_string(**action).eq_ignore_ascii_case(text.trim())) {
        return Ok(*action);
    }
    let names: Vec<String> = legal.iter().map(|action| game.action_to_string(*action)).collect();
    let choice = if names.is_empty() { "the game is over".to_owned() } else { format!("legal are {}", names.join(", ")) };
    Err(Error::InvalidAction(format!("{text:?} is not a legal action of {}: {choice}", G::NAME)))
}

/// Returns the symbol of a square with a stone of player 0, player 1, or none.
pub(super) fn stone_symbol(held: [bool; 2]) -> char {
    match held {
        [true, _] => 'X',
        [_, true] => 'O',
        _ => '.',
    }
}

/// Returns the last line of a drawn board.
pub(super) fn write_status<G: Game>(game: &G, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(match (game.outcome(), game.to_play()) {
        (None, 0) => "X to move",
        (None, _) => "O to move",
        (Some(0), _) => "draw",
        (Some(1), _) => "X wins",
        (Some(_), _) => "O wins",
    })
}
