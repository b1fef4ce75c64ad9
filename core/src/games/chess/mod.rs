//! Chess, with the rules of FIDE, on the move generator of the crate `cozy-chess`.
//!
//! - `state.rs`: the position with its history, and playing a move.
//! - `rules.rs`: how a game ends.
//! - `fen.rs`: reading and writing FEN.
//! - `action.rs`: moves as numbers from 0 to 4671.
//! - `notation.rs`, `san.rs`: moves as text.
//! - `observation.rs`: the planes a network sees.
//! - `playout.rs`: random moves and random games.
//! - `perft.rs`: counting move sequences, the check of a move generator.
//!
//! Player 0 is White.

pub(crate) mod action;
mod display;
mod fen;
mod notation;
mod observation;
pub(crate) mod perft;
mod playout;
mod rules;
mod san;
mod state;

pub use perft::perft;
pub use rules::Termination;
pub(crate) use rules::{has_move, is_insufficient};
pub(crate) use state::captures;
pub use state::Chess;

use cozy_chess::Color;

use crate::error::Error;
use crate::games::{Action, Game};
use crate::runtime::random::Random;

impl Game for Chess {
    const NAME: &'static str = "chess";
    const NUM_ACTIONS: usize = action::NUM_ACTIONS;
    const MAX_LEGAL: usize = 218;
    const PLANES: usize = observation::PLANES;
    const SCALARS: usize = observation::SCALARS;
    const HEIGHT: usize = 8;
    const WIDTH: usize = 8;

    fn start() -> Self {
        Self::default()
    }

    #[inline]
    fn to_play(&self) -> u8 {
        self.board().side_to_move() as u8
    }

    fn outcome(&self) -> Option<i8> {
        self.termination().map(|termination| self.result_of(termination))
    }

    fn outcome_in_search(&self) -> Option<i8> {
        self.termination_in_search().map(|termination| self.result_of(termination))
    }

    /// The order is that of the move generator: pawns, knights, bishops, rooks, queens, king; within a kind first the pieces
    /// that are not pinned, then the pinned ones, each from a1 to h8 (en passant after the other pawn moves); the targets of
    /// a piece from a1 to h8, promotions as knight, bishop, rook, queen; castling stands where the rook stands.
    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.is_drawn_automatically() {
            return;
        }
        let board = self.board();
        board.generate_moves(|moves| {
            actions.extend(moves.into_iter().map(|mv| action::encode(board, mv)));
            false
        });
    }

    fn is_legal(&self, action: Action) -> bool {
        self.legal_move(action).is_some()
    }

    /// An action that no piece can make leaves the state as it is.
    fn play(&mut self, action: Action) {
        if let Some(mv) = action::decode(self.board(), action) {
            self.play_move(mv);
        }
    }

    fn play_random(&mut self, random: &mut Random) {
        playout::play_random(self, random);
    }

    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Option<i8> {
        playout::playout(self, random, max_depth)
    }

    /// The move in the notation of UCI: `e2e4`, `e7e8q`, castling as `e1g1`.
    fn action_to_string(&self, action: Action) -> String {
        notation::uci(self.board(), action)
    }

    /// Reads the notation of UCI and standard algebraic notation.
    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        notation::parse(self, text)
    }

    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        observation::pack(self, planes, scalars);
    }
}

impl Chess {
    /// The result for White of an end of this game: who is checkmated has lost, all else is a draw.
    fn result_of(&self, termination: Termination) -> i8 {
        match (termination, self.board().side_to_move()) {
            (Termination::Checkmate, Color::White) => -1,
            (Termination::Checkmate, Color::Black) => 1,
            _ => 0,
        }
    }
}
