//! The forests of all worlds under one type, and how one line runs on each.

use pondertree_core::error::Error;
use pondertree_core::forest::Forest;
use pondertree_core::games::{chess, connect_four, othello, tic_tac_toe, Compiled, External, Game, Latent};
use pondertree_core::search::config::SearchConfig;
use pyo3::prelude::*;

use crate::errors::OrPython;

/// A forest of whichever kind of world.
pub enum Any {
    TicTacToe(Forest<Compiled<tic_tac_toe::TicTacToe>>),
    ConnectFour(Forest<Compiled<connect_four::ConnectFour>>),
    Othello(Forest<Compiled<othello::Othello>>),
    Chess(Forest<Compiled<chess::Chess>>),
    External(Forest<External>),
    Latent(Forest<Latent>),
}

impl Any {
    /// A forest for a game: the name of a compiled one, "external" or "latent".
    pub fn new(game: &str, config: SearchConfig, threads: usize) -> PyResult<Self> {
        Ok(match game {
            "tic_tac_toe" => Self::TicTacToe(Forest::new(config, threads).or_python()?),
            "connect_four" => Self::ConnectFour(Forest::new(config, threads).or_python()?),
            "othello" => Self::Othello(Forest::new(config, threads).or_python()?),
            "chess" => Self::Chess(Forest::new(config, threads).or_python()?),
            "external" => Self::External(Forest::new(config, threads).or_python()?),
            "latent" => Self::Latent(Forest::new(config, threads).or_python()?),
            _ => return Err(Error::InvalidArgument(format!("game {game:?} is not compiled"))).or_python(),
        })
    }
}

/// Runs the same line on whichever forest it is.
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

/// The same, for what only compiled games have.
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
                Err(Error::Usage("this is for compiled games: the positions of this forest live outside".into())).or_python()
            }
        }
    };
}

/// A copy of any state; some games are `Copy` and some are not.
pub fn copy_of<G: Game>(state: &G) -> G {
    state.clone()
}

/// The forest of a game written in Python.
pub fn external(any: &mut Any) -> PyResult<&mut Forest<External>> {
    match any {
        Any::External(forest) => Ok(forest),
        _ => Err(Error::Usage("this is for games written in Python".into())).or_python(),
    }
}

/// The forest of a history_table model.
pub fn latent(any: &mut Any) -> PyResult<&mut Forest<Latent>> {
    match any {
        Any::Latent(forest) => Ok(forest),
        _ => Err(Error::Usage("this is for history_table models".into())).or_python(),
    }
}

pub(crate) use {each, each_compiled};
