//! Python bindings of the compiled games' states.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pondertree_core::games::{Compiled, Game, CHANCE};
use pondertree_core::{for_each_game, named, playout, Error, PlayoutPolicy, Purpose, Random};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString, PyType};
use pyo3::{Borrowed, PyClass};

use crate::arrays::{compiled_line, observations, PackedLine};
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

/// Returns whether `state` is a chance node; the game must not be over.
fn is_chance<G: Game>(state: &G) -> bool {
    G::HAS_CHANCE && state.to_play() == CHANCE
}

/// Returns a number per player of a result, or reward, of player 0.
pub fn per_player<G: Game>(first: f64) -> Vec<f64> {
    // Not -0.0.
    (0..G::NUM_PLAYERS).map(|player| if player == 0 { first } else { -first + 0.0 }).collect()
}

/// Returns the action `number` if it is legal in `state`.
pub fn legal_action<G: Game>(state: &G, Number(number): Number) -> Result<u16, Error> {
    if state.outcome().is_some() {
        return Err(Error::GameOver(format!("the game is over: action {number} cannot be played")));
    }
    let in_range = |action: u16| is_chance(state) || usize::from(action) < state.dimensions().num_actions;
    let action = u16::try_from(number).ok().filter(|&action| in_range(action) && state.is_legal(action));
    action.ok_or_else(|| {
        let texts: Vec<String> = state.legal().iter().take(40).map(|&a| format!("{a} ({})", state.action_to_string(a))).collect();
        let (one, all) = if is_chance(state) { ("outcome", "the outcomes") } else { ("action", "legal actions") };
        Error::InvalidAction(format!("{one} {number} is not legal here; {all}: {}", texts.join(", ")))
    })
}

/// Runs `work` on the action `number` of a state, which must be legal.
pub fn with_legal<G: Game, T>(state: &G, number: Number, work: impl FnOnce(u16) -> PyResult<T>) -> PyResult<T> {
    guarded(|| work(legal_action(state, number).or_python()?))
}

/// Extracts states of one game; the error of another one names its index and says what is `right`.
pub fn states_of<S: PyClass>(states: &[Bound<'_, PyAny>], right: &str) -> PyResult<Vec<Py<S>>> {
    let one = |(row, state): (usize, &Bound<'_, PyAny>)| match state.cast::<S>() {
        Ok(state) => Ok(state.clone().unbind()),
        Err(_) => {
            let class = state.get_type().name()?;
            Err(Error::InvalidArgument(format!("states[{row}] is of the class {class}: {right}"))).or_python()
        }
    };
    states.iter().enumerate().map(one).collect()
}

/// The arguments of constructors that are numbers.
const NUMBERS: [&str; 3] = ["seed", "size", "target"];

/// Returns the argument `name` of a constructor, which names the start: text, or a number.
fn start_text(given: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    match (given.extract(), given.extract::<i64>()) {
        (Ok(Text(text)), _) => Ok(text),
        (_, Ok(number)) if NUMBERS.contains(&name) && !given.is_instance_of::<PyBool>() => Ok(number.to_string()),
        // The game refuses the text of anything but a number; an integer of thousands of digits has none.
        _ if NUMBERS.contains(&name) => Ok(given.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string())),
        (Err(_), _) => Err(PyTypeError::new_err(format!("{name} must be text, not {}", given.get_type().name()?))),
    }
}

/// The history of a state, for pickle. Replaying it restores the whole state, repetitions included, and checks every action.
#[derive(Clone, Default)]
pub struct Record {
    /// The argument that names the first position; None is the initial state.
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

/// The Python class of a compiled game.
pub trait StateClass: PyClass {
    /// The compiled game.
    type Inner: Game;
    /// The arguments of the constructor: one in games with several starts, else none.
    const START: &'static [&'static str];

    /// Creates the start that the argument names, or the initial state.
    fn start(named: Option<&str>) -> Result<Self, Error>;

    /// Plays `actions`.
    fn replay(self, actions: &[u16]) -> Result<Self, Error>;
}

