//! What one side attacks: mobility, danger to the other king, threats; and what its king and its passed pawns stand on.
//!
//! `Pesto` adds these counts up with weights, and `Terms` lists them for the tuner.

use cozy_chess::{
    get_bishop_moves, get_king_moves, get_knight_moves, get_rook_moves, BitBoard, Board, Color,
    Piece::{self, Bishop, King, Knight, Pawn, Queen, Rook},
    Square,
};

use super::pawns::{files, Pawns};

/// Levels of danger for a king: the last one is for all that is worse.
pub(super) const DANGERS: usize = 16;

/// What each attacked square near a king counts, by knight, bishop, rook and queen; two make a level.
const DANGER_OF: [usize; 4] = [2, 2, 2, 3];

/// What the pieces of one side reach.
pub(super) struct Reach {
    by_pawns: BitBoard,
    by_minors: BitBoard,
    by_rooks: BitBoard,
    all: BitBoard,
    /// Squares that knights, bishops, rooks and queens can go to and that no enemy pawn guards.
    pub(super) mobility: [u32; 4],
    /// How dangerous all this is to the other king.
    pub(super) danger: usize,
}

impl Reach {
    /// What the side whose pawns are `pawns.own` reaches.
    pub(super) fn of(board: &Board, color: Color, pawns: &Pawns) -> Self {
        let (own, occupied) = (board.colors(color), board.occupied());
        let enemy_king = board.king(!color);
        let near_king = get_king_moves(enemy_king) | enemy_king.bitboard();
        let area = !(own | BitBoard(pawns.turned(BitBoard(pawns.enemy_guards()))));
        let by_pawns = BitBoard(pawns.turned(BitBoard(pawns.guards())));
        let (mut by, mut mobility, mut danger) = ([BitBoard::EMPTY; 4], [0; 4], 0);
        for (place, piece) in [Knight, Bishop, Rook, Queen].into_iter().enumerate() {
            for square in own & board.pieces(piece) {
                let reached = reach(piece, square, occupied);
                by[place] |= reached;
                mobility[place] += (reached & area).len();
                danger += DANGER_OF[place] * (reached & near_king).len() as usize;
            }
        }
        let [knights, bishops, rooks, queens] = by;
        let by_minors = knights | bishops;
        let all = by_pawns | by_minors | rooks | queens | get_king_moves(board.king(color));
        Self { by_pawns, by_minors, by_rooks: rooks, all, mobility, danger: (danger / 2).min(DANGERS - 1) }
    }

    /// Enemy pieces attacked by pawns; rooks and queens by knights and bishops; queens by rooks; and whatever is attacked and
    /// not guarded. `theirs` is what the other side reaches.
    pub(super) fn threats(&self, board: &Board, color: Color, theirs: &Self) -> [u32; 4] {
        let enemy = board.colors(!color);
        let [queens, rooks, pawns] = [Queen, Rook, Pawn].map(|piece| board.pieces(piece));
        let pieces = enemy & !pawns & !board.pieces(King);
        [
            pieces & self.by_pawns,
            enemy & (rooks | queens) & self.by_minors,
            enemy & queens & self.by_rooks,
            enemy & !board.pieces(King) & self.all & !theirs.all,
        ]
        .map(BitBoard::len)
    }
}

/// What a piece that is no pawn and no king reaches.
fn reach(piece: Piece, square: Square, occupied: BitBoard) -> BitBoard {
    match piece {
        Knight => get_knight_moves(square),
        Bishop => get_bishop_moves(square, occupied),
        Rook => get_rook_moves(square, occupied),
        _ => get_bishop_moves(square, occupied) | get_rook_moves(square, occupied),
    }
}

/// (pawns on the two ranks before the king, on its file and those beside it; files there without pawns of its side).
pub(super) fn shelter(board: &Board, color: Color, pawns: &Pawns) -> (u32, u32) {
    let file = board.king(color).file();
    let near = (file.bitboard() | file.adjacent()).0;
    let king = pawns.turned(board.king(color).bitboard());
    let row = 0xff << (king.trailing_zeros() / 8 * 8);
    let shield = pawns.own & near & (row << 8 | row << 16);
    let open = near & !files(pawns.own) & 0xff;
    (shield.count_ones(), open.count_ones())
}

/// (how much nearer the own king is to the squares before the passed pawns than the other king, in moves; how many of them an
/// enemy piece stops).
pub(super) fn passed(board: &Board, color: Color, pawns: &Pawns) -> (i32, u32) {
    let stops = BitBoard(pawns.turned(BitBoard(pawns.passed() << 8)));
    let (own, enemy) = (board.king(color), board.king(!color));
    let nearer = stops.into_iter().map(|stop| distance(enemy, stop) - distance(own, stop)).sum();
    (nearer, (stops & board.colors(!color)).len())
}

/// Knights and bishops on the fourth to the sixth rank that a pawn guards and no enemy pawn can attack.
pub(super) fn outposts(board: &Board, color: Color, pawns: &Pawns) -> u32 {
    let minors = pawns.turned(board.colors(color) & (board.pieces(Knight) | board.pieces(Bishop)));
    (minors & 0x0000_ffff_ff00_0000 & pawns.guards() & !pawns.enemy_guards_ever()).count_ones()
}

/// Moves of a king from one square to the other.
fn distance(one: Square, other: Square) -> i32 {
    let files = (one.file() as i32).abs_diff(other.file() as i32);
    files.max((one.rank() as i32).abs_diff(other.rank() as i32)) as i32
}
