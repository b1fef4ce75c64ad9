//! The traits of games, worlds and leaf analyses, and the compiled games.

pub mod analysis;
mod board_text;
pub mod breakthrough;
pub mod chess;
pub mod connect_four;
mod game;
pub mod hex;
pub mod othello;
mod ranked_bits;
pub mod tic_tac_toe;
mod world;

pub use game::{plain_playout, unpack_observation, Action, BoardStyle, Dimensions, Game, Playout, Symmetry, CHANCE};
pub use world::{Compiled, Latent, PythonGame, World};

/// The registry of compiled games: calls `$then!` with its arguments and, for each game, the class in Python, the state, and in games
/// with several starts the argument of the constructor, which `Game::parse_start` reads, with the signature and its documentation.
#[macro_export]
macro_rules! for_each_game {
    ($then:ident $($arguments:tt)*) => {
        $then! { $($arguments)*
            [TicTacToe, $crate::games::tic_tac_toe::TicTacToe]
            [ConnectFour, $crate::games::connect_four::ConnectFour]
            [Othello, $crate::games::othello::Othello]
            [Breakthrough, $crate::games::breakthrough::Breakthrough]
            [Hex, $crate::games::hex::Hex, size "(size=11)" "`Hex(size)` is a rhombus of `size` x `size` hexagons, from 1 to 13. \
                Player 0 (X) connects the top edge with the bottom, player 1 (O) the left edge with the right. Action \
                `row * size + column` is written as column and row from the top left: `b3`."]
            [Chess, $crate::games::chess::Chess, fen "(fen=None)" "`Chess(fen)` is the position of a FEN. Actions are written in UCI notation: `e2e4`."]
        }
    };
}
