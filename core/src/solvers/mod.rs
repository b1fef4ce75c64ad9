//! Searches of their own: Connect 4 solved, a shallow minimax, forced moves.

pub mod connect_four;
pub mod forced_moves;
pub mod minimax;
