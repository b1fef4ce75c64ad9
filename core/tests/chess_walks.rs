//! Invariants of chess games on random walks, and parsers on random text.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pondertree_core::games::chess::Chess;
use pondertree_core::games::Game;
use pondertree_core::{Error, Purpose, Random};
use proptest::prelude::*;

fn hash(game: &Chess) -> u64 {
    let mut hasher = DefaultHasher::new();
    game.hash(&mut hasher);
    hasher.finish()
}

fn observe(game: &Chess) -> (Vec<u64>, Vec<f32>) {
    let mut planes = vec![0; Chess::start().dimensions().words()];
    let mut scalars = vec![0.0; Chess::start().dimensions().scalars];
    game.pack_observation(&mut planes, &mut scalars);
    (planes, scalars)
}

/// Checks the invariants of one position.
fn check(game: &Chess, scratch: &mut Chess) {
    let actions = game.legal();
    assert_eq!(actions.is_empty(), game.outcome().is_some(), "{game:?}");
    assert!(actions.len() <= Chess::MAX_LEGAL);
    assert!(game.outcome().is_none() || game.outcome() == game.outcome_in_search());
    assert_eq!(game.termination_in_search().is_some(), game.outcome_in_search().is_some());

    let read = Chess::from_fen(&game.fen()).expect("a position of a game has a FEN");
    assert_eq!(read.fen(), game.fen());
    if game.repetitions() == 0 {
        assert_eq!((&read, hash(&read)), (game, hash(game)));
    }

    scratch.clone_from(game);
    assert_eq!((&*scratch, hash(scratch), observe(scratch)), (game, hash(game), observe(game)));

    let captured = |next: &Chess| next.board().occupied().len() < game.board().occupied().len();
    for &action in &actions {
        assert!(game.is_legal(action));
        let uci = game.action_to_string(action);
        let san = game.san(action).expect("a legal action has a name");
        assert_eq!(game.parse_action(&uci).as_ref(), Ok(&action), "{uci} {game:?}");
        assert_eq!(game.parse_action(&san).as_ref(), Ok(&action), "{san} {game:?}");
        let next = game.after(action);
        assert_eq!(next.to_play(), 1 - game.to_play());
        assert_eq!(game.is_capture(action), captured(&next), "{uci} {game:?}");
        assert_eq!(san.contains('x'), captured(&next), "{uci} {game:?}");
        assert_eq!(game.gives_check(action), next.in_check(), "{uci} {game:?}");
        assert_eq!(san.ends_with(['+', '#']), next.in_check(), "{uci} {game:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_walks_keep_the_invariants(seed in any::<u64>()) {
        let mut random = Random::new(seed, Purpose::Playout);
        let mut game = Chess::start();
        let mut scratch = Chess::start();
        for _ in 0..400 {
            check(&game, &mut scratch);
            if game.outcome().is_some() {
                break;
            }
            game.play_random(&mut random);
        }
    }
}

/// A FEN with some characters replaced, removed, inserted.
fn mutated_fen() -> impl Strategy<Value = String> {
    let fens = prop::sample::select(vec![
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 99 120",
    ]);
    let symbols = prop::sample::select("pnbrqkPNBRQK12345678/ -wbKQkqa3h6é0".chars().collect::<Vec<_>>());
    (fens, prop::collection::vec((any::<prop::sample::Index>(), symbols, 0..4u8), 0..6)).prop_map(|(fen, changes)| {
        let mut text: Vec<char> = fen.chars().collect();
        for (place, symbol, kind) in changes {
            let place = place.index(text.len());
            match kind {
                0 => text.insert(place, symbol),
                1 if text.len() > 1 => drop(text.remove(place)),
                2 => text.swap(place, 0),
                _ => text[place] = symbol,
            }
        }
        text.into_iter().collect()
    })
}

/// A FEN with a random placement of pieces.
fn any_board() -> impl Strategy<Value = String> {
    let squares = prop::collection::vec(prop::sample::select("........................pnbrqkPNBRQK".chars().collect::<Vec<_>>()), 64);
    (squares, any::<bool>(), prop::sample::select(vec!["-", "KQkq", "K", "q"]), prop::sample::select(vec!["-", "a3", "d6", "e3", "h6"]))
        .prop_map(|(squares, white, castling, en_passant)| {
            let mut squares: Vec<char> = squares;
            // One king each, so that some boards are positions.
            for square in &mut squares {
                if square.eq_ignore_ascii_case(&'k') {
                    *square = '.';
                }
            }
            (squares[4], squares[60]) = ('k', 'K');
            let rows: Vec<String> = squares.chunks(8).map(|row| row.iter().collect::<String>()).collect();
            let mut text = rows.join("/");
            for run in (1..=8).rev() {
                text = text.replace(&".".repeat(run), &run.to_string());
            }
            format!("{text} {} {castling} {en_passant} 0 1", if white { "w" } else { "b" })
        })
}

/// Checks that parsing never panics, and that parsed positions can be played and formatted.
fn check_read(text: &str) -> Result<(), TestCaseError> {
    match Chess::from_fen(text) {
        Err(Error::InvalidPosition(sentence)) => prop_assert!(sentence.contains("FEN"), "{}", sentence),
        Err(other) => prop_assert!(false, "{:?}", other),
        Ok(game) => {
            check(&game, &mut Chess::start());
            let mut random = Random::new(1, Purpose::Playout);
            let mut end = game.clone();
            end.playout(&mut random, 200);
            prop_assert_eq!(Chess::from_fen(&end.fen()).map(|read| read.fen()), Ok(end.fen()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,120}") {
        check_read(&text)?;
        let refused = Chess::start().parse_action(&text);
        prop_assert!(refused.is_ok() || matches!(refused, Err(Error::InvalidAction(_))));
    }

    #[test]
    fn mutated_fens_never_panic(text in mutated_fen()) {
        check_read(&text)?;
    }

    #[test]
    fn random_boards_never_panic(text in any_board()) {
        check_read(&text)?;
    }

    #[test]
    fn random_move_text_parses_to_legal_moves_only(text in "[NBRQKPO0a-h1-8x=+#-]{0,8}") {
        for fen in ["r3k2r/1P6/8/8/8/8/6p1/R3K2R w KQkq - 0 1", "r3k2r/1P6/8/8/8/8/6p1/R3K2R b KQkq - 0 1"] {
            let game = Chess::from_fen(fen).expect("a position");
            if let Ok(action) = game.parse_action(&text) {
                prop_assert!(game.is_legal(action));
            }
        }
    }

    #[test]
    fn illegal_actions_leave_the_state_unchanged(actions in prop::collection::vec(any::<u16>(), 0..60)) {
        let mut game = Chess::start();
        for action in actions {
            let (before, legal) = (game.clone(), game.is_legal(action));
            game.play(action);
            prop_assert_eq!(game == before, !legal);
            let _ = game.action_to_string(action);
        }
    }
}
