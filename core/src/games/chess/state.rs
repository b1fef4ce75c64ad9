//! A position with as much of its history as the rules and the observation need.

use std::fmt;
use std::hash::{Hash, Hasher};

use cozy_chess::{get_pawn_attacks, BitBoard, Board, Color, File, Move, Piece, Rank, Square};

use super::action;
use crate::error::Error;
use crate::games::Action;

/// How many earlier positions are kept for the observation (the ring holds a power of two, one slot is never read).
const RING: usize = 8;

/// What the observation needs of an earlier position.
#[derive(Clone, Copy, Default)]
pub(super) struct Snapshot {
    /// The squares of pawns, knights, bishops, rooks, queens, kings.
    pub pieces: [u64; 6],
    /// The squares of White's pieces.
    pub white: u64,
    /// How often the position had stood on the board before.
    pub repetitions: u8,
}

impl Snapshot {
    #[inline]
    pub(super) fn of(board: &Board, repetitions: u8) -> Self {
        Self { pieces: Piece::ALL.map(|piece| board.pieces(piece).0), white: board.colors(Color::White).0, repetitions }
    }
}

/// A game of chess: the position, the clocks, and the history since the start (or since the FEN it began with).
///
/// Two games are equal if the same position is on the board (pieces, side to move, castling rights, en passant if such a
/// capture is legal) with the same halfmove clock, the same move number, and if it has been there equally often. So equal
/// games have the same legal moves and the same ends *now*; the moves that led there may differ.
pub struct Chess {
    board: Board,
    /// Moves of either side since the last capture or pawn move. The board's own clock stops at 100, this one does not.
    halfmove_clock: u16,
    /// How often this position has been on the board before.
    repetitions: u8,
    /// Where the next snapshot goes, and how many there are.
    head: u8,
    depth: u8,
    /// The key of this position: two positions are repetitions of each other if their keys are equal.
    key: u64,
    /// The keys of the positions since the last capture or pawn move, oldest first, without this one.
    keys: Vec<u64>,
    recent: [Snapshot; RING],
}

impl Chess {
    /// A game that begins with `board`.
    pub(super) fn from_board(board: Board, halfmove_clock: u16) -> Self {
        let key = key_of(&board);
        Self { board, halfmove_clock, repetitions: 0, head: 0, depth: 0, key, keys: Vec::new(), recent: [Snapshot::default(); RING] }
    }

    /// The board. Its halfmove clock stops at 100, and it gives an en-passant file after every double step;
    /// use `halfmove_clock` and `en_passant` of this type instead.
    #[inline]
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Moves of either side since the last capture or pawn move.
    #[inline]
    #[must_use]
    pub fn halfmove_clock(&self) -> u16 {
        self.halfmove_clock
    }

    /// The number of the move, from 1, one more after each move of Black; it stops at 65535.
    #[inline]
    #[must_use]
    pub fn fullmove_number(&self) -> u16 {
        self.board.fullmove_number()
    }

    /// How often this position stood on the board before: 2 is a threefold repetition, 4 a fivefold one.
    #[inline]
    #[must_use]
    pub fn repetitions(&self) -> u32 {
        u32::from(self.repetitions)
    }

    /// The hashes of the positions since the last capture or pawn move that have stood on the board at least twice: should one
    /// of them come up again, it is a threefold repetition.
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

    /// The square behind a pawn that has just made a double step, if it can legally be captured en passant.
    #[must_use]
    pub fn en_passant(&self) -> Option<Square> {
        legal_en_passant(&self.board).map(|file| Square::new(file, Rank::Sixth.relative_to(self.board.side_to_move())))
    }

    /// Whether the side to move is in check.
    #[must_use]
    pub fn in_check(&self) -> bool {
        !self.board.checkers().is_empty()
    }

    /// The position `age` plies ago (1 or more), if it is known and not older than 7 plies.
    pub(super) fn snapshot(&self, age: usize) -> Option<&Snapshot> {
        (age <= usize::from(self.depth)).then(|| &self.recent[(usize::from(self.head) + RING - age) % RING])
    }

    /// Where the last move took a piece, if it did so and is known; not for a capture en passant.
    pub(crate) fn last_capture(&self) -> Option<Square> {
        let before = self.snapshot(1)?;
        let mover = !self.board.side_to_move();
        let pieces = before.pieces.iter().fold(0, |all, squares| all | squares);
        let victims = if mover == Color::White { pieces & !before.white } else { before.white };
        (self.board.colors(mover) & BitBoard(victims)).into_iter().next()
    }

    /// Plays a move (castling is written as the king taking its rook). A move that is not legal leaves the state as it is.
    pub fn play_move(&mut self, mv: Move) {
        if self.board.is_legal(mv) {
            self.advance(mv);
        }
    }

    /// Plays a move that is known to be legal.
    #[inline]
    pub(super) fn advance(&mut self, mv: Move) {
        self.recent[usize::from(self.head)] = Snapshot::of(&self.board, self.repetitions);
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
            // The same side must be on move, and each side needs two moves to come back: 4, 6, 8 ... plies ago.
            let same = self.keys.iter().rev().skip(3).step_by(2).filter(|&&key| key == self.key).count();
            self.repetitions = same.min(255) as u8;
        }
    }

    /// Whether a legal action captures something (en passant included); false for any other action.
    #[must_use]
    pub fn is_capture(&self, action: Action) -> bool {
        self.legal_move(action).is_some_and(|mv| captures(&self.board, mv))
    }

    /// Whether a legal action gives check; false for any other action.
    #[must_use]
    pub fn gives_check(&self, action: Action) -> bool {
        self.legal_move(action).is_some_and(|mv| {
            let mut board = self.board.clone();
            board.play_unchecked(mv);
            !board.checkers().is_empty()
        })
    }

    /// The move of an action, if it may be played here.
    #[must_use]
    pub fn legal_move(&self, action: Action) -> Option<Move> {
        action::decode(&self.board, action).filter(|&mv| !self.is_drawn_automatically() && self.board.is_legal(mv))
    }

    /// The action of a move (castling is written as the king taking its rook), if it may be played here.
    ///
    /// # Errors
    /// `Error::InvalidAction` if it may not.
    pub fn action_of(&self, mv: Move) -> Result<Action, Error> {
        if !self.is_drawn_automatically() && self.board.is_legal(mv) {
            Ok(action::encode(&self.board, mv))
        } else {
            Err(Error::InvalidAction(format!("the move {mv} is not legal in {}", self.fen())))
        }
    }
}

/// Whether a legal move captures something.
pub(crate) fn captures(board: &Board, mv: Move) -> bool {
    let to_enemy = board.colors(!board.side_to_move()).has(mv.to);
    let pawn_leaves_file = mv.from.file() != mv.to.file() && board.pieces(Piece::Pawn).has(mv.from);
    to_enemy || pawn_leaves_file
}

/// The file on which a pawn can legally be captured en passant.
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

/// Whether two boards are the same position for the rules. (The crate's own method takes any piece that may go to the
/// en-passant square for a pawn that may capture there.)
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
        // Room for the moves to come: who clones wants to play on.
        let mut keys = Vec::with_capacity(self.keys.len() + 32);
        keys.extend_from_slice(&self.keys);
        Self { board: self.board.clone(), keys, ..*self }
    }

    /// Reuses the memory of the history, and copies field by field: a search does this once per simulation.
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
