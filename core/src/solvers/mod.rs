//! Exact solvers.

pub mod connect_four;
pub mod forced_moves;
pub mod minimax;
