//! Strict FEN parsing with detailed errors.

use cozy_chess::{get_king_moves, get_line_rays, BitBoard, Board, BoardBuilder, CastleRights, Color, File, Piece, Rank, Square};

use super::display::letter;
use super::notation::shortened;
use super::state::legal_en_passant;
use super::Chess;
use crate::error::Error;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

impl Chess {
    /// Parses FEN: six fields, or four without the clocks, which default to `0 1`. An en passant square without a legal capture is
    /// accepted and dropped.
    ///
    /// # Errors
    /// `Error::InvalidPosition` names the field, the fault and the valid values.
    pub fn from_fen(fen: &str) -> Result<Self, Error> {
        let fields: Vec<&str> = fen.split_whitespace().take(7).collect();
        let (placement, side, castling, en_passant, clocks) = match *fields.as_slice() {
            [a, b, c, d] => (a, b, c, d, ("0", "1")),
            [a, b, c, d, e, f] => (a, b, c, d, (e, f)),
            _ => {
                let count = if fields.len() > 6 { "more than 6".to_owned() } else { fields.len().to_string() };
                return refuse(format!(
                    "a FEN has 6 fields (or 4, without the clocks), not {count}: expected something like {START:?}, got {}",
                    quote(fen)
                ));
            }
        };
        let mut builder = BoardBuilder::empty();
        read_placement(placement, &mut builder)?;
        builder.side_to_move = match side {
            "w" => Color::White,
            "b" => Color::Black,
            _ => return refuse(format!("FEN field 2 (side to move) must be 'w' or 'b', got {}", quote(side))),
        };
        check_pieces(&builder)?;
        read_castling(castling, &mut builder)?;
        let en_passant = read_en_passant(en_passant, &builder)?;
        let halfmove_clock = read_clock(clocks.0, "5 (halfmove clock)", 0)?;
        builder.fullmove_number = read_clock(clocks.1, "6 (fullmove number)", 1)?;
        // The clock of the board saturates at 100.
        builder.halfmove_clock = halfmove_clock.min(100) as u8;

        let board = build(&builder, "FEN field 1 (pieces) gives no legal position")?;
        check_checks(&board)?;
        let board = match en_passant {
            None => board,
            Some(square) => {
                builder.en_passant = Some(square);
                let with = build(&builder, "FEN field 4 (en passant): the side to move stands in a check that a double step cannot give")?;
                if legal_en_passant(&with).is_some() {
                    with
                } else {
                    board
                }
            }
        };
        Ok(Self::from_board(board, halfmove_clock))
    }

    /// Returns the position in FEN. The en passant square is written only if such a capture is legal.
    #[must_use]
    pub fn fen(&self) -> String {
        let board = self.board();
        let ranks: Vec<String> = Rank::ALL.into_iter().rev().map(|rank| rank_text(board, rank)).collect();
        let side = if board.side_to_move() == Color::White { 'w' } else { 'b' };
        let mut castling = String::new();
        for (color, letters) in [(Color::White, ['K', 'Q']), (Color::Black, ['k', 'q'])] {
            let rights = board.castle_rights(color);
            castling.extend(rights.short.map(|_| letters[0]));
            castling.extend(rights.long.map(|_| letters[1]));
        }
        if castling.is_empty() {
            castling.push('-');
        }
        let en_passant = self.en_passant().map_or_else(|| "-".to_owned(), |square| square.to_string());
        format!("{} {side} {castling} {en_passant} {} {}", ranks.join("/"), self.halfmove_clock(), self.fullmove_number())
    }
}

fn refuse<T>(text: String) -> Result<T, Error> {
    Err(Error::InvalidPosition(text))
}

/// Quotes a text, truncated to 100 characters.
fn quote(text: &str) -> String {
    format!("{:?}", shortened(text, 100))
}

