//! Text of the board games: square names, parsing, ASCII boards.

use std::fmt;

use crate::error::Error;
use crate::games::{Action, Game, CHANCE};

/// Formats a square: column letter from the left, row number from the top, `a1` for 0. Indices off the board are formatted as
/// numbers.
pub(super) fn square_name(square: Action, side: Action) -> String {
    if square < side * side {
        format!("{}{}", char::from(b'a' + (square % side) as u8), square / side + 1)
    } else {
        square.to_string()
    }
}

/// Parses the name of a legal action, ignoring case and surrounding whitespace.
pub(super) fn parse_by_name<G: Game>(game: &G, text: &str) -> Result<Action, Error> {
    let legal = game.legal();
    if let Some(action) = legal.iter().find(|action| game.action_to_string(**action).eq_ignore_ascii_case(text.trim())) {
        return Ok(*action);
    }
    let names: Vec<String> = legal.iter().map(|action| game.action_to_string(*action)).collect();
    let choice = if names.is_empty() { "the game is over".to_owned() } else { format!("legal are {}", names.join(", ")) };
    Err(Error::InvalidAction(format!("{text:?} is not a legal action of {}: {choice}", G::NAME)))
}

/// Returns the symbol of a square; `held` tells whether player 0 and player 1 occupy it.
pub(super) fn stone_symbol(held: [bool; 2]) -> char {
    match held {
        [true, _] => 'X',
        [_, true] => 'O',
        _ => '.',
    }
}

/// Writes the column letters and the rows of a square board; `row_number` names a row, `slant` shifts each further right than the
/// one above, `held` is that of `stone_symbol`.
pub(super) fn write_board(
    formatter: &mut fmt::Formatter<'_>,
    side: usize,
    slant: usize,
    row_number: impl Fn(usize) -> usize,
    held: impl Fn(usize) -> [bool; 2],
) -> fmt::Result {
    let digits = if side < 10 { 1 } else { 2 };
    write!(formatter, "{:digits$}", "")?;
    for letter in ('a'..).take(side) {
        write!(formatter, " {letter}")?;
    }
    for row in 0..side {
        write!(formatter, "\n{:indent$}{:>digits$}", "", row_number(row), indent = slant * row)?;
        for square in row * side..(row + 1) * side {
            write!(formatter, " {}", stone_symbol(held(square)))?;
        }
    }
    writeln!(formatter)
}

/// Writes the last line of an ASCII board: the player to move or the result.
pub(super) fn write_status<G: Game>(game: &G, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(match (game.outcome(), game.to_play()) {
        (None, CHANCE) => "the die is rolled",
        (None, 0) => "X to move",
        (None, _) => "O to move",
        (Some(0), _) => "draw",
        (Some(1), _) => "X wins",
        (Some(_), _) => "O wins",
    })
}
