//! Mate search against a reference recursion over game states, which respects every draw rule.
#![allow(clippy::unwrap_used, missing_docs)]

use pondertree_core::chess::mate::{checks_first, mate_search, Verdict, MAX_DEPTH};
use pondertree_core::games::chess::Chess;
use pondertree_core::games::Game;
use pondertree_core::{Error, Purpose, Random};

fn state(fen: &str) -> Chess {
    Chess::from_fen(fen).unwrap()
}

fn find(state: &Chess, depth: u32) -> Verdict {
    mate_search(state, depth, None, &|| false).unwrap().verdict
}

fn children(state: &Chess) -> Vec<Chess> {
    state.legal().into_iter().map(|action| state.after(action)).collect()
}

/// Whether the side to move mates within `n` moves; draws claimable at the root are ignored.
fn mates(state: &Chess, n: u32) -> bool {
    n > 0
        && children(state).iter().any(|child| match child.outcome_in_search() {
            Some(result) => result != 0,
            None => mated(child, n - 1),
        })
}

/// Whether the side to move, which is not mated yet, is mated within `n` moves of the other side.
fn mated(state: &Chess, n: u32) -> bool {
    n > 0 && children(state).iter().all(|child| child.outcome_in_search().is_none() && mates(child, n))
}

fn reference_verdict(state: &Chess, depth: u32) -> Verdict {
    (1..=depth)
        .find_map(|n| match (mates(state, n), mated(state, n)) {
            (true, _) => Some(Verdict::MateIn(n)),
            (_, true) => Some(Verdict::MatedIn(n)),
            _ => None,
        })
        .unwrap_or(Verdict::Unknown)
}

/// Checks the verdict, that the line is legal, of the stated length and ends in mate, and the proofs of checks alone.
fn check(game: &Chess, depth: u32) -> Verdict {
    let answer = mate_search(game, depth, None, &|| false).unwrap();
    assert_eq!(answer.verdict, reference_verdict(game, depth), "{game:?}");
    let mut end = game.clone();
    for (ply, &action) in answer.line.iter().enumerate() {
        assert!(end.is_legal(action) && (ply == 0 || end.outcome_in_search().is_none()), "{game:?}");
        end.play(action);
    }
    let length = match answer.verdict {
        Verdict::MateIn(n) => 2 * n - 1,
        Verdict::MatedIn(n) => 2 * n,
        Verdict::Unknown => 0,
    };
    assert_eq!(answer.line.len(), length as usize, "{game:?}");
    let winner = if length % 2 == 1 { game.to_play() } else { 1 - game.to_play() };
    assert!(length == 0 || end.outcome() == Some(1 - 2 * winner as i8), "{game:?}");
    if let Some((n, action)) = checks_first(game, depth, 10_000) {
        let Verdict::MateIn(shortest) = answer.verdict else { panic!("{game:?}: a false mate in {n}") };
        assert!(shortest <= n && n <= depth && game.gives_check(action), "{game:?}");
        let next = game.after(action);
        assert!(if n == 1 { next.outcome().is_some() } else { mated(&next, n - 1) }, "{game:?}");
    }
    answer.verdict
}

/// Endings with short mates, which the halfmove clock may prevent.
const ENDINGS: [&str; 8] = [
    "7k/8/5K2/8/8/8/8/R7 w - -",
    "7k/8/5K2/6Q1/8/8/8/8 w - -",
    "k7/8/1K6/8/8/3BB3/8/8 w - -",
    "K7/8/1k6/8/8/8/6r1/7r b - -",
    "8/8/8/8/8/2k5/7q/K6R w - -",
    "7k/5K1p/8/5B2/8/8/8/6N1 w - -",
    "8/8/8/8/8/5k2/6p1/6K1 b - -",
    "k7/1p6/1K6/8/8/8/8/2R5 w - -",
];

#[test]
fn endings_match_reference_with_all_clocks_and_random_histories() {
    let mut random = Random::new(1, Purpose::Playout);
    let (mut wins, mut losses, mut late) = (0, 0, 0);
    for fen in ENDINGS {
        for clock in [0, 94, 95, 96, 97, 98, 99, 100, 130, 148, 149] {
            for _ in 0..4 {
                let mut game = state(&format!("{fen} {clock} 100"));
                for _ in 0..12 {
                    if game.outcome().is_some() {
                        break;
                    }
                    let verdict = check(&game, 2);
                    wins += u32::from(matches!(verdict, Verdict::MateIn(_)));
                    losses += u32::from(matches!(verdict, Verdict::MatedIn(_)));
                    let fresh = format!("{} 0 1", game.fen().rsplitn(3, ' ').last().unwrap());
                    late += u32::from(find(&state(&fresh), 2) != verdict);
                    game.play_random(&mut random);
                }
            }
        }
    }
    assert!(wins > 300 && losses > 50 && late > 50, "{wins} {losses} {late}");
}

