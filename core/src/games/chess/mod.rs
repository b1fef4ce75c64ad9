//! Chess under the FIDE rules, on the move generator of `cozy-chess`. Player 0 is White.

pub(crate) mod action;
mod display;
mod fen;
#[cfg(test)]
pub(crate) mod fixtures;
mod notation;
mod observation;
mod perft;
mod playout;
mod rules;
mod san;
mod state;

pub use perft::perft;
pub use rules::Termination;
pub(crate) use rules::{has_move, is_insufficient};
pub use state::Chess;
pub(crate) use state::{board_after, captures, is_castling};

use cozy_chess::Color;

use crate::error::Error;
use crate::games::{Action, BoardStyle, Dimensions, Game, Playout};
use crate::runtime::random::Random;

impl Game for Chess {
    const NAME: &'static str = "chess";
    const TITLE: &'static str = "Chess";
    const PLAYERS: &'static [&'static str] = &["White", "Black"];
    const OPENING_PLIES: u32 = 8;
    const MAX_LEGAL: usize = 218;
    const POLICY_PLANES: usize = action::NUM_ACTIONS / 64;
    const BOARD: BoardStyle = BoardStyle::Checkered;

    fn start() -> Self {
        Self::default()
    }

    fn parse_start(fen: &str) -> Result<Self, Error> {
        Self::from_fen(fen)
    }

    fn represent(&self, class: &str) -> String {
        format!("{class}({:?})", self.fen())
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        let (planes, scalars) = (observation::PLANES, observation::SCALARS);
        Dimensions { num_actions: action::NUM_ACTIONS, planes, scalars, height: 8, width: 8 }
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

    /// In the order of the move generator: pawns, knights, bishops, rooks, queens, king; within a kind unpinned pieces, then pinned
    /// ones, each from a1 to h8 (en passant after the other pawn moves); the targets of a piece from a1 to h8, promotions to
    /// knight, bishop, rook, queen; castling at the square of the rook.
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

    /// Illegal actions leave the state unchanged.
    fn play(&mut self, action: Action) {
        if let Some(mv) = action::decode(self.board(), action) {
            self.play_move(mv);
        }
    }

    fn play_random(&mut self, random: &mut Random) {
        playout::play_random(self, random);
    }

    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        playout::playout(self, random, max_depth).into()
    }

    /// Formats an action in UCI notation: `e2e4`, `e7e8q`, castling as `e1g1`.
    fn action_to_string(&self, action: Action) -> String {
        notation::uci(self.board(), action)
    }

    /// Parses UCI notation or standard algebraic notation.
    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        notation::parse(self, text)
    }

    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        observation::pack(self, planes, scalars);
    }
}

impl Chess {
    /// Returns the result for White.
    fn result_of(&self, termination: Termination) -> i8 {
        match (termination, self.board().side_to_move()) {
            (Termination::Checkmate, Color::White) => -1,
            (Termination::Checkmate, Color::Black) => 1,
            _ => 0,
        }
    }
}
