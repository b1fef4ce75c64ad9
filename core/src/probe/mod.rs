//! What is looked at before a position is evaluated, or beside the tree: forced moves, a shallow minimax, mates in chess.

pub mod forced;
pub mod mate;
pub mod minimax;
