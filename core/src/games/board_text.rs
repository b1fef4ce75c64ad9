//! What the small games share: results, the names of squares, how boards are drawn.

use std::fmt;

use crate::error::Error;
use crate::games::{Action, Game};

/// The result, as player 0 sees it, of a game that `player` has won.
#[inline]
pub(super) fn win_of(player: u8) -> i8 {
    1 - 2 * player as i8
}

/// `a1` for 0, with columns lettered from the left and rows numbered from the top; what is outside the board stays a number.
pub(super) fn square_name(square: Action, side: Action) -> String {
    if square < side * side {
        format!("{}{}", char::from(b'a' + (square % side) as u8), square / side + 1)
    } else {
        square.to_string()
    }
}

/// The legal action whose name is `text`; blanks around it and upper case do not matter.
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

/// How a square is drawn that holds a stone of player 0, of player 1, or none.
pub(super) fn stone_symbol(held: [bool; 2]) -> char {
    match held {
        [true, _] => 'X',
        [_, true] => 'O',
        _ => '.',
    }
}

/// The last line of a drawn board.
pub(super) fn write_status<G: Game>(game: &G, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(match (game.outcome(), game.to_play()) {
        (None, 0) => "X to move",
        (None, _) => "O to move",
        (Some(0), _) => "draw",
        (Some(1), _) => "X wins",
        (Some(_), _) => "O wins",
    })
}
