//! Chess knowledge on positions of random games: static exchange evaluation, move categories, static evaluation, quiescence.

use cozy_chess::{Board, Color, Move, Piece};
use pondertree_core::chess::evaluation::Pesto;
use pondertree_core::chess::quiescence::{Quiescence, MATE};
use pondertree_core::chess::{categorize, see, see_at_least, value, Categorized, CategoryOptions, MoveCategory, SeeValues};
use pondertree_core::games::chess::Chess;
use pondertree_core::games::{Action, Game};
use pondertree_core::{Purpose, Random};

const STARTS: [&str; 8] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "4k3/PPP3PP/8/8/8/8/ppp3pp/4K3 w - - 0 1",
    "4k3/p1p1p1p1/8/1P1P1P1P/1p1p1p1p/8/P1P1P1P1/4K3 w - - 0 1",
];

/// Calls `visit` with positions of random games.
fn walk(seed: u64, positions: usize, mut visit: impl FnMut(&Chess, &mut Random)) {
    let mut seen = 0;
    for number in 0.. {
        let mut random = Random::new(seed ^ (number << 20), Purpose::Playout);
        let mut game = Chess::from_fen(STARTS[number as usize % STARTS.len()]).expect("a position");
        for _ in 0..120 {
            if game.outcome().is_some() {
                break;
            }
            visit(&game, &mut random);
            seen += 1;
            if seen == positions {
                return;
            }
            game.play_random(&mut random);
        }
    }
}

fn legal_moves(board: &Board) -> Vec<Move> {
    let mut found = Vec::new();
    board.generate_moves(|moves| {
        found.extend(moves);
        false
    });
    found
}

/// The position with colours swapped and the board flipped vertically.
fn colour_flipped(fen: &str) -> Chess {
    let mut parts = fen.split(' ');
    let mut next = || parts.next().expect("a FEN has six parts").to_owned();
    let swap = |text: &str| -> String {
        let other = |c: char| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
        text.chars().map(other).collect()
    };
    let ranks: Vec<String> = next().split('/').rev().map(swap).collect();
    let side = if next() == "w" { "b" } else { "w" };
    let castling = swap(&next());
    let castling = format!("{}{}", castling.replace(char::is_lowercase, ""), castling.replace(char::is_uppercase, ""));
    let castling = if castling == "--" { "-".into() } else { castling };
    let en_passant = next().replace('3', "x").replace('6', "3").replace('x', "6");
    let text = format!("{} {side} {castling} {en_passant} {} {}", ranks.join("/"), next(), next());
    Chess::from_fen(&text).expect("the flipped position")
}

/// Reference SEE: negamax over all legal captures on a square, where either side may stop.
fn reference_see(board: &Board, square: cozy_chess::Square, values: &SeeValues) -> i32 {
    let enemy = board.colors(!board.side_to_move());
    let captures = legal_moves(board).into_iter().filter(|mv| mv.to == square && enemy.has(square));
    captures.map(|mv| values.gain(board, mv) - reference_see(&after(board, mv), square, values)).max().unwrap_or(0).max(0)
}

fn after(board: &Board, mv: Move) -> Board {
    let mut next = board.clone();
    next.play_unchecked(mv);
    next
}

#[test]
fn see_matches_reference_implementation() {
    let values = SeeValues::default();
    let (mut captures, mut promotions) = (0, 0);
    walk(1, 8_000, |game, _| {
        let board = game.board();
        for mv in legal_moves(board) {
            if board.colors(board.side_to_move()).has(mv.to) {
                continue; // castling
            }
            let expected = values.gain(board, mv) - reference_see(&after(board, mv), mv.to, &values);
            assert_eq!(see(board, mv, &values), expected, "{mv} {game:?}");
            for threshold in [-330, -1, 0, 1, 100, expected, expected + 1] {
                assert_eq!(see_at_least(board, mv, &values, threshold), expected >= threshold, "{mv} {threshold} {game:?}");
            }
            captures += u32::from(values.gain(board, mv) != 0);
            promotions += u32::from(mv.promotion.is_some());
        }
    });
    assert!(captures > 15_000 && promotions > 1_500, "{captures} {promotions}");
}

#[test]
fn see_of_many_queens_is_bounded() {
    let game = Chess::from_fen("k2qq2q/1q6/8/q2Q3q/8/1Q1Q1Q2/Q5Q1/K2Q4 w - - 0 1").expect("a position");
    let start = std::time::Instant::now();
    for mv in legal_moves(game.board()) {
        assert!(see(game.board(), mv, &SeeValues::default()).abs() <= 1700);
    }
    assert!(start.elapsed().as_secs() < 5);
}

