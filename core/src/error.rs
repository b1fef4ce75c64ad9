//! The error type; each variant carries a message that names the argument and what is valid.

use std::fmt;

/// An error of the engine. The bindings map each variant to a Python exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An illegal action, or text that names no legal action.
    InvalidAction(String),
    /// An invalid position: bad FEN, impossible board.
    InvalidPosition(String),
    /// The game is over.
    GameOver(String),
    /// A setting or argument out of range.
    InvalidArgument(String),
    /// A game that violates its contract: legal moves, returns, rewards.
    GameContract(String),
    /// Invalid output of an evaluator or model.
    Evaluation(String),
    /// Calls in the wrong order, such as apply without gather.
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
