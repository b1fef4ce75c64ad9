//! Observations as arrays: those of waiting leaves, and those along a line of moves.

use numpy::{PyArray1, PyArray2, PyArray4, PyArrayMethods};
use pondertree_core::forest::Forest;
use pondertree_core::games::analysis::LeafAnalysis;
use pondertree_core::games::{unpack_observation, Compiled, Game};
use pyo3::prelude::*;

use crate::errors::OrPython;
use crate::states::{legal_action, Number};

/// float32 [rows, planes, height, width].
pub fn compiled_observations<'py, G: Game + LeafAnalysis>(
    py: Python<'py>,
    forest: &Forest<Compiled<G>>,
) -> PyResult<Bound<'py, PyArray4<f32>>> {
    let states = forest.waiting_states();
    let size = (G::PLANES + G::SCALARS) * G::HEIGHT * G::WIDTH;
    let array = PyArray4::zeros(py, [states.len(), G::PLANES + G::SCALARS, G::HEIGHT, G::WIDTH], false);
    let (mut planes, mut scalars) = (vec![0; G::PLANES], vec![0.0; G::SCALARS]);
    for (state, out) in states.iter().zip(array.readwrite().as_slice_mut()?.chunks_exact_mut(size)) {
        state.pack_observation(&mut planes, &mut scalars);
        unpack_observation::<G>(&planes, &scalars, out);
    }
    Ok(array)
}

/// Bit planes, and the constants of scalar planes.
pub type Packed<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<f32>>);

/// The observations, packed.
pub fn compiled_packed<'py, G: Game + LeafAnalysis>(py: Python<'py>, forest: &Forest<Compiled<G>>) -> PyResult<Packed<'py>> {
    let states = forest.waiting_states();
    let planes = PyArray2::zeros(py, [states.len(), G::PLANES], false);
    let scalars = PyArray2::zeros(py, [states.len(), G::SCALARS], false);
    let (mut plane_rows, mut scalar_rows) = (planes.readwrite(), scalars.readwrite());
    let rows = plane_rows.as_slice_mut()?.chunks_exact_mut(G::PLANES).zip(scalar_rows.as_slice_mut()?.chunks_exact_mut(G::SCALARS));
    for (state, (planes, scalars)) in states.iter().zip(rows) {
        state.pack_observation(planes, scalars);
    }
    Ok((planes, scalars))
}

/// The observations before each move of a line, packed, and who is to play there.
pub type PackedLine<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<u8>>);

/// Plays `actions`, one after another; the position after the last of them is not among those observed.
pub fn compiled_line<'py, G: Game>(py: Python<'py>, start: &G, actions: &[u16]) -> PyResult<PackedLine<'py>> {
    let planes = PyArray2::zeros(py, [actions.len(), G::PLANES], false);
    let scalars = PyArray2::zeros(py, [actions.len(), G::SCALARS], false);
    let players = PyArray1::zeros(py, actions.len(), false);
    let mut state = start.clone();
    {
        let (mut planes, mut scalars, mut players) = (planes.readwrite(), scalars.readwrite(), players.readwrite());
        let (planes, scalars, players) = (planes.as_slice_mut()?, scalars.as_slice_mut()?, players.as_slice_mut()?);
        for (place, &action) in actions.iter().enumerate() {
            let row = &mut planes[place * G::PLANES..][..G::PLANES];
            state.pack_observation(row, &mut scalars[place * G::SCALARS..][..G::SCALARS]);
            players[place] = state.to_play();
            state.play(legal_action(&state, Number(action.into())).or_python()?);
        }
    }
    Ok((planes, scalars, players))
}
