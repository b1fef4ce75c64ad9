//! The forests of all worlds under one type, and macros that dispatch on it.

use std::sync::Arc;

use pondertree_core::chess::ChessAnalysis;
use pondertree_core::games::analysis::{Analyzed, NoAnalysis};
use pondertree_core::games::{Compiled, Game, Latent, PythonGame};
use pondertree_core::{for_each_game, Error, Forest, WorldConfig};
use pyo3::prelude::*;

use crate::config::ConfigArguments;
use crate::errors::OrPython;

/// A leaf analysis that a configuration may have for its game.
trait AnalysisArgument: Sized {
    fn of(given: Option<Arc<ChessAnalysis>>) -> Result<Option<Arc<Self>>, Error>;
}

impl AnalysisArgument for ChessAnalysis {
    fn of(given: Option<Arc<ChessAnalysis>>) -> Result<Option<Arc<Self>>, Error> {
        Ok(given)
    }
}

impl AnalysisArgument for NoAnalysis {
    fn of(given: Option<Arc<ChessAnalysis>>) -> Result<Option<Arc<Self>>, Error> {
        match given {
            None => Ok(None),
            Some(_) => Err(Error::InvalidArgument("analysis is for chess, not for another game".into())),
        }
    }
}

/// Declares the type of all forests, with a variant for each compiled game, and the macros that match on it.
macro_rules! declare_forests {
    ($d:tt $([$name:ident, $game:ty $(, $start:ident $($rest:tt)*)?])*) => {
        /// A forest of one of the worlds.
        pub enum Any {
            $($name(Forest<Compiled<$game>>),)*
            External(Forest<PythonGame>),
            Latent(Forest<Latent>),
        }

        impl Any {
            /// Creates a forest of a compiled game by its name, or of an "external" or "latent" world.
            pub fn new(world: &str, ConfigArguments { config, chess }: ConfigArguments) -> Result<Self, Error> {
                Ok(match world {
                    $(<$game>::NAME => {
                        let analysis = <$game as Analyzed>::Analysis::of(chess)?;
                        Self::$name(Forest::new(WorldConfig::new(config, analysis)?))
                    })*
                    "external" => Self::External(Forest::new(WorldConfig::new(config, NoAnalysis::of(chess)?)?)),
                    "latent" => Self::Latent(Forest::new(WorldConfig::new(config, NoAnalysis::of(chess)?)?)),
                    _ => return Err(Error::InvalidArgument(format!("game {world:?} is not compiled"))),
                })
            }
        }

        /// Runs an expression on the forest of any world.
        macro_rules! each {
            ($d any:expr, $d forest:ident => $d body:expr) => {
                match $d any {
                    $($crate::forest::any::Any::$name($d forest) => $d body,)*
                    $crate::forest::any::Any::External($d forest) => $d body,
                    $crate::forest::any::Any::Latent($d forest) => $d body,
                }
            };
        }

        /// Runs an expression on the forest of a compiled game, whose Python class is `$class`.
        macro_rules! each_compiled {
            ($d any:expr, $d forest:ident, $d class:ident => $d body:expr) => {
                match $d any {
                    $($crate::forest::any::Any::$name($d forest) => {
                        type $d class = $crate::state::$name;
                        $d body
                    })*
                    $crate::forest::any::Any::External(_) | $crate::forest::any::Any::Latent(_) => {
                        Err(Error::Usage("this needs a compiled game: the positions of this forest live outside".into())).or_python()
                    }
                }
            };
        }
    };
}

for_each_game!(declare_forests $);

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
