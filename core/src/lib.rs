//! Monte Carlo Tree Search: one engine for many searches. This crate knows no Python; `bindings/` translates.

pub mod error;
pub mod game;
pub mod games;
pub mod random;
