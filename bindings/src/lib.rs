//! The Python module `pondertree._core`: converts arguments, arrays and errors; polls signals; replays pickled states.

#![allow(unreachable_pub, reason = "a cdylib exports nothing to Rust: `pub` marks what Python sees")]

#[cfg(feature = "rayon")]
mod ablation;
mod arrays;
mod call;
mod chess;
mod config;
mod errors;
mod forest;
mod random;
mod solvers;
mod state;
mod state_methods;
mod tree_view;

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// The compiled part of Pondertree.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    /// During the import no other thread can be inside the engine.
    #[pymodule_init]
    fn initialize(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(unix)]
        pondertree_core::handle_forks();
        let fields: Vec<&str> = pondertree_core::SearchConfig::FIELDS.iter().copied().chain([super::config::ANALYSIS]).collect();
        module.add("CONFIG_FIELDS", pyo3::types::PyTuple::new(module.py(), fields)?)?;
        module.add("RULES", pondertree_core::Rule::USE_OF_PRIORS.into_py_dict(module.py())?)?;
        module.add("GAMES", super::state::registered(module.py()))?;
        module.add("LARGEST_REWARD", pondertree_core::LARGEST_REWARD)
    }

    #[cfg(feature = "rayon")]
    #[pymodule_export]
    use super::ablation::{_choose_thread_pool, _time_jobs};
    #[pymodule_export]
    use super::call::{_panic_for_tests, usable_cpus};
    #[pymodule_export]
    use super::chess::{categorize, see, MoveWeights, PestoWeights};
    #[pymodule_export]
    use super::chess::{checks_first, ending, ending_line, mate_search};
    #[pymodule_export]
    use super::forest::Forest;
    #[pymodule_export]
    use super::random::{PlayoutPause, PlayoutRandom};
    #[pymodule_export]
    use super::solvers::solve_connect_four;
    #[pymodule_export]
    use super::state::{restore, Chess};
    #[pymodule_export]
    use super::state_methods::perft;
    #[pymodule_export]
    use super::tree_view::TreeView;
}