/// Defines the Python class of a compiled game.
macro_rules! state_class {
    ([$name:ident, $game:ty $(, $start:ident $signature:literal $doc:literal)?]) => {
        #[doc = concat!("A state of the compiled game ", stringify!($name), ": an immutable value. Calling the class gives the start.")]
        $(#[doc = concat!("\n", $doc)])?
        #[pyclass(frozen, module = "pondertree.games", skip_from_py_object)]
        #[derive(Clone)]
        pub struct $name(pub $game, Option<Record>);

        impl StateClass for $name {
            type Inner = $game;
            const START: &'static [&'static str] = &[$(stringify!($start))?];

            fn start(named: Option<&str>) -> Result<Self, Error> {
                let state = named.map_or_else(|| Ok(Game::start()), <$game>::parse_start)?;
                Ok(Self(state, Some(Record { start: named.map(Arc::from), actions: Vec::new() })))
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

        impl $name {
            /// Wraps a state from a search, which has no history.
            pub fn wrap(state: $game) -> Self {
                Self(state, None)
            }

            fn after(&self, action: Number) -> Result<Self, Error> {
                let action = legal_action(&self.0, action)?;
                Ok(Self(self.0.after(action), self.1.as_ref().map(|record| record.and(action))))
            }
        }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = ($($start = None)?)$(, text_signature = $signature)?)]
            fn new($($start: Option<&Bound<'_, PyAny>>)?) -> PyResult<Self> {
                guarded(|| {
                    let named: Option<String> = None$(.or($start.map(|given| start_text(given, stringify!($start))).transpose()?))?;
                    Self::start(named.as_deref()).or_python()
                })
            }

            /// Returns the legal actions, at a chance node the outcomes; none if the game is over.
            fn legal_actions(&self) -> PyResult<Vec<u16>> {
                guarded(|| Ok(self.0.legal()))
            }

            /// Returns the state after `action`, at a chance node an outcome.
            fn play(&self, action: Number) -> PyResult<Self> {
                guarded(|| self.after(action).or_python())
            }

            /// The player to move, from 0; `pondertree.CHANCE` (-1) at a chance node.
            #[getter]
            fn to_play(&self) -> i32 {
                if is_chance(&self.0) {
                    -1
                } else {
                    self.0.to_play().into()
                }
            }

            /// Whether the game is over.
            #[getter]
            fn is_terminal(&self) -> PyResult<bool> {
                guarded(|| Ok(self.0.outcome().is_some()))
            }

            /// Returns the result per player: 1 won, 0 drawn, -1 lost. Zeros before the end, and in games with rewards.
            fn returns(&self) -> PyResult<Vec<f64>> {
                guarded(|| Ok(per_player::<$game>(self.0.outcome().unwrap_or(0).into())))
            }

            /// Size of the action space.
            #[getter]
            fn num_actions(&self) -> usize {
                self.0.dimensions().num_actions
            }

            /// Number of players.
            #[getter]
            fn num_players(&self) -> usize {
                <$game>::NUM_PLAYERS
            }

            /// Whether returns sum to 0.
            #[getter]
            fn zero_sum(&self) -> bool {
                <$game>::NUM_PLAYERS == 2 && !<$game>::HAS_REWARDS
            }

            /// Returns the observation, float32 planes for the player to move.
            fn observation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                guarded(|| observations(py, &[&self.0])?.get_item(0))
            }

            /// The shape of an observation: planes, height, width.
            #[getter]
            fn _observation_shape(&self) -> (usize, usize, usize) {
                let dimensions = self.0.dimensions();
                (dimensions.planes + dimensions.scalars, dimensions.height, dimensions.width)
            }

            /// Returns the symmetries of the board: permutations of cells and of actions, the identity first.
            fn symmetries<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)>> {
                let column = |numbers: Vec<u16>| PyArray1::from_iter(py, numbers.into_iter().map(i64::from));
                guarded(|| Ok(self.0.symmetries().into_iter().map(|one| (column(one.cells), column(one.actions))).collect()))
            }

            /// Plays `actions` (uint16) and returns the packed observation before each, and the players to move.
            fn _line<'py>(&self, py: Python<'py>, actions: PyReadonlyArray1<'py, u16>) -> PyResult<PackedLine<'py>> {
                guarded(|| compiled_line(py, &self.0, actions.as_slice()?))
            }

            /// Formats `action`.
            fn action_to_string(&self, action: Number) -> PyResult<String> {
                with_legal(&self.0, action, |action| Ok(self.0.action_to_string(action)))
            }

            /// Parses an action.
            fn parse_action(&self, text: Text) -> PyResult<u16> {
                guarded(|| self.0.parse_action(&text.0).or_python())
            }

            /// Plays a random playout with the numbers of `key`; returns the result for player 0 (None if cut off), the sum of their
            /// rewards and the last state.
            #[pyo3(signature = (key, policy, max_depth))]
            fn _playout(&self, key: u64, policy: &str, max_depth: Option<u32>) -> PyResult<(Option<i8>, f64, Self)> {
                guarded(|| {
                    let policy = named("policy", Some(policy), PlayoutPolicy::NAMES).or_python()?;
                    let mut state = self.0.clone();
                    let mut random = Random::new(key, Purpose::Playout);
                    let played = playout::<Compiled<$game>>(&mut state, policy, &mut random, max_depth.unwrap_or(u32::MAX));
                    Ok((played.result, played.rewards, Self::wrap(state)))
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

            /// Returns the board as SVG, for notebooks.
            fn _repr_svg_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                slf.py().import("pondertree.games.board_svg")?.call_method1("board_svg", (slf,))
            }

            fn __repr__(&self) -> PyResult<String> {
                guarded(|| Ok(self.0.represent(stringify!($name))))
            }
        }
    };
}