fn build(builder: &BoardBuilder, context: &str) -> Result<Board, Error> {
    builder.build().map_err(|error| Error::InvalidPosition(format!("{context}: {error}")))
}

fn rank_text(board: &Board, rank: Rank) -> String {
    let squares: String = File::ALL.into_iter().map(|file| letter(board, Square::new(file, rank)).unwrap_or('.')).collect();
    (1..=8).rev().fold(squares, |text, empty| text.replace(&".".repeat(empty), &empty.to_string()))
}

fn read_placement(text: &str, builder: &mut BoardBuilder) -> Result<(), Error> {
    let rows: Vec<&str> = text.split('/').take(9).collect();
    if rows.len() != 8 {
        return refuse(format!("FEN field 1 (pieces) must have 8 ranks separated by '/', got {}", quote(text)));
    }
    for (row, rank) in rows.into_iter().zip(Rank::ALL.into_iter().rev()) {
        let mut file = 0usize;
        let mut after_digit = false;
        for symbol in row.chars() {
            let digit = symbol.to_digit(10);
            match (digit, Piece::try_from(symbol.to_ascii_lowercase())) {
                (Some(1..=8), _) if after_digit => {
                    return refuse(format!("FEN field 1 (pieces): rank {rank} ({}) has two digits in a row; write their sum", quote(row)));
                }
                (Some(empty @ 1..=8), _) => file += empty as usize,
                (_, Ok(piece)) => {
                    if let Some(file) = File::try_index(file) {
                        let color = if symbol.is_ascii_uppercase() { Color::White } else { Color::Black };
                        *builder.square_mut(Square::new(file, rank)) = Some((piece, color));
                    }
                    file += 1;
                }
                _ => {
                    return refuse(format!(
                        "FEN field 1 (pieces): rank {rank} has {symbol:?}; allowed are the letters PNBRQK and pnbrqk and the digits 1 to 8"
                    ));
                }
            }
            after_digit = digit.is_some();
        }
        if file != 8 {
            return refuse(format!("FEN field 1 (pieces): rank {rank} ({}) has {file} squares; every rank has 8", quote(row)));
        }
    }
    Ok(())
}

/// Returns the squares of the wanted pieces.
fn squares_of(builder: &BoardBuilder, wanted: impl Fn(Piece, Color) -> bool) -> BitBoard {
    Square::ALL.into_iter().filter(|&square| builder.square(square).is_some_and(|(piece, color)| wanted(piece, color))).collect()
}

fn check_pieces(builder: &BoardBuilder) -> Result<(), Error> {
    for (color, name) in [(Color::White, "White"), (Color::Black, "Black")] {
        let kings = squares_of(builder, |piece, owner| piece == Piece::King && owner == color).len();
        if kings != 1 {
            return refuse(format!("FEN field 1 (pieces): {name} has {kings} kings; each side has exactly one"));
        }
        let all = squares_of(builder, |_, owner| owner == color).len();
        if all > 16 {
            return refuse(format!("FEN field 1 (pieces): {name} has {all} pieces; a side has at most 16"));
        }
        let pawns = squares_of(builder, |piece, owner| piece == Piece::Pawn && owner == color).len();
        if pawns > 8 {
            return refuse(format!("FEN field 1 (pieces): {name} has {pawns} pawns; a side has at most 8"));
        }
    }
    let last_ranks = Rank::First.bitboard() | Rank::Eighth.bitboard();
    let stray = squares_of(builder, |piece, _| piece == Piece::Pawn) & last_ranks;
    if let Some(square) = stray.next_square() {
        return refuse(format!("FEN field 1 (pieces): a pawn stands on {square}; pawns stand on ranks 2 to 7"));
    }
    let kings = squares_of(builder, |piece, _| piece == Piece::King);
    if kings.into_iter().any(|square| !(get_king_moves(square) & kings).is_empty()) {
        return refuse("FEN field 1 (pieces): the kings stand next to each other; there must be a square between them".to_owned());
    }
    // The builder rejects boards on which the king of the side not to move is attacked.
    if builder.build().is_err() {
        let waiting = if builder.side_to_move == Color::White { "Black" } else { "White" };
        return refuse(format!(
            "FEN field 2 (side to move): {waiting} is in check but not on move; the side in check must be the one to move"
        ));
    }
    Ok(())
}

