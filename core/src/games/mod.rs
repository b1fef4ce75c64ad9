//! The traits of games, worlds and leaf analyses, and the compiled games.

pub mod analysis;
mod board_text;
pub mod chess;
pub mod connect_four;
mod game;
pub mod othello;
pub mod tic_tac_toe;
mod world;

pub use game::{unpack_observation, Action, Game};
pub use world::{Compiled, Latent, PythonGame, World};
