//! Methods of the states of single games, beyond those of every game.

use pondertree_core::games::{self, Game};
use pondertree_core::Error;
use pyo3::prelude::*;

use crate::call::guarded;
use crate::errors::OrPython;
use crate::state::{per_player, with_legal, Backgammon, Chess, Hex, Number, Pig, StateClass, TwentyFortyEight};

/// Adds the methods of games with rewards.
macro_rules! reward_games {
    ($($name:ident)*) => { $(
        #[pymethods]
        impl $name {
            /// Returns each player's reward for the move that led here.
            fn rewards(&self) -> PyResult<Vec<f64>> {
                guarded(|| Ok(per_player::<<Self as StateClass>::Inner>(self.0.reward())))
            }
        }
    )* };
}

reward_games!(TwentyFortyEight);

#[pymethods]
impl TwentyFortyEight {
    /// The sum of the rewards so far.
    #[getter]
    fn score(&self) -> u32 {
        self.0.score()
    }
}

/// Adds the methods of games with chance nodes.
macro_rules! chance_games {
    ($($name:ident)*) => { $(
        #[pymethods]
        impl $name {
            /// Returns the outcomes of a chance node with their probabilities; none at other states.
            fn chance_outcomes(&self) -> PyResult<Vec<(u16, f64)>> {
                guarded(|| {
                    let mut outcomes = Vec::new();
                    self.0.chance_outcomes(&mut outcomes);
                    Ok(outcomes)
                })
            }
        }
    )* };
}

chance_games!(Backgammon Pig TwentyFortyEight);

#[pymethods]
impl Hex {
    /// The number of rows, and of columns.
    #[getter]
    fn size(&self) -> usize {
        self.0.dimensions().width
    }
}

#[pymethods]
impl Chess {
    /// Returns the FEN of the position.
    fn fen(&self) -> PyResult<String> {
        guarded(|| Ok(self.0.fen()))
    }

    /// Returns `action` in standard algebraic notation.
    fn san(&self, action: Number) -> PyResult<String> {
        with_legal(&self.0, action, |action| self.0.san(action).or_python())
    }

    /// Returns whether `action` captures, en passant included.
    fn is_capture(&self, action: Number) -> PyResult<bool> {
        with_legal(&self.0, action, |action| Ok(self.0.is_capture(action)))
    }

    /// Returns whether `action` gives check.
    fn gives_check(&self, action: Number) -> PyResult<bool> {
        with_legal(&self.0, action, |action| Ok(self.0.gives_check(action)))
    }

    /// Earlier occurrences of this position since the last capture or pawn move: 2 is threefold.
    #[getter]
    fn repetitions(&self) -> PyResult<u32> {
        guarded(|| Ok(self.0.repetitions()))
    }

    /// Why the game is over ("checkmate", "stalemate", ...); None otherwise.
    #[getter]
    fn termination(&self) -> PyResult<Option<&'static str>> {
        guarded(|| Ok(self.0.termination().map(|termination| termination.name())))
    }

    /// Returns the piece moves as text, each with the FEN after it, even if the game is drawn by rule: GUIs may continue such
    /// games.
    fn _moves_on_board(&self) -> PyResult<Vec<(String, String)>> {
        guarded(|| Ok(self.0.moves_on_board()))
    }
}

/// Counts the move sequences of length `depth` from a chess position, ignoring draws by rule.
#[pyfunction]
pub fn perft(py: Python<'_>, state: &Chess, depth: Number) -> PyResult<u64> {
    match u8::try_from(depth.0) {
        Ok(plies) => guarded(|| Ok(py.detach(|| games::chess::perft(&state.0, plies.into())))),
        Err(_) => Err(Error::InvalidArgument(format!("depth must be from 0 to {}, not {}", u8::MAX, depth.0))).or_python(),
    }
}
