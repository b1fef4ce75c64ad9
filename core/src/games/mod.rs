//! The compiled games.

pub mod chess;
pub mod connect_four;
pub mod othello;
pub mod tic_tac_toe;
