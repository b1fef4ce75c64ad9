//! Python bindings of the compiled games' states.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use numpy::{PyArray3, PyArrayMethods, PyReadonlyArray1};
use pondertree_core::games::{unpack_observation, Compiled, Game};
use pondertree_core::{games, playout, Error, PlayoutPolicy, Purpose, Random};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3::Borrowed;

use crate::arrays::{compiled_line, PackedLine};
use crate::call::guarded;
use crate::errors::OrPython;

/// An action from Python; integers too large for any game are illegal actions.
pub struct Number(pub i64);

impl<'a, 'py> FromPyObject<'a, 'py> for Number {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(Self(i64::MAX)),
            other => other.map(Self),
        }
    }
}

/// Text from Python; lone surrogates are replaced and match nothing.
pub struct Text(String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.cast::<PyString>()?.to_string_lossy().into_owned()))
    }
}

/// Returns the action `number` if it is legal in `state`.
pub fn legal_action<G: Game>(state: &G, Number(number): Number) -> Result<u16, Error> {
    if state.outcome().is_some() {
        return Err(Error::GameOver(format!("the game is over: action {number} cannot be played")));
    }
    let action = u16::try_from(number).ok().filter(|&action| usize::from(action) < G::NUM_ACTIONS && state.is_legal(action));
    action.ok_or_else(|| {
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let texts: Vec<String> = legal.iter().take(40).map(|&a| format!("{a} ({})", state.action_to_string(a))).collect();
        Error::InvalidAction(format!("action {number} is not legal here; legal actions: {}", texts.join(", ")))
    })
}

/// Returns a compiled playout policy by its name.
pub fn playout_policy(name: &str) -> PyResult<PlayoutPolicy> {
    match name {
        "random" => Ok(PlayoutPolicy::Random),
        "decisive" => Ok(PlayoutPolicy::Decisive),
        _ => {
            Err(Error::InvalidArgument(format!("playout_policy {name:?} is unknown: \"random\" and \"decisive\" are compiled"))).or_python()
        }
    }
}

fn observation<'py, G: Game>(py: Python<'py>, state: &G) -> PyResult<Bound<'py, PyArray3<f32>>> {
    let (mut planes, mut scalars) = (vec![0; G::PLANES], vec![0.0; G::SCALARS]);
    state.pack_observation(&mut planes, &mut scalars);
    let array = PyArray3::zeros(py, [G::PLANES + G::SCALARS, G::HEIGHT, G::WIDTH], false);
    unpack_observation::<G>(&planes, &scalars, array.readwrite().as_slice_mut()?);
    Ok(array)
}

/// The history of a state, for pickle. Replaying it restores the whole state, repetitions included, and checks every action.
#[derive(Clone, Default)]
pub struct Record {
    /// The FEN of the first position; None is the initial state.
    start: Option<Arc<str>>,
    actions: Vec<u16>,
}

impl Record {
    fn and(&self, action: u16) -> Self {
        let mut actions = Vec::with_capacity(self.actions.len() + 1);
        actions.extend_from_slice(&self.actions);
        actions.push(action);
        Self { start: self.start.clone(), actions }
    }
}

/// The `__reduce__` value: `restore` and its arguments.
type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, Option<String>, Bound<'py, PyBytes>));

/// The compiled game of a Python class.
pub trait Wraps {
    /// The compiled game.
    type Inner: Game;
}

