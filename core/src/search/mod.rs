//! One tree search.

pub(crate) mod backup;
pub(crate) mod batch;
pub(crate) mod chance;
pub(crate) mod config;
pub(crate) mod evaluate;
pub(crate) mod expand;
pub(crate) mod expand_latent;
pub(crate) mod fields;
pub(crate) mod leaf_analysis;
pub(crate) mod move_ordering;
pub(crate) mod noise;
pub(crate) mod path;
pub(crate) mod pending;
pub(crate) mod priors;
pub(crate) mod root_answer;
pub(crate) mod root_state;
pub(crate) mod saved;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod sequential_halving;
pub(crate) mod simulate;
pub(crate) mod snapshot;
pub(crate) mod terms;
pub(crate) mod tree_search;
