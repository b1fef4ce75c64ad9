//! What is looked at before a position is evaluated, or beside the tree: forced moves, a shallow minimax, mates in chess;
//! and Connect 4 solved.

pub mod connect_four;
pub mod endings;
pub mod forced;
pub mod mate;
pub mod minimax;
