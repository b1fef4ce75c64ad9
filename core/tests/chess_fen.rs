//! FEN parsing, formatting and errors.
#![allow(clippy::unwrap_used)]

use pondertree_core::games::chess::Chess;
use pondertree_core::games::Game;
use pondertree_core::Error;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

fn error(fen: &str) -> String {
    match Chess::from_fen(fen) {
        Ok(game) => panic!("{fen} was read as {game:?}"),
        Err(Error::InvalidPosition(text)) => text,
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn valid_fens_round_trip() {
    for fen in [
        START,
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
        "8/8/8/8/k2Pp2R/8/8/4K3 b - - 0 1",
        "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 149 65535",
        "k7/8/8/8/8/8/8/6RK w - - 250 300",
    ] {
        assert_eq!(Chess::from_fen(fen).unwrap().fen(), fen);
    }
    assert_eq!(Chess::default().fen(), START);
    assert_eq!(Chess::from_fen("4k3/8/8/8/8/8/8/4K2R w K -").unwrap().fen(), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
    // The letters of field 3 in any order, spaces of any number.
    assert_eq!(Chess::from_fen(" r3k2r/8/8/8/8/8/8/R3K2R  w qkQK - 0 1 ").unwrap().fen(), "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
}

#[test]
fn en_passant_without_capture_is_dropped() {
    let cases = [
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1", // no pawn beside it
        "3k4/8/8/8/3pP3/8/8/3RK3 b - e3 0 1",                          // the pawn beside it is pinned
        "8/8/8/8/k2pP2R/8/8/4K3 b - e3 0 1",                           // both pawns would leave the king's rank
    ];
    for fen in cases {
        let game = Chess::from_fen(fen).unwrap();
        assert_eq!(game.fen(), fen.replace("e3", "-"));
        assert_eq!(game, Chess::from_fen(&fen.replace("e3", "-")).unwrap());
    }
    // Also after a played double step.
    let mut game = Chess::default();
    let e4 = game.parse_action("e4").unwrap();
    game.play(e4);
    assert_eq!(game, Chess::from_fen(cases[0]).unwrap());
    assert_eq!(game.fen(), cases[0].replace("e3", "-"));
}

#[test]
fn invalid_fens_name_the_field() {
    let cases = [
        ("", "6 fields"),
        ("hello", "6 fields"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0", "not 5"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 x", "more than 6"),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "8 ranks"),
        ("4k3/8/8/8/8/8/8/8/4K3 w - - 0 1", "8 ranks"),
        ("4k3/8/8/8/8/8/8/4K4 w - - 0 1", "rank 1 (\"4K4\") has 9 squares"),
        ("4k3/8/8/8/8/8/8/4K2 w - - 0 1", "has 7 squares"),
        ("4k3/8/8/44/8/8/8/4K3 w - - 0 1", "two digits"),
        ("4k3/8/8/9/8/8/8/4K3 w - - 0 1", "rank 5 has '9'"),
        ("4k3/8/8/0p7/8/8/8/4K3 w - - 0 1", "rank 5 has '0'"),
        ("4k3/8/8/x7/8/8/8/4K3 w - - 0 1", "rank 5 has 'x'"),
        ("8/8/8/8/8/8/8/4K3 w - - 0 1", "Black has 0 kings"),
        ("4k3/8/8/8/8/8/8/K3K3 w - - 0 1", "White has 2 kings"),
        ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "a pawn stands on h8"),
        ("4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "a pawn stands on a1"),
        ("4k3/8/8/8/8/8/8/4RK2 w - - 0 1", "Black is in check but not on move"),
        ("8/8/8/8/8/8/4k3/4K3 w - - 0 1", "next to each other"),
        ("4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1", "White has 9 pawns"),
        ("4k3/8/8/8/8/QQQQQQQQ/RRRRRRRR/4K3 b - - 0 1", "White has 17 pieces"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "field 2"),
        ("4k3/8/8/8/8/8/8/4K3 W - - 0 1", "field 2"),
        ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "needs the white rook on h1"),
        ("4k3/8/8/8/8/8/8/R2K4 w Q - 0 1", "needs the white king on e1"),
        ("r3k3/8/8/8/8/8/8/4K3 w kq - 0 1", "needs the black rook on h8"),
        ("4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "twice"),
        ("4k3/8/8/8/8/8/8/4K2R w H - 0 1", "Chess960"),
        ("4k3/8/8/8/8/8/8/4K2R w K-- - 0 1", "field 3"),
        ("4k3/8/8/8/8/8/8/4K3 w - e6 0 1", "needs a pawn on e5"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d3 0 1", "rank 6"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d9 0 1", "field 4"),
        ("4k3/3p4/8/3pP3/8/8/8/4K3 w - d6 0 1", "d6 and d7 empty"),
        ("4k3/8/5N2/8/2pP4/8/8/4K3 b - d3 0 1", "a check that a double step cannot give"),
        ("4k3/8/8/8/8/8/8/4K3 w - - x 1", "field 5"),
        ("4k3/8/8/8/8/8/8/4K3 w - - -1 1", "field 5"),
        ("4k3/8/8/8/8/8/8/4K3 w - - +1 1", "field 5"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 0", "field 6"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 65536", "field 6"),
        ("4k3/8/3N1N2/8/8/8/8/4R1K1 b - - 0 1", "at most two pieces"),
        ("R3k2R/8/8/8/8/8/8/4K3 b - - 0 1", "not on one line"),
    ];
    for (fen, part) in cases {
        let text = error(fen);
        assert!(text.contains(part), "{fen}: {text}");
    }
}
