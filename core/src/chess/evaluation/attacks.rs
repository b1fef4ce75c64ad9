//! Attack terms of one side: mobility, king danger, threats, pawn shield, passed pawns. `terms` numbers the counts.

use cozy_chess::{
    get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks, get_rook_moves, BitBoard, Board, Color,
    Piece::{self, Bishop, King, Knight, Pawn, Queen, Rook},
    Square,
};

use super::pawns::{files, Pawns};

/// Levels of king danger; the last is open-ended.
pub(super) const DANGERS: usize = 16;

/// King danger per attacked square next to the king, by knight, bishop, rook and queen; two units per level.
const DANGER_WEIGHTS: [usize; 4] = [2, 2, 2, 3];

/// The attacks of one side.
pub(super) struct Reach {
    by_pawns: BitBoard,
    by_minors: BitBoard,
    by_rooks: BitBoard,
    all: BitBoard,
    /// Mobility of knights, bishops, rooks and queens: squares not guarded by enemy pawns.
    pub(super) mobility: [u32; 4],
    /// Danger level of the enemy king.
    pub(super) danger: usize,
}

impl Reach {
    /// Computes the attacks of the side whose pawns are `pawns.own`.
    pub(super) fn of(board: &Board, color: Color, pawns: &Pawns) -> Self {
        let (own, occupied) = (board.colors(color), board.occupied());
        let enemy_king = board.king(!color);
        let near_king = get_king_moves(enemy_king) | enemy_king.bitboard();
        let area = !(own | BitBoard(pawns.relative(BitBoard(pawns.enemy_guards()))));
        let by_pawns = BitBoard(pawns.relative(BitBoard(pawns.guards())));
        let (mut by, mut mobility, mut danger) = ([BitBoard::EMPTY; 4], [0; 4], 0);
        for (place, piece) in [Knight, Bishop, Rook, Queen].into_iter().enumerate() {
            for square in own & board.pieces(piece) {
                let reached = attacks(piece, color, square, occupied);
                by[place] |= reached;
                mobility[place] += (reached & area).len();
                danger += DANGER_WEIGHTS[place] * (reached & near_king).len() as usize;
            }
        }
        let [knights, bishops, rooks, queens] = by;
        let by_minors = knights | bishops;
        let all = by_pawns | by_minors | rooks | queens | get_king_moves(board.king(color));
        Self { by_pawns, by_minors, by_rooks: rooks, all, mobility, danger: (danger / 2).min(DANGERS - 1) }
    }

    /// Returns the enemy pieces attacked by pawns; rooks and queens attacked by minor pieces; queens attacked by rooks; and
    /// hanging pieces. `theirs` are the opponent's attacks.
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

/// Returns the squares that a piece of `color` attacks.
#[inline]
pub(in crate::chess) fn attacks(piece: Piece, color: Color, square: Square, occupied: BitBoard) -> BitBoard {
    match piece {
        Pawn => get_pawn_attacks(square, color),
        Knight => get_knight_moves(square),
        Bishop => get_bishop_moves(square, occupied),
        Rook => get_rook_moves(square, occupied),
        Queen => get_bishop_moves(square, occupied) | get_rook_moves(square, occupied),
        King => get_king_moves(square),
    }
}

/// Returns the pawn shield and the open files next to the king: (own pawns on the two ranks before the king, on its file and
/// adjacent ones; such files without own pawns).
pub(super) fn shelter(board: &Board, color: Color, pawns: &Pawns) -> (u32, u32) {
    let file = board.king(color).file();
    let near = (file.bitboard() | file.adjacent()).0;
    let king = pawns.relative(board.king(color).bitboard());
    let row = 0xff << (king.trailing_zeros() / 8 * 8);
    let shield = pawns.own & near & (row << 8 | row << 16);
    let open = near & !files(pawns.own) & 0xff;
    (shield.count_ones(), open.count_ones())
}

/// Returns (king proximity to the stop squares of passed pawns, as enemy minus own king distance, summed; passed pawns blocked by
/// an enemy piece).
pub(super) fn passed(board: &Board, color: Color, pawns: &Pawns) -> (i32, u32) {
    let stops = BitBoard(pawns.relative(BitBoard(pawns.passed() << 8)));
    let (own, enemy) = (board.king(color), board.king(!color));
    let nearer = stops.into_iter().map(|stop| distance(enemy, stop) as i32 - distance(own, stop) as i32).sum();
    (nearer, (stops & board.colors(!color)).len())
}

/// Returns the outposts: minor pieces on ranks 4 to 6, guarded by a pawn, that no enemy pawn can attack.
pub(super) fn outposts(board: &Board, color: Color, pawns: &Pawns) -> u32 {
    let minors = pawns.relative(board.colors(color) & (board.pieces(Knight) | board.pieces(Bishop)));
    (minors & 0x0000_ffff_ff00_0000 & pawns.guards() & !pawns.enemy_guards_ever()).count_ones()
}

/// Returns the Chebyshev distance of two squares.
pub(in crate::chess) fn distance(one: Square, other: Square) -> usize {
    let files = (one.file() as usize).abs_diff(other.file() as usize);
    files.max((one.rank() as usize).abs_diff(other.rank() as usize))
}
