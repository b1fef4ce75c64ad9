//! Monte Carlo Tree Search: one engine for many searches. Independent of Python, which `bindings/` connects.
//!
//! Layers; each uses only those it names (`scripts/check_layers.py`):
//!
//! - `runtime`: random numbers, vector math, SIMD dispatch, thread pool.
//! - `memory`: pages, slabs and blocks of the trees.
//! - `games` (runtime): the traits of games and worlds, the compiled games.
//! - `tree` (memory): the arena of one search tree, its undo journal.
//! - `solvers` (games, runtime): Connect 4, depth-limited minimax, forced moves.
//! - `chess` (games, runtime): evaluation, exchanges, move categories, mates, endings. No other folder uses it.
//! - `search` (tree, games, solvers, runtime): one tree search.
//! - `forest` (search, tree, games, solvers, runtime): many tree searches in batches.
//!
//! This file re-exports the public API; it and `fork` may use every layer.

mod error;
mod forest;
#[cfg(unix)]
mod fork;
mod memory;
mod runtime;
mod search;
mod tree;

pub mod chess;
pub mod games;
pub mod solvers;

pub use error::Error;
pub use forest::latent::Root as LatentRoot;
pub use forest::offload::{ExportedRoots, OffloadResults};
pub use forest::pipeline::{BatchStatus, PipelineTimes, Responses};
pub use forest::pipeline_latent::Columns as ResponseColumns;
pub use forest::row_layout::RowLayout;
pub use forest::rows::Row;
pub use forest::Forest;
#[cfg(unix)]
pub use fork::handle_forks;
pub use runtime::random::{fold, tree_key, Purpose, Random};
pub use runtime::thread_pool::parallel_for;
#[cfg(feature = "rayon")]
pub use runtime::thread_pool_ablation::{choose as choose_thread_pool, Backend as ThreadPoolBackend};
pub use search::backup::edge_discount;
pub use search::batch::StepResult;
pub use search::chance::ChanceMode;
pub use search::config::{SearchConfig, WorldConfig, LARGEST_REWARD};
pub use search::evaluate::{playout, LeafKind, PlayoutPolicy};
pub use search::expand_latent::ModelResponse;
pub use search::fields::{named, Fields};
pub use search::noise::Noise;
pub use search::path::{TraceRow, TraceStep};
pub use search::priors::{Policy, PolicyKind};
pub use search::root_answer::GumbelPolicy;
pub use search::root_state::RootState;
pub use search::saved::SearchColumns;
pub use search::score::*;
pub use search::sequential_halving::Schedule;
pub use search::snapshot::{Snapshot, SnapshotColumns};
pub use search::terms::{ChoiceTerms, Term, Terms};
pub use search::tree_search::{Stop, TreeSearch};
pub use tree::{
    Backup, Edge, Edges, Link, Node, NodeIndex, Shape, Statistics, Tree, TreeColumns, WindowOptions, WindowRow, ROOT, UNPROVEN,
};