/// Reference implementation of the categories.
fn reference_category(game: &Chess, hints: &CategoryOptions, scores: &[(Action, f64)], action: Action) -> MoveCategory {
    let next = game.after(action);
    let mv = game.legal_move(action).expect("a legal move");
    let history = |action| scores.iter().find(|(other, _)| *other == action).map_or(0.0, |(_, score)| *score);
    let quiet = |action| !game.is_capture(action) && game.legal_move(action).and_then(|mv| mv.promotion) != Some(Piece::Queen);
    let highest = scores.iter().filter(|(action, _)| quiet(*action)).map(|(_, score)| *score).fold(0.0, f64::max);
    if hints.mate == Some(action) || next.in_check() && legal_moves(next.board()).is_empty() {
        MoveCategory::ForcedMate
    } else if mv.promotion == Some(Piece::Queen) {
        MoveCategory::PromotionToQueen
    } else if game.is_capture(action) {
        let won = see(game.board(), mv, &hints.values);
        if won > hints.see_threshold {
            MoveCategory::WinningCapture
        } else if won.abs() <= hints.see_threshold {
            MoveCategory::EqualCapture
        } else {
            MoveCategory::LosingCapture
        }
    } else if hints.killers[0] == Some(action) {
        MoveCategory::KillerMove1
    } else if hints.killers[1] == Some(action) {
        MoveCategory::KillerMove2
    } else if game.gives_check(action) {
        MoveCategory::Check
    } else if history(action) > 0.0 && history(action) >= highest / 2.0 {
        MoveCategory::HistoryHeuristic
    } else {
        MoveCategory::OtherQuiet
    }
}

#[test]
fn categories_match_reference_implementation() {
    let mut seen = [0; 10];
    let mut found = Vec::new();
    walk(2, 20_000, |game, random| {
        let legal = game.legal();
        let mut pick = || Some(legal[random.choose(legal.len() as u32) as usize]);
        let killers = [pick(), pick()];
        let mate = pick().filter(|action| action % 7 == 0);
        let hints = CategoryOptions { mate, killers, see_threshold: [0, 0, 50, 300][legal.len() % 4], ..CategoryOptions::default() };
        let scores: Vec<(Action, f64)> = legal.iter().map(|&action| (action, f64::from(action % 11) - 5.0)).collect();
        categorize(game, &hints, |action| f64::from(action % 11) - 5.0, &mut found);
        assert_eq!(found.len(), legal.len());
        for (&Categorized { action, category, gives_check, .. }, &expected) in found.iter().zip(&legal) {
            assert_eq!((action, gives_check), (expected, game.gives_check(action)));
            assert_eq!(category, reference_category(game, &hints, &scores, action), "{action} {hints:?} {game:?}");
            seen[category as usize] += 1;
        }
    });
    assert!(seen.iter().all(|&count| count > 200), "{seen:?}");
}

/// On a million positions.
#[test]
fn exactly_the_legal_moves_have_categories() {
    let mut found = Vec::new();
    walk(3, 1_000_000, |game, random| {
        let killers = [Some(random.choose(4672) as Action), Some(random.choose(4672) as Action)];
        let hints = CategoryOptions { killers, ..CategoryOptions::default() };
        categorize(game, &hints, |action| f64::from(action % 5), &mut found);
        assert!(found.iter().map(|one| one.action).eq(game.legal()), "{game:?}");
    });
}

#[test]
fn a_finished_game_has_no_categories() {
    let mut found = Vec::new();
    categorize(&Chess::start(), &CategoryOptions::default(), |_| 0.0, &mut found);
    assert_eq!(found.len(), 20);
    for fen in ["7k/5Q2/8/8/8/8/8/K7 b - - 0 1", "k7/8/8/8/8/8/8/6NK w - - 0 1", "k7/8/8/8/8/8/8/6RK w - - 150 100"] {
        categorize(&Chess::from_fen(fen).expect("a position"), &CategoryOptions::default(), |_| 0.0, &mut found);
        assert!(found.is_empty(), "{fen}");
    }
}

#[test]
fn evaluation_is_colour_symmetric() {
    let mut weights = Pesto::default().weights().clone();
    weights.tempo_bonus = [17, 9];
    for pesto in [Pesto::default(), Pesto::published(), Pesto::new(weights, 100.0).expect("weights")] {
        let mut kinds = [0; 3];
        walk(4, 30_000, |game, _| {
            let other = colour_flipped(&game.fen());
            assert_eq!(pesto.eval_plus_game_phase(game.board()), pesto.eval_plus_game_phase(other.board()), "{game:?}");
            let quiescence = Quiescence::default();
            let quiet = quiescence.search(game.board(), &pesto);
            assert_eq!(quiet, quiescence.search(other.board(), &pesto), "{game:?}");
            assert!(quiet.nodes < 3 * quiescence.max_nodes);
            let squashed = value(game, &pesto, true);
            assert!((-1.0..=1.0).contains(&squashed));
            // The value differs from the squashed score only against a bare king.
            let is_bare = Color::ALL.into_iter().any(|color| game.board().colors(color).len() == 1);
            assert!(is_bare || squashed == pesto.squash(quiet.score), "{game:?}");
            kinds[(quiet.score.signum() + 1) as usize] += 1;
        });
        assert!(kinds[0] > 1000 && kinds[2] > 1000, "{kinds:?}");
    }
}

