//! Monte Carlo Tree Search: one engine for many searches. This crate knows no Python; `bindings/` translates.
//! The modules, in the order in which they lean on each other:

pub mod elementary;
pub mod error;
pub mod parallel_vec;
pub mod prefetch;
pub mod random;
pub mod thread_pool;
#[cfg(feature = "rayon")]
pub mod thread_pool_ablation;
pub mod wide;

pub mod game;
pub mod games;
pub mod knowledge;
pub mod world;

pub mod tree;

pub mod eval;
pub mod halving;
pub mod probe;
pub mod score;
pub mod trace;

pub mod dirichlet;
pub mod noise;
pub mod parts;
pub mod policy;

pub mod backup;
pub mod expand;
pub mod experience;
pub mod journal;
pub mod leaves;
pub mod look;
pub mod select;

pub mod depths;
pub mod root;
pub mod scratch;
pub mod search;

pub mod abreast;
pub mod forest;
pub mod gather;
pub mod latent;
pub mod slots;

#[cfg(unix)]
pub mod fork;
