//! The Python module `pondertree._core`: it translates between Python and the engine, and does nothing else.

mod any;
mod chess_tools;
mod columns;
mod connect_four;
mod errors;
mod forest;
mod forest_answers;
mod forest_elsewhere;
mod forest_groups;
mod forest_latent;
mod latent;
mod mate;
mod parts;
mod random;
mod states;
mod view;

use pyo3::prelude::*;

/// The compiled part of Pondertree.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::chess_tools::{categorize, see, MoveWeights, PestoWeights};
    #[pymodule_export]
    use super::connect_four::solve_connect_four;
    #[pymodule_export]
    use super::forest::Forest;
    #[pymodule_export]
    use super::mate::{checks_first, ending, ending_line, mate_search};
    #[pymodule_export]
    use super::random::PlayoutRandom;
    #[pymodule_export]
    use super::states::{perft, restore, Chess, ConnectFour, Othello, TicTacToe};
    #[pymodule_export]
    use super::view::TreeView;
}