#[test]
fn repeated_positions_match_reference() {
    // Shuffling makes the line to the mate a draw by repetition.
    let mut random = Random::new(2, Purpose::Playout);
    let (mut mattered, mut mate) = (0, 0);
    for number in 0..600 {
        let mut game = state(&format!("{} 0 1", ENDINGS[number % 5]));
        for _ in 0..random.choose(6) {
            if game.outcome().is_none() {
                game.play_random(&mut random);
            }
        }
        let back = |text: &str| format!("{}{}", &text[2..4], &text[..2]);
        let mut cycle: Vec<String> = Vec::new();
        let mut walk = game.clone();
        for _ in 0..2 {
            let actions = walk.legal();
            if actions.is_empty() {
                break;
            }
            let action = actions[random.choose(actions.len() as u32) as usize];
            cycle.push(walk.action_to_string(action));
            walk.play(action);
        }
        if cycle.len() < 2 {
            continue;
        }
        cycle.extend([back(&cycle[0]), back(&cycle[1])]);
        for text in cycle.iter().cycle().take(12) {
            let Ok(action) = game.parse_action(text) else { break };
            game.play(action);
            if game.outcome().is_some() {
                break;
            }
            let verdict = check(&game, 2);
            mate += u32::from(verdict != Verdict::Unknown);
            mattered += u32::from(verdict != find(&state(&game.fen()), 2));
        }
    }
    assert!(mate > 200 && mattered > 20, "{mate} {mattered}");
}

#[test]
fn middlegames_match_reference() {
    let mut random = Random::new(3, Purpose::Playout);
    let mut decided = 0;
    for _ in 0..40 {
        let mut game = Chess::default();
        for ply in 0..120 {
            if game.outcome().is_some() {
                break;
            }
            if ply > 20 && ply % 5 == 0 {
                decided += u32::from(check(&game, 2) != Verdict::Unknown);
            }
            game.play_random(&mut random);
        }
    }
    assert!(decided > 5, "{decided}");
}

#[test]
fn known_positions_have_known_verdicts() {
    for (fen, verdict) in [
        // Quiet first moves, a promotion to a rook where the queen would stalemate, and mates that come in time or too late.
        ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", Verdict::MateIn(2)),
        ("r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1", Verdict::MateIn(3)),
        ("8/5P1k/5K2/8/8/8/8/8 w - - 0 1", Verdict::MateIn(2)),
        ("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 99 90", Verdict::MateIn(1)),
        ("7k/8/5K2/8/8/8/8/R7 w - - 97 90", Verdict::MateIn(2)),
        ("7k/8/5K2/8/8/8/8/R7 w - - 98 90", Verdict::Unknown),
        ("7k/5K2/8/8/8/8/8/R7 b - - 98 90", Verdict::MatedIn(1)),
        ("7k/5K2/8/8/8/8/8/R7 b - - 99 90", Verdict::Unknown),
        ("8/8/8/3k4/8/8/8/KQ6 w - - 0 1", Verdict::Unknown),
        ("k7/8/8/8/8/8/8/K6Q b - - 0 1", Verdict::Unknown),
    ] {
        assert_eq!(find(&state(fen), 3), verdict, "{fen}");
    }
}

#[test]
fn smaller_budget_never_adds_proofs() {
    let game = state("r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1");
    let whole = mate_search(&game, 3, None, &|| false).unwrap();
    for budget in 0..=whole.nodes + 5 {
        let answer = mate_search(&game, 3, Some(budget), &|| false).unwrap();
        assert!(answer.nodes <= budget);
        assert_eq!(answer.verdict, if budget < whole.nodes { Verdict::Unknown } else { whole.verdict }, "{budget}");
        assert!(checks_first(&game, 3, budget).is_none_or(|(n, _)| n == 3));
    }
}

#[test]
fn stop_ends_the_search() {
    let polls = std::cell::Cell::new(0);
    let stop = || {
        polls.set(polls.get() + 1);
        polls.get() == 3
    };
    let answer = mate_search(&Chess::default(), 30, None, &stop).unwrap();
    assert_eq!((answer.verdict, polls.get()), (Verdict::Unknown, 3));
}

#[test]
fn finished_games_and_excessive_depth_are_rejected() {
    let over = state("7k/5Q2/8/8/8/8/8/K7 b - - 0 1");
    assert!(matches!(mate_search(&over, 1, None, &|| false), Err(Error::GameOver(_))));
    assert!(matches!(mate_search(&Chess::default(), MAX_DEPTH + 1, None, &|| false), Err(Error::InvalidArgument(_))));
    assert_eq!(find(&Chess::default(), 0), Verdict::Unknown);
    assert_eq!(checks_first(&over, 3, 1000), None);
}
