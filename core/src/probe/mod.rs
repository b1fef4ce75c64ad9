//! What is looked at before a position is evaluated, or beside the tree: forced moves, and a shallow minimax.

pub mod forced;
pub mod minimax;