#[test]
fn evaluation_without_tempo_is_antisymmetric() {
    let mut weights = Pesto::default().weights().clone();
    weights.tempo_bonus = [0, 0];
    let pesto = Pesto::new(weights, 100.0).expect("weights");
    walk(5, 20_000, |game, _| {
        if let Some(passed) = game.board().null_move() {
            assert_eq!(pesto.eval(game.board()), -pesto.eval(&passed), "{game:?}");
        }
    });
}

/// Reference quiescence search without alpha-beta and delta pruning.
fn reference_quiescence(board: &Board, pesto: &Pesto, depth: u32, ply: i32) -> i32 {
    let heavy = board.pieces(Piece::Pawn) | board.pieces(Piece::Rook) | board.pieces(Piece::Queen);
    if heavy.is_empty()
        && Chess::from_fen(&board.to_string()).is_ok_and(|game| game.termination().is_some_and(|end| end.name() == "insufficient_material"))
    {
        return 0;
    }
    if depth == 0 {
        return pesto.eval(board);
    }
    let values = SeeValues::default();
    let in_check = !board.checkers().is_empty();
    let mut best = if in_check { -MATE + ply } else { pesto.eval(board) };
    for mv in legal_moves(board) {
        let capture =
            board.colors(!board.side_to_move()).has(mv.to) || board.pieces(Piece::Pawn).has(mv.from) && mv.from.file() != mv.to.file();
        let wanted = match mv.promotion {
            Some(piece) => piece == Piece::Queen,
            None => capture,
        };
        if in_check || wanted && (values.gain(board, mv) >= worth(board, mv, &values) || see(board, mv, &values) >= 0) {
            best = best.max(-reference_quiescence(&after(board, mv), pesto, depth - 1, ply + 1));
        }
    }
    best
}

fn worth(board: &Board, mv: Move, values: &SeeValues) -> i32 {
    mv.promotion.or_else(|| board.piece_on(mv.from)).map_or(0, |piece| values.of(piece))
}

#[test]
fn quiescence_matches_reference_implementation() {
    let pesto = Pesto::default();
    let mut changed = 0;
    walk(6, 6_000, |game, _| {
        let expected_score = reference_quiescence(game.board(), &pesto, 3, 0);
        let search = Quiescence { max_depth: 3, max_nodes: u32::MAX, delta_margin: None, values: SeeValues::default() };
        assert_eq!(search.search(game.board(), &pesto).score, expected_score, "{game:?}");
        for (alpha, beta) in [(-100, 100), (expected_score - 1, expected_score), (expected_score, expected_score + 1)] {
            let found = search.search_within(game.board(), &pesto, alpha, beta).score;
            assert!(
                if expected_score <= alpha {
                    expected_score <= found && found <= alpha
                } else {
                    expected_score >= beta || found == expected_score
                },
                "{game:?}"
            );
            assert!(expected_score < beta || found >= beta && found <= expected_score, "{game:?}");
        }
        changed += u32::from(expected_score != pesto.eval(game.board()));
    });
    assert!(changed > 1000, "{changed}");
}

#[test]
fn quiescence_takes_hanging_queens_and_scores_mate() {
    let pesto = Pesto::default();
    let search = Quiescence::default();
    let board = |fen: &str| Chess::from_fen(fen).expect("a position").board().clone();
    let hanging = board("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
    assert!(pesto.eval(&hanging) < -700 && search.search(&hanging, &pesto).score > 50);
    let mated = board("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1");
    assert_eq!(search.search(&mated, &pesto).score, -MATE);
    assert_eq!(value(&Chess::from_fen("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1").expect("a position"), &pesto, true), -1.0);
    assert_eq!(Quiescence { max_depth: 0, ..search }.search(&hanging, &pesto).score, pesto.eval(&hanging));
}

#[test]
fn start_position_scores_tempo_at_full_phase() {
    let start = Chess::default();
    assert_eq!(Pesto::published().eval_plus_game_phase(start.board()), (0, 24));
    assert_eq!(value(&start, &Pesto::published(), false), 0.0);
    let pesto = Pesto::default();
    assert_eq!(pesto.eval_plus_game_phase(start.board()), (pesto.weights().tempo_bonus[0], 24));
}
