//! Python bindings of chess knowledge: exchanges, move categories, evaluation, quiescence, mates, endings.

use std::collections::HashMap;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pondertree_core::chess::endings::{self, Ending};
use pondertree_core::chess::mate::{self, Verdict};
use pondertree_core::chess::quiescence::Quiescence;
use pondertree_core::chess::{self, evaluation};
use pondertree_core::chess::{CategoryOptions, SeeValues};
use pyo3::prelude::*;

use crate::call::{guarded, interruptible};
use crate::errors::OrPython;
use crate::state::{states_of, with_legal, Chess, Number};

/// Returns the centipawns that a legal action wins for its mover in the exchange on its target square.
#[pyfunction]
pub fn see(state: &Chess, action: Number, values: [i32; 5]) -> PyResult<i32> {
    with_legal(&state.0, action, |action| {
        let [pawn, knight, bishop, rook, queen] = values;
        let values = SeeValues::new(pawn, knight, bishop, rook, queen);
        Ok(state.0.legal_move(action).map_or(0, |mv| chess::see(state.0.board(), mv, &values)))
    })
}

/// Returns (action, category) of each legal action.
#[pyfunction]
pub fn categorize(
    state: &Chess,
    mate: Option<u16>,
    killers: [Option<u16>; 2],
    history: HashMap<u16, f64>,
    see_threshold: i32,
) -> PyResult<Vec<(u16, u8)>> {
    guarded(|| {
        let options = CategoryOptions { mate, killers, see_threshold, ..CategoryOptions::default() };
        let mut found = Vec::new();
        chess::categorize(&state.0, &options, |action| history.get(&action).copied().unwrap_or(0.0), &mut found);
        Ok(found.into_iter().map(|one| (one.action, one.category as u8)).collect())
    })
}

/// The learned weights of move scores, shared between searches.
#[pyclass(frozen, module = "pondertree._core")]
pub struct MoveWeights(pub Arc<chess::MoveScores>);

#[pymethods]
impl MoveWeights {
    /// Creates the scores from weights in thousandths, one per feature; None uses the learned ones.
    #[new]
    fn new(weights: Option<Vec<i32>>) -> PyResult<Self> {
        guarded(|| {
            let scores = weights.map_or_else(|| Ok(chess::MoveScores::default()), |weights| chess::MoveScores::new(&weights));
            Ok(Self(Arc::new(scores.or_python()?)))
        })
    }

    /// Returns the weights in thousandths.
    #[getter]
    fn weights(&self) -> Vec<i32> {
        self.0.weights()
    }

    /// Returns (action, factor of its prior) of each legal action.
    fn factors(&self, state: &Chess, see_threshold: i32) -> PyResult<Vec<(u16, f64)>> {
        guarded(|| {
            let moves = categorized(state, see_threshold);
            let mut factors = Vec::with_capacity(moves.len());
            self.0.factors(&state.0, &moves, |factor| factors.push(factor));
            Ok(moves.iter().map(|one| one.action).zip(factors).collect())
        })
    }

    /// Returns (action, category, [(feature, share)]) of each legal action.
    #[staticmethod]
    fn features(state: &Chess, see_threshold: i32) -> PyResult<Vec<MoveFeatures>> {
        guarded(|| {
            let moves = categorized(state, see_threshold);
            let context = chess::MoveFeatureContext::new(&state.0);
            let features = |one: &chess::Categorized| {
                let mut found = Vec::new();
                context.features(one, |feature, share| found.push((feature, share)));
                (one.action, one.category as u8, found)
            };
            Ok(moves.iter().map(features).collect())
        })
    }
}

/// An action, its category, and its features with their shares.
type MoveFeatures = (u16, u8, Vec<(usize, f32)>);

/// Categorizes the legal moves without killers and history.
fn categorized(state: &Chess, see_threshold: i32) -> Vec<chess::Categorized> {
    let mut found = Vec::new();
    chess::categorize(&state.0, &CategoryOptions { see_threshold, ..CategoryOptions::default() }, |_| 0.0, &mut found);
    found
}

/// The weights of the static evaluation, shared between searches.
#[pyclass(frozen, module = "pondertree._core")]
pub struct PestoWeights(pub Arc<evaluation::Pesto>);

#[pymethods]
impl PestoWeights {
    /// `weights` has the fields that differ from the defaults, each as a list of numbers, the middlegame's first.
    #[new]
    fn new(weights: HashMap<String, Vec<i32>>, scale: f64) -> PyResult<Self> {
        guarded(|| {
            let mut all = evaluation::Weights::default();
            for (name, numbers) in &weights {
                all.set(name, numbers).or_python()?;
            }
            Ok(Self(Arc::new(evaluation::Pesto::new(all, scale).or_python()?)))
        })
    }

    /// Returns the fields in order: name, numbers.
    #[staticmethod]
    fn defaults() -> Vec<(&'static str, Vec<i32>)> {
        evaluation::Weights::default().fields()
    }

