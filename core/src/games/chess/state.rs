//! The game state: a position with the history that the rules and the observation need.

use std::fmt;
use std::hash::{Hash, Hasher};

use cozy_chess::{get_pawn_attacks, BitBoard, Board, Color, File, Move, Piece, Rank, Square};

use super::action;
use crate::error::Error;
use crate::games::Action;

/// Size of the ring of earlier positions, of which the observation reads 7; a power of two.
const RING: usize = 8;

/// An earlier position, as the observation needs it.
#[derive(Clone, Copy, Default)]
pub(super) struct HistoryEntry {
    /// The squares of pawns, knights, bishops, rooks, queens, kings.
    pub pieces: [u64; 6],
    /// The squares of White's pieces.
    pub white: u64,
    /// Earlier occurrences of the position.
    pub repetitions: u8,
}

impl HistoryEntry {
    #[inline]
    pub(super) fn of(board: &Board, repetitions: u8) -> Self {
        Self { pieces: Piece::ALL.map(|piece| board.pieces(piece).0), white: board.colors(Color::White).0, repetitions }
    }
}

/// A game of chess: the position, the clocks, and the history since the start position or FEN.
///
/// Equality compares the position (pieces, side to move, castling rights, legal en passant captures), the halfmove clock, the move
/// number and the repetition count. Equal games have the same legal moves and the same outcome *now*; their histories may differ.
pub struct Chess {
    board: Board,
    /// Plies since the last capture or pawn move. Unlike the clock of the board it does not saturate at 100.
    halfmove_clock: u16,
    /// Earlier occurrences of this position.
    repetitions: u8,
    /// Index of the next entry of `recent`, and the number of valid entries.
    head: u8,
    depth: u8,
    /// Hash of this position; equal keys are repetitions.
    key: u64,
    /// Keys of the earlier positions since the last capture or pawn move, oldest first.
    keys: Vec<u64>,
    recent: [HistoryEntry; RING],
}

impl Chess {
    /// Creates a game that starts at `board`.
    pub(super) fn from_board(board: Board, halfmove_clock: u16) -> Self {
        let key = key_of(&board);
        Self { board, halfmove_clock, repetitions: 0, head: 0, depth: 0, key, keys: Vec::new(), recent: [HistoryEntry::default(); RING] }
    }

    /// Returns the board. Its halfmove clock saturates at 100 and its en passant file is set after every double step; use
    /// `halfmove_clock` and `en_passant` of this type instead.
    #[inline]
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the plies since the last capture or pawn move.
    #[inline]
    #[must_use]
    pub fn halfmove_clock(&self) -> u16 {
        self.halfmove_clock
    }

    /// Returns the move number, from 1, incremented after each move of Black; saturates at 65535.
    #[inline]
    #[must_use]
    pub fn fullmove_number(&self) -> u16 {
        self.board.fullmove_number()
    }

    /// Returns the number of earlier occurrences of this position: 2 is a threefold repetition, 4 a fivefold one.
    #[inline]
    #[must_use]
    pub fn repetitions(&self) -> u32 {
        u32::from(self.repetitions)
    }

    /// Returns the hashes of positions that occurred at least twice since the last capture or pawn move: another occurrence is a
    /// threefold repetition.
    pub(crate) fn seen_twice(&self) -> Vec<u64> {
        if self.keys.len() < 4 {
            return Vec::new();
        }
        let mut keys: Vec<u64> = self.keys.iter().copied().chain([self.key]).collect();
        keys.sort_unstable();
        let mut twice: Vec<u64> = keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        twice.dedup();
        twice
    }

    /// Returns the en passant square, if such a capture is legal.
    #[must_use]
    pub fn en_passant(&self) -> Option<Square> {
        legal_en_passant(&self.board).map(|file| Square::new(file, Rank::Sixth.relative_to(self.board.side_to_move())))
    }

    /// Returns whether the side to move is in check.
    #[must_use]
    pub fn in_check(&self) -> bool {
        !self.board.checkers().is_empty()
    }

    /// Returns the position `age` plies ago, from 1 to 7, if it is in the history.
    pub(super) fn history_entry(&self, age: usize) -> Option<&HistoryEntry> {
        (age <= usize::from(self.depth)).then(|| &self.recent[(usize::from(self.head) + RING - age) % RING])
    }

    /// Returns the square of the last move if it is in the history and captured a piece, en passant excluded.
    pub(crate) fn last_capture(&self) -> Option<Square> {
        let before = self.history_entry(1)?;
        let mover = !self.board.side_to_move();
        let pieces = before.pieces.iter().fold(0, |all, squares| all | squares);
        let victims = if mover == Color::White { pieces & !before.white } else { before.white };
        (self.board.colors(mover) & BitBoard(victims)).into_iter().next()
    }

    /// Plays a move (castling as king takes rook). Illegal moves leave the state unchanged.
    pub fn play_move(&mut self, mv: Move) {
        if self.board.is_legal(mv) {
            self.advance(mv);
        }
    }