fn check_checks(board: &Board) -> Result<(), Error> {
    let checkers = board.checkers();
    let king = board.king(board.side_to_move());
    let aligned = match checkers.into_iter().collect::<Vec<_>>()[..] {
        [first, second] => get_line_rays(first, second).has(king),
        _ => false,
    };
    if checkers.len() > 2 || aligned {
        let list = checkers.into_iter().map(|square| square.to_string()).collect::<Vec<_>>().join(", ");
        return refuse(format!(
            "FEN field 1 (pieces): the king on {king} is in check from {list}; one move gives check with at most two pieces, not on one line"
        ));
    }
    Ok(())
}

fn read_castling(text: &str, builder: &mut BoardBuilder) -> Result<(), Error> {
    if text == "-" {
        return Ok(());
    }
    let mut rights = [CastleRights::EMPTY; 2];
    for symbol in text.chars() {
        let (color, short) = match symbol {
            'K' => (Color::White, true),
            'Q' => (Color::White, false),
            'k' => (Color::Black, true),
            'q' => (Color::Black, false),
            _ => {
                return refuse(format!(
                    "FEN field 3 (castling) must be '-' or some of the letters KQkq, got {} (Chess960 is not supported)",
                    quote(text)
                ))
            }
        };
        let file = if short { File::H } else { File::A };
        let slot = if short { &mut rights[color as usize].short } else { &mut rights[color as usize].long };
        if slot.replace(file).is_some() {
            return refuse(format!("FEN field 3 (castling) has {symbol:?} twice in {}; each letter may stand once", quote(text)));
        }
        let rank = Rank::First.relative_to(color);
        for (square, piece) in [(Square::new(File::E, rank), Piece::King), (Square::new(file, rank), Piece::Rook)] {
            if builder.square(square) != Some((piece, color)) {
                return refuse(format!(
                    "FEN field 3 (castling): {symbol:?} needs the {color_name} {piece_name} on {square} (Chess960 is not supported); leave it out",
                    color_name = if color == Color::White { "white" } else { "black" },
                    piece_name = if piece == Piece::King { "king" } else { "rook" },
                ));
            }
        }
    }
    builder.castle_rights = rights;
    Ok(())
}

fn read_en_passant(text: &str, builder: &BoardBuilder) -> Result<Option<Square>, Error> {
    if text == "-" {
        return Ok(None);
    }
    let mover = builder.side_to_move;
    let rank = Rank::Sixth.relative_to(mover);
    let Some(square) = text.parse::<Square>().ok().filter(|square| square.rank() == rank) else {
        return refuse(format!(
            "FEN field 4 (en passant) must be '-' or a square on rank {rank} (behind the pawn that just moved two squares), got {}",
            quote(text)
        ));
    };
    let pawn = Square::new(square.file(), Rank::Fifth.relative_to(mover));
    let origin = Square::new(square.file(), Rank::Seventh.relative_to(mover));
    let came = builder.square(pawn) == Some((Piece::Pawn, !mover));
    if !came || builder.square(square).is_some() || builder.square(origin).is_some() {
        return refuse(format!(
            "FEN field 4 (en passant): {square} needs a pawn on {pawn} that came from {origin}, with {square} and {origin} empty; else write '-'"
        ));
    }
    Ok(Some(square))
}

fn read_clock(text: &str, field: &str, min: u16) -> Result<u16, Error> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(number) if digits && number >= min => Ok(number),
        _ => refuse(format!("FEN field {field} must be a whole number from {min} to {}, got {}", u16::MAX, quote(text))),
    }
}