    /// Returns PeSTO's public weights in the same form, and their scale.
    #[staticmethod]
    fn published() -> (Vec<(&'static str, Vec<i32>)>, f64) {
        let pesto = evaluation::Pesto::published();
        (pesto.weights().fields(), pesto.scale())
    }

    /// Returns the default scale.
    #[staticmethod]
    fn default_scale() -> f64 {
        evaluation::Pesto::default().scale()
    }

    /// Returns (centipawns for the side to move, phase).
    fn eval(&self, state: &Chess) -> PyResult<(i32, i32)> {
        guarded(|| Ok(self.0.eval_plus_game_phase(state.0.board())))
    }

    /// Returns (centipawns for the side to move, visited positions) of a quiescence search.
    fn quiescence(&self, state: &Chess, max_depth: u32) -> PyResult<(i32, u32)> {
        guarded(|| {
            let quiet = Quiescence { max_depth, ..Quiescence::default() }.search(state.0.board(), &self.0);
            Ok((quiet.score, quiet.nodes))
        })
    }

    /// Returns the value of a position for the side to move, from -1 to 1.
    fn value(&self, state: &Chess, quiescence: bool) -> PyResult<f64> {
        guarded(|| Ok(chess::value(&state.0, &self.0, quiescence)))
    }

    /// Returns the features of many positions, side to move minus opponent, as sparse rows.
    fn features<'py>(&self, py: Python<'py>, states: Vec<Bound<'py, PyAny>>) -> PyResult<Counts<'py>> {
        guarded(|| {
            let states = positions(&states)?;
            let (mut starts, mut found, mut phases) = (vec![0], Vec::new(), Vec::new());
            py.detach(|| {
                for state in &states {
                    let board = state.get().0.board();
                    evaluation::count_terms(board, &mut found);
                    starts.push(found.len() as i64);
                    phases.push(self.0.eval_plus_game_phase(board).1);
                }
            });
            let (columns, counts): (Vec<i32>, Vec<i32>) = found.into_iter().map(|(term, count)| (term as i32, count)).unzip();
            Ok((starts.into_pyarray(py), columns.into_pyarray(py), counts.into_pyarray(py), phases.into_pyarray(py)))
        })
    }

    /// Returns the phase of a pure middlegame; 0 is a pure endgame.
    #[getter]
    fn full_phase(&self) -> i32 {
        self.0.full_phase()
    }

    /// Returns the centipawns of many positions, each for its side to move.
    fn eval_many<'py>(&self, py: Python<'py>, states: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guarded(|| {
            let states = positions(&states)?;
            let scores: Vec<i64> = py.detach(|| states.iter().map(|state| self.0.eval(state.get().0.board()).into()).collect());
            Ok(scores.into_pyarray(py))
        })
    }

    /// Returns the values of many positions from -1 to 1, each for its side to move.
    fn values<'py>(&self, py: Python<'py>, states: Vec<Bound<'py, PyAny>>, quiescence: bool) -> PyResult<Bound<'py, PyArray1<f64>>> {
        guarded(|| {
            let states = positions(&states)?;
            let values: Vec<f64> = py.detach(|| states.iter().map(|state| chess::value(&state.get().0, &self.0, quiescence)).collect());
            Ok(values.into_pyarray(py))
        })
    }
}

/// Sparse rows: offsets (one more than rows), terms, counts, phases.
type Counts<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>);

fn positions(states: &[Bound<'_, PyAny>]) -> PyResult<Vec<Py<Chess>>> {
    states_of(states, "Pesto values positions of chess alone (pondertree.games.Chess)")
}

/// Returns (moves, the line's actions, visited positions): positive moves to a mate for the side to move, negative ones to a
/// mate against it, 0 without a proof. `stop()` is polled.
#[pyfunction]
#[pyo3(signature = (state, depth, budget, stop = None))]
pub fn mate_search(
    py: Python<'_>,
    state: &Chess,
    depth: u32,
    budget: Option<u64>,
    stop: Option<Py<PyAny>>,
) -> PyResult<(i64, Vec<u16>, u64)> {
    guarded(|| {
        let asked = |py: Python<'_>| stop.as_ref().map_or(Ok(false), |stop| stop.call0(py)?.is_truthy(py));
        let answer = interruptible(py, asked, |stop| mate::mate_search(&state.0, depth, budget, stop))?.or_python()?;
        let moves = match answer.verdict {
            Verdict::MateIn(n) => i64::from(n),
            Verdict::MatedIn(n) => -i64::from(n),
            Verdict::Unknown => 0,
        };
        Ok((moves, answer.line, answer.nodes))
    })
}

/// Searches for a mate by checks alone, at most `depth` moves long. Returns (moves, first action), or None without a proof.
#[pyfunction]
#[pyo3(signature = (state, depth, budget))]
pub fn checks_first(py: Python<'_>, state: &Chess, depth: u32, budget: u64) -> PyResult<Option<(u32, u16)>> {
    guarded(|| Ok(py.detach(|| mate::checks_first(&state.0, depth, budget))))
}

/// Returns (1, 0 or -1 for the side to move, plies to mate) from the table of an elementary ending; None without a table, or
/// where a draw by rule may intervene.
#[pyfunction]
pub fn ending(py: Python<'_>, state: &Chess) -> PyResult<Option<(i8, u16)>> {
    guarded(|| {
        let known = py.detach(|| endings::ending(&state.0));
        Ok(known.map(|known| match known {
            Ending::Wins(plies) => (1, plies),
            Ending::Loses(plies) => (-1, plies),
            Ending::Drawn => (0, 0),
        }))
    })
}

/// Returns the actions up to the mate by the table with the best play of both sides; empty without a mate.
#[pyfunction]
pub fn ending_line(py: Python<'_>, state: &Chess) -> PyResult<Vec<u16>> {
    guarded(|| Ok(py.detach(|| endings::line(&state.0))))
}
