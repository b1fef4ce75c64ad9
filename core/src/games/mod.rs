//! The traits of games, worlds and leaf analyses, and the compiled games.

pub mod analysis;
pub mod backgammon;
mod backgammon_checkers;
mod backgammon_text;
mod board_text;
pub mod breakthrough;
pub mod chess;
pub mod connect_four;
mod game;
pub mod hex;
pub mod othello;
pub mod pig;
mod pig_playout;
mod ranked_bits;
pub mod tic_tac_toe;
pub mod twenty_forty_eight;
mod twenty_forty_eight_moves;
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
            [TwentyFortyEight, $crate::games::twenty_forty_eight::TwentyFortyEight, seed "(seed=0)" "`TwentyFortyEight(seed)` is the start \
                with two tiles that `seed` draws, `TwentyFortyEight(\"empty\")` the empty board before them, a chance node; 16 tiles are \
                any board: `\"2 . . 4 ...\"`. Actions are \
                `up`, `right`, `down`, `left`, 0 to 3; outcome `2 * (row * 4 + column) + is_four` is written as cell and tile: `b3=2`."]
            [Backgammon, $crate::games::backgammon::Backgammon, start "(start=None)" "`Backgammon(start)` begins with a roll of X, by default \
                `\"3-1\"`; `\"roll\"` is the chance node before the opening roll, `\"XGID=...\"` any position. An action plays both dice and \
                is written as `8/5 6/5`, `bar/20`, `6/off`, points counted by the mover; a double is two actions. Outcomes are written \
                as `3-1`."]
            [Pig, $crate::games::pig::Pig, target "(target=100)" "`Pig(target)` is a race to `target` points, from 1 to 1000. Actions \
                are `roll` (0) and `hold` (1), outcomes the faces of the die, 1 to 6."]
            [Chess, $crate::games::chess::Chess, fen "(fen=None)" "`Chess(fen)` is the position of a FEN. Actions are written in UCI notation: `e2e4`."]
        }
    };
}
