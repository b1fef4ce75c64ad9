//! The forests of all worlds under one type, and macros that dispatch on it.

use pondertree_core::games::{chess, connect_four, othello, tic_tac_toe, Compiled, Game, Latent, PythonGame, World};
use pondertree_core::{Error, Forest, SearchConfig, WorldConfig};
use pyo3::prelude::*;

use crate::config::ConfigArguments;
use crate::errors::OrPython;

/// A forest of one of the worlds.
pub enum Any {
    TicTacToe(Forest<Compiled<tic_tac_toe::TicTacToe>>),
    ConnectFour(Forest<Compiled<connect_four::ConnectFour>>),
    Othello(Forest<Compiled<othello::Othello>>),
    Chess(Forest<Compiled<chess::Chess>>),
    External(Forest<PythonGame>),
    Latent(Forest<Latent>),
}

impl Any {
    /// Creates a forest of a compiled game by its name, or of an "external" or "latent" world.
    pub fn new(game: &str, arguments: ConfigArguments) -> PyResult<Self> {
        let ConfigArguments { config, chess } = arguments;
        if chess.is_some() && game != chess::Chess::NAME {
            return Err(Error::InvalidArgument(format!("analysis is for chess, not for the game {game:?}"))).or_python();
        }
        Ok(match game {
            "tic_tac_toe" => Self::TicTacToe(forest(config)?),
            "connect_four" => Self::ConnectFour(forest(config)?),
            "othello" => Self::Othello(forest(config)?),
            "chess" => Self::Chess(Forest::new(WorldConfig::new(config, chess).or_python()?)),
            "external" => Self::External(forest(config)?),
            "latent" => Self::Latent(forest(config)?),
            _ => return Err(Error::InvalidArgument(format!("game {game:?} is not compiled"))).or_python(),
        })
    }
}

fn forest<W: World>(config: SearchConfig) -> PyResult<Forest<W>> {
    Ok(Forest::new(WorldConfig::new(config, None).or_python()?))
}

/// Runs an expression on the forest of any world.
macro_rules! each {
    ($any:expr, $forest:ident => $body:expr) => {
        match $any {
            $crate::forest::any::Any::TicTacToe($forest) => $body,
            $crate::forest::any::Any::ConnectFour($forest) => $body,
            $crate::forest::any::Any::Othello($forest) => $body,
            $crate::forest::any::Any::Chess($forest) => $body,
            $crate::forest::any::Any::External($forest) => $body,
            $crate::forest::any::Any::Latent($forest) => $body,
        }
    };
}

/// Runs an expression on the forest of a compiled game, whose Python class is `$class`.
macro_rules! each_compiled {
    ($any:expr, $forest:ident, $class:ident => $body:expr) => {
        match $any {
            $crate::forest::any::Any::TicTacToe($forest) => {
                type $class = $crate::state::TicTacToe;
                $body
            }
            $crate::forest::any::Any::ConnectFour($forest) => {
                type $class = $crate::state::ConnectFour;
                $body
            }
            $crate::forest::any::Any::Othello($forest) => {
                type $class = $crate::state::Othello;
                $body
            }
            $crate::forest::any::Any::Chess($forest) => {
                type $class = $crate::state::Chess;
                $body
            }
            $crate::forest::any::Any::External(_) | $crate::forest::any::Any::Latent(_) => {
                Err(Error::Usage("this needs a compiled game: the positions of this forest live outside".into())).or_python()
            }
        }
    };
}

/// Clones a state; some games are `Copy` and some are not.
pub fn copy_of<G: Game>(state: &G) -> G {
    state.clone()
}

/// Returns the forest of a game written in Python.
pub fn external(any: &mut Any) -> PyResult<&mut Forest<PythonGame>> {
    match any {
        Any::External(forest) => Ok(forest),
        _ => Err(Error::Usage("this is for games written in Python".into())).or_python(),
    }
}

/// Returns the forest of a learned model.
pub fn latent(any: &mut Any) -> PyResult<&mut Forest<Latent>> {
    match any {
        Any::Latent(forest) => Ok(forest),
        _ => Err(Error::Usage("this is for learned models".into())).or_python(),
    }
}

pub(crate) use {each, each_compiled};