    /// Plays a legal move.
    #[inline]
    pub(super) fn advance(&mut self, mv: Move) {
        self.recent[usize::from(self.head)] = HistoryEntry::of(&self.board, self.repetitions);
        self.head = (self.head + 1) % RING as u8;
        self.depth = (self.depth + 1).min(RING as u8 - 1);
        self.board.play_unchecked(mv);
        if self.board.halfmove_clock() == 0 {
            self.keys.clear();
            self.halfmove_clock = 0;
            self.repetitions = 0;
            self.key = key_of(&self.board);
        } else {
            self.keys.push(self.key);
            self.halfmove_clock = self.halfmove_clock.saturating_add(1);
            self.key = self.board.hash();
            // The side to move must be the same, and each side needs two moves to return: 4, 6, 8 ... plies ago.
            let same = self.keys.iter().rev().skip(3).step_by(2).filter(|&&key| key == self.key).count();
            self.repetitions = same.min(255) as u8;
        }
    }

    /// Returns whether the action is legal and captures, en passant included.
    #[must_use]
    pub fn is_capture(&self, action: Action) -> bool {
        self.legal_move(action).is_some_and(|mv| captures(&self.board, mv))
    }

    /// Returns whether the action is legal and gives check.
    #[must_use]
    pub fn gives_check(&self, action: Action) -> bool {
        self.legal_move(action).is_some_and(|mv| !board_after(&self.board, mv).checkers().is_empty())
    }

    /// Returns the move of a legal action.
    #[must_use]
    pub fn legal_move(&self, action: Action) -> Option<Move> {
        action::decode(&self.board, action).filter(|&mv| !self.is_drawn_automatically() && self.board.is_legal(mv))
    }

    /// Returns the action of a legal move (castling as king takes rook).
    ///
    /// # Errors
    /// `Error::InvalidAction` if the move is illegal.
    pub fn action_of(&self, mv: Move) -> Result<Action, Error> {
        if !self.is_drawn_automatically() && self.board.is_legal(mv) {
            Ok(action::encode(&self.board, mv))
        } else {
            Err(Error::InvalidAction(format!("the move {mv} is not legal in {}", self.fen())))
        }
    }
}

/// Returns the board after a legal move.
#[inline]
pub(crate) fn board_after(board: &Board, mv: Move) -> Board {
    let mut next = board.clone();
    next.play_unchecked(mv);
    next
}

/// Returns whether a legal move is castling, encoded as king takes rook. It never captures.
#[inline]
pub(crate) fn is_castling(board: &Board, mv: Move) -> bool {
    board.colors(board.side_to_move()).has(mv.to)
}

/// Returns whether a legal move captures, en passant included.
pub(crate) fn captures(board: &Board, mv: Move) -> bool {
    let to_enemy = board.colors(!board.side_to_move()).has(mv.to);
    let pawn_leaves_file = mv.from.file() != mv.to.file() && board.pieces(Piece::Pawn).has(mv.from);
    to_enemy || pawn_leaves_file
}

/// Returns the file of a legal en passant capture.
#[inline]
pub(super) fn legal_en_passant(board: &Board) -> Option<File> {
    let file = board.en_passant()?;
    let color = board.side_to_move();
    let to = Square::new(file, Rank::Sixth.relative_to(color));
    let takers = get_pawn_attacks(to, !color) & board.colored_pieces(color, Piece::Pawn);
    takers.into_iter().any(|from| board.is_legal(Move { from, to, promotion: None })).then_some(file)
}

#[inline]
fn key_of(board: &Board) -> u64 {
    if legal_en_passant(board).is_some() {
        board.hash()
    } else {
        board.hash_without_ep()
    }
}

/// Whether two boards are the same position for repetition. (`Board::same_position` takes any piece that attacks the en passant
/// square for a pawn.)
fn same_position(one: &Board, other: &Board) -> bool {
    one.side_to_move() == other.side_to_move()
        && Piece::ALL.into_iter().all(|piece| one.pieces(piece) == other.pieces(piece))
        && Color::ALL.into_iter().all(|color| one.colors(color) == other.colors(color))
        && Color::ALL.into_iter().all(|color| one.castle_rights(color) == other.castle_rights(color))
        && legal_en_passant(one) == legal_en_passant(other)
}

impl Default for Chess {
    fn default() -> Self {
        Self::from_board(Board::default(), 0)
    }
}

impl Clone for Chess {
    fn clone(&self) -> Self {
        // Reserves capacity, since clones usually play on.
        let mut keys = Vec::with_capacity(self.keys.len() + 32);
        keys.extend_from_slice(&self.keys);
        Self { board: self.board.clone(), keys, ..*self }
    }

    /// Reuses the memory of the history, since a search does this once per simulation.
    fn clone_from(&mut self, source: &Self) {
        let Self { board, halfmove_clock, repetitions, head, depth, key, keys, recent } = source;
        self.board.clone_from(board);
        (self.halfmove_clock, self.repetitions, self.head, self.depth, self.key) = (*halfmove_clock, *repetitions, *head, *depth, *key);
        self.keys.clear();
        self.keys.extend_from_slice(keys);
        self.recent = *recent;
    }
}

impl PartialEq for Chess {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.halfmove_clock == other.halfmove_clock
            && self.fullmove_number() == other.fullmove_number()
            && self.repetitions == other.repetitions
            && same_position(&self.board, &other.board)
    }
}

impl Eq for Chess {}

impl Hash for Chess {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.key, self.halfmove_clock, self.fullmove_number(), self.repetitions).hash(state);
    }
}

impl fmt::Debug for Chess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Chess({:?})", self.fen())
    }
}