/// Defines the Python class of a compiled game, with additional methods in braces.
macro_rules! state_class {
    ($name:ident, $game:ty, { $($extra:tt)* }) => {
        #[doc = concat!("A state of the compiled game ", stringify!($name), ": an immutable value. Calling the class gives the start.")]
        #[pyclass(frozen, module = "pondertree.games", skip_from_py_object)]
        #[derive(Clone)]
        pub struct $name(pub $game, Option<Record>);

        impl Wraps for $name {
            type Inner = $game;
        }

        impl $name {
            /// Wraps a state from a search, which has no history.
            pub fn wrap(state: $game) -> Self {
                Self(state, None)
            }

            fn after(&self, action: Number) -> Result<Self, Error> {
                let action = legal_action(&self.0, action)?;
                let mut next = self.0.clone();
                next.play(action);
                Ok(Self(next, self.1.as_ref().map(|record| record.and(action))))
            }

            fn replay(mut self, actions: &[u16]) -> Result<Self, Error> {
                for &action in actions {
                    legal_action(&self.0, Number(action.into()))?;
                    self.0.play(action);
                }
                if let Some(record) = &mut self.1 {
                    record.actions.extend_from_slice(actions);
                }
                Ok(self)
            }
        }

        #[pymethods]
        impl $name {
            $($extra)*

            /// Returns the legal actions; none if the game is over.
            fn legal_actions(&self) -> PyResult<Vec<u16>> {
                guarded(|| {
                    let mut actions = Vec::new();
                    self.0.legal_actions(&mut actions);
                    Ok(actions)
                })
            }

            /// Returns the state after `action`.
            fn play(&self, action: Number) -> PyResult<Self> {
                guarded(|| self.after(action).or_python())
            }

            /// The player to move, 0 or 1.
            #[getter]
            fn to_play(&self) -> u8 {
                self.0.to_play()
            }

            /// Whether the game is over.
            #[getter]
            fn is_terminal(&self) -> PyResult<bool> {
                guarded(|| Ok(self.0.outcome().is_some()))
            }

            /// Returns the result per player: 1 won, 0 drawn, -1 lost. Zeros before the end.
            fn returns(&self) -> PyResult<[f64; 2]> {
                guarded(|| {
                    let result = f64::from(self.0.outcome().unwrap_or(0));
                    Ok([result, -result + 0.0])
                })
            }

            /// Size of the action space.
            #[getter]
            fn num_actions(&self) -> usize {
                <$game>::NUM_ACTIONS
            }

            /// Number of players.
            #[getter]
            fn num_players(&self) -> usize {
                2
            }

            /// Whether returns sum to 0.
            #[getter]
            fn zero_sum(&self) -> bool {
                true
            }

            /// Returns the observation, float32 planes for the player to move.
            fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f32>>> {
                guarded(|| observation(py, &self.0))
            }

            /// Plays `actions` (uint16) and returns the packed observation before each, and the players to move.
            fn _line<'py>(&self, py: Python<'py>, actions: PyReadonlyArray1<'py, u16>) -> PyResult<PackedLine<'py>> {
                guarded(|| compiled_line(py, &self.0, actions.as_slice()?))
            }

            /// Formats `action`.
            fn action_to_string(&self, action: Number) -> PyResult<String> {
                guarded(|| {
                    let action = legal_action(&self.0, action).or_python()?;
                    Ok(self.0.action_to_string(action))
                })
            }

            /// Parses an action.
            fn parse_action(&self, text: Text) -> PyResult<u16> {
                guarded(|| self.0.parse_action(&text.0).or_python())
            }

            /// Plays a random playout with the numbers of `key`; returns the result for player 0 (None if cut off) and the last state.
            #[pyo3(signature = (key, policy, max_depth))]
            fn _playout(&self, key: u64, policy: &str, max_depth: Option<u32>) -> PyResult<(Option<i8>, Self)> {
                guarded(|| {
                    let policy = playout_policy(policy)?;
                    let mut state = self.0.clone();
                    let mut random = Random::new(key, Purpose::Playout);
                    let result = playout::<Compiled<$game>>(&mut state, policy, &mut random, max_depth.unwrap_or(u32::MAX));
                    Ok((result, Self::wrap(state)))
                })
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
                guarded(|| Ok(other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)))
            }

            fn __hash__(&self) -> PyResult<u64> {
                guarded(|| {
                    let mut hasher = DefaultHasher::new();
                    self.0.hash(&mut hasher);
                    Ok(hasher.finish())
                })
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
                let Some(record) = &self.1 else {
                    let text = "this state came out of a search, which does not keep how it was reached, so it cannot be pickled: \
                                play to it, or send its observation()";
                    return Err(Error::Usage(text.into())).or_python();
                };
                let actions: Vec<u8> = record.actions.iter().flat_map(|action| action.to_le_bytes()).collect();
                let restore = py.import("pondertree._core")?.getattr("restore")?;
                Ok((restore, (stringify!($name), record.start.as_deref().map(str::to_owned), PyBytes::new(py, &actions))))
            }

            fn __copy__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
                slf
            }

            fn __str__(&self) -> PyResult<String> {
                guarded(|| Ok(self.0.to_string()))
            }
        }
    };
}

