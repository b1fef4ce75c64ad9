//! The compiled games.

pub mod chess;
pub mod connect_four;
pub mod othello;
mod shared;
pub mod tic_tac_toe;
