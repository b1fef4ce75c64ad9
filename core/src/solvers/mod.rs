//! Solvers: Connect 4, depth-limited minimax, forced moves.

pub mod connect_four;
pub mod forced_moves;
pub mod minimax;