state_class!(TicTacToe, games::tic_tac_toe::TicTacToe, {
    #[new]
    fn new() -> Self {
        Self(Game::start(), Some(Record::default()))
    }

    fn __repr__(&self) -> String {
        format!("TicTacToe()\n{}", self.0)
    }
});

state_class!(ConnectFour, games::connect_four::ConnectFour, {
    #[new]
    fn new() -> Self {
        Self(Game::start(), Some(Record::default()))
    }

    fn __repr__(&self) -> String {
        format!("ConnectFour()\n{}", self.0)
    }
});

state_class!(Othello, games::othello::Othello, {
    #[new]
    fn new() -> Self {
        Self(Game::start(), Some(Record::default()))
    }

    fn __repr__(&self) -> String {
        format!("Othello()\n{}", self.0)
    }
});

state_class!(Chess, games::chess::Chess, {
    #[new]
    #[pyo3(signature = (fen = None))]
    fn new(fen: Option<Text>) -> PyResult<Self> {
        guarded(|| match fen {
            None => Ok(Self(Game::start(), Some(Record::default()))),
            Some(Text(fen)) => {
                let record = Record { start: Some(fen.as_str().into()), ..Record::default() };
                games::chess::Chess::from_fen(&fen).map(|state| Self(state, Some(record))).or_python()
            }
        })
    }

    /// Returns the FEN of the position.
    fn fen(&self) -> PyResult<String> {
        guarded(|| Ok(self.0.fen()))
    }

    /// Returns `action` in standard algebraic notation.
    fn san(&self, action: Number) -> PyResult<String> {
        guarded(|| {
            let action = legal_action(&self.0, action).or_python()?;
            self.0.san(action).or_python()
        })
    }

    /// Returns whether `action` captures, en passant included.
    fn is_capture(&self, action: Number) -> PyResult<bool> {
        guarded(|| {
            let action = legal_action(&self.0, action).or_python()?;
            Ok(self.0.is_capture(action))
        })
    }

    /// Returns whether `action` gives check.
    fn gives_check(&self, action: Number) -> PyResult<bool> {
        guarded(|| {
            let action = legal_action(&self.0, action).or_python()?;
            Ok(self.0.gives_check(action))
        })
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

    fn __repr__(&self) -> String {
        format!("Chess({:?})", self.0.fen())
    }
});

/// Restores a pickled state: plays `actions` (16-bit little-endian) from the FEN `start` or the initial state.
#[pyfunction]
#[pyo3(signature = (game, start, actions))]
pub fn restore(py: Python<'_>, game: &str, start: Option<&str>, actions: &[u8]) -> PyResult<Py<PyAny>> {
    guarded(|| {
        let pairs = actions.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(Error::InvalidArgument(format!("actions has {} bytes: every action has two", actions.len()))).or_python();
        }
        let actions: Vec<u16> = pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        match (game, start) {
            ("TicTacToe", None) => Ok(Py::new(py, TicTacToe::new().replay(&actions).or_python()?)?.into_any()),
            ("ConnectFour", None) => Ok(Py::new(py, ConnectFour::new().replay(&actions).or_python()?)?.into_any()),
            ("Othello", None) => Ok(Py::new(py, Othello::new().replay(&actions).or_python()?)?.into_any()),
            ("Chess", start) => Ok(Py::new(py, Chess::new(start.map(|fen| Text(fen.into())))?.replay(&actions).or_python()?)?.into_any()),
            _ => Err(Error::InvalidArgument(format!("there is no compiled game {game:?} that begins with {start:?}"))).or_python(),
        }
    })
}

/// Counts the move sequences of length `depth` from a chess position, ignoring draws by rule.
#[pyfunction]
pub fn perft(py: Python<'_>, state: &Chess, depth: Number) -> PyResult<u64> {
    match u8::try_from(depth.0) {
        Ok(plies) => guarded(|| Ok(py.detach(|| games::chess::perft(&state.0, plies.into())))),
        Err(_) => Err(Error::InvalidArgument(format!("depth must be from 0 to {}, not {}", u8::MAX, depth.0))).or_python(),
    }
}
