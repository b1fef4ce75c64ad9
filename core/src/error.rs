//! Everything that can go wrong, as one type; each variant carries a sentence that names the argument and what would be right.

use std::fmt;

/// An error of the engine. The bindings turn each variant into its own Python exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An action that is not legal, or text that names no legal action.
    InvalidAction(String),
    /// A position that cannot be: bad FEN, impossible board.
    InvalidPosition(String),
    /// The game is over where it must not be.
    GameOver(String),
    /// A setting or argument outside its range.
    InvalidArgument(String),
    /// A game (world) that broke its contract: wrong legal moves, returns, rewards.
    GameContract(String),
    /// An evaluator or model that answered nonsense.
    Evaluation(String),
    /// Calls in the wrong order: apply without gather, a stale node.
    Usage(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::InvalidAction(text)
        | Self::InvalidPosition(text)
        | Self::GameOver(text)
        | Self::InvalidArgument(text)
        | Self::GameContract(text)
        | Self::Evaluation(text)
        | Self::Usage(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for Error {}