macro_rules! state_classes {
    ($($entry:tt)*) => { $(state_class! { $entry })* };
}

for_each_game!(state_classes);

/// A compiled game, as `pondertree.game.CompiledGame` documents it.
#[derive(IntoPyObject)]
pub struct Registered<'py> {
    name: &'static str,
    state: Bound<'py, PyType>,
    title: &'static str,
    command: &'static str,
    aliases: Vec<&'static str>,
    players: Vec<&'static str>,
    opening_plies: u32,
    opening_start: Option<&'static str>,
    start: Option<&'static str>,
    board: &'static str,
    policy_planes: usize,
    has_rewards: bool,
    max_outcomes: usize,
}

/// Returns the compiled games.
pub fn registered(py: Python<'_>) -> Vec<Registered<'_>> {
    fn entry<S: StateClass>(py: Python<'_>) -> Registered<'_> {
        Registered {
            name: S::Inner::NAME,
            state: py.get_type::<S>(),
            title: S::Inner::TITLE,
            command: S::Inner::COMMAND,
            aliases: S::Inner::ALIASES.to_vec(),
            players: S::Inner::PLAYERS.to_vec(),
            opening_plies: S::Inner::OPENING_PLIES,
            opening_start: S::Inner::OPENING_START,
            start: S::START.first().copied(),
            board: S::Inner::BOARD.name(),
            policy_planes: S::Inner::POLICY_PLANES,
            has_rewards: S::Inner::HAS_REWARDS,
            max_outcomes: S::Inner::MAX_OUTCOMES,
        }
    }
    macro_rules! entries {
        ($([$name:ident $($rest:tt)*])*) => { vec![$(entry::<$name>(py)),*] };
    }
    for_each_game!(entries)
}

/// Restores a pickled state: plays `actions` (16-bit little-endian) from the named start or the initial state.
#[pyfunction]
#[pyo3(signature = (game, start, actions))]
pub fn restore(py: Python<'_>, game: &str, start: Option<&str>, actions: &[u8]) -> PyResult<Py<PyAny>> {
    guarded(|| {
        let pairs = actions.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(Error::InvalidArgument(format!("actions has {} bytes: every action has two", actions.len()))).or_python();
        }
        let actions: Vec<u16> = pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        macro_rules! restore_from {
            ($([$name:ident $($rest:tt)*])*) => {
                match game {
                    $(stringify!($name) => Ok(Py::new(py, $name::start(start).and_then(|state| state.replay(&actions)).or_python()?)?.into_any()),)*
                    _ => Err(Error::InvalidArgument(format!("there is no compiled game {game:?}"))).or_python(),
                }
            };
        }
        for_each_game!(restore_from)
    })
}
