//! One tree search.

pub mod backup;
pub mod batch;
pub mod config;
pub mod evaluate;
pub mod expand;
pub mod expand_latent;
pub mod interleaved;
pub mod leaf_analysis;
pub mod move_ordering;
pub mod noise;
pub mod path;
pub mod pending;
pub mod priors;
pub mod root_answer;
pub mod score;
pub mod scratch;
pub mod select;
pub mod sequential_halving;
pub mod tree_search;
