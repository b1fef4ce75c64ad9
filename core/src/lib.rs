//! Monte Carlo Tree Search: one engine for many searches. This crate knows no Python; `bindings/` translates.
//!
//! Layers, each of which uses only those above it in this list:
//!
//! - `runtime`: random numbers, vector math, SIMD dispatch, threads.
//! - `memory`: pages, slabs and blocks, the allocator of the tree.
//! - `games`: the traits of games and worlds, and the compiled games.
//! - `tree`: one search tree.
//! - `solvers`: exact and shallow searches beside the tree.
//! - `chess`: evaluation, mates and endings; no generic code uses it.
//! - `search`: one tree search.
//! - `forest`: many tree searches in batches.

pub mod error;
pub mod runtime;

pub mod memory;

pub mod games;
pub mod tree;

pub mod chess;
pub mod solvers;

pub mod search;

pub mod forest;

#[cfg(unix)]
pub mod fork;
