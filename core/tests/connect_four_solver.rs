//! The solver of Connect 4 against negamax, its mirror image, and its own children.

use std::cell::Cell;
use std::collections::HashMap;

use pondertree_core::games::connect_four::ConnectFour;
use pondertree_core::games::{Action, Game};
use pondertree_core::solvers::connect_four::{solve, Ending, Solution, SolveOptions};
use pondertree_core::{Error, Purpose, Random};
use proptest::prelude::*;

const STRONG: SolveOptions = SolveOptions { weak: false, threads: 1, memory: 1 << 24, max_nodes: u64::MAX };
const WEAK: SolveOptions = SolveOptions { weak: true, ..STRONG };

fn solve_one(state: &ConnectFour, options: &SolveOptions) -> Solution {
    solve(&[*state], options, &mut || false).expect("not over")[0].clone().expect("no limit")
}

/// The actions of a random game that is not over after `plies` plies.
fn random_actions(key: u64, plies: u32) -> Vec<Action> {
    for attempt in 0.. {
        let mut random = Random::new(key.wrapping_mul(1_000_003).wrapping_add(attempt), Purpose::Playout);
        let (mut state, mut actions) = (ConnectFour::start(), Vec::new());
        while state.outcome().is_none() && actions.len() < plies as usize {
            let choices = state.legal();
            actions.push(choices[random.choose(choices.len() as u32) as usize]);
            state.play(actions[actions.len() - 1]);
        }
        if state.outcome().is_none() {
            return actions;
        }
    }
    unreachable!()
}

fn after(actions: impl IntoIterator<Item = Action>) -> ConnectFour {
    let mut state = ConnectFour::start();
    actions.into_iter().for_each(|action| state.play(action));
    state
}

/// A key that orders (value, plies) by preference of the player who receives it.
fn rank((value, plies): (i8, u32)) -> (i8, i64) {
    (value, -i64::from(value) * i64::from(plies))
}

/// Value and plies for the player to move by exhaustive negamax, independent of the solver.
fn negamax(state: &ConnectFour, known: &mut HashMap<ConnectFour, (i8, u32)>) -> (i8, u32) {
    if let Some(result) = state.outcome() {
        // A line was made by the player who is not to move.
        return (-result.abs(), 0);
    }
    if let Some(&answer) = known.get(state) {
        return answer;
    }
    let best = state.legal().into_iter().map(|action| by_negamax(state, action, known)).max_by_key(|&answer| rank(answer));
    let best = best.expect("a move");
    known.insert(*state, best);
    best
}

fn by_negamax(state: &ConnectFour, action: Action, known: &mut HashMap<ConnectFour, (i8, u32)>) -> (i8, u32) {
    let (value, plies) = negamax(&state.after(action), known);
    (-value, plies + 1)
}

fn value_and_plies(ending: Ending) -> (i8, u32) {
    (ending.value, ending.plies.expect("strong"))
}

#[test]
fn late_scores_match_negamax() {
    let mut values = [0; 3];
    for key in 0..3000 {
        let state = after(random_actions(key, 26 + (key % 16) as u32));
        let mut known = HashMap::new();
        let expected: Vec<_> = state.legal().into_iter().map(|action| (action, by_negamax(&state, action, &mut known))).collect();
        let strong: Vec<_> =
            solve_one(&state, &STRONG).moves.into_iter().map(|(action, ending)| (action, value_and_plies(ending))).collect();
        assert_eq!(strong, expected, "{state}");
        let weak = solve_one(&state, &WEAK).moves;
        let expected = expected.into_iter().map(|(action, (value, _))| (action, Ending { value, plies: None }));
        assert_eq!(weak, expected.collect::<Vec<_>>(), "{state}");
        values[(negamax(&state, &mut known).0 + 1) as usize] += 1;
    }
    assert!(values.iter().all(|&count| count > 300), "{values:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn mirror_images_have_mirrored_scores(key: u64, plies in 13_u32..26) {
        let actions = random_actions(key, plies);
        let image = after(actions.iter().map(|&action| 6 - action));
        let mut mirrored: Vec<_> = solve_one(&image, &STRONG).moves.into_iter().map(|(action, ending)| (6 - action, ending)).collect();
        mirrored.reverse();
        prop_assert_eq!(solve_one(&after(actions), &STRONG).moves, mirrored);
    }

    #[test]
    fn scores_match_negated_best_replies(key: u64, plies in 13_u32..26) {
        let state = after(random_actions(key, plies));
        // All children in one call, so that they share a table and threads.
        let open: Vec<_> = state.legal().into_iter().map(|action| state.after(action)).collect();
        let unfinished: Vec<_> = open.iter().copied().filter(|next| next.outcome().is_none()).collect();
        let mut solutions = solve(&unfinished, &SolveOptions { threads: 3, ..STRONG }, &mut || false).expect("not over").into_iter();
        for (next, (_, ending)) in open.iter().zip(solve_one(&state, &STRONG).moves) {
            let (value, length) = match next.outcome() {
                Some(result) => (-result.abs(), 0),
                None => {
                    let replies = solutions.next().flatten().expect("solved").moves;
                    replies.into_iter().map(|(_, reply)| value_and_plies(reply)).max_by_key(|&reply| rank(reply)).expect("a move")
                }
            };
            prop_assert_eq!(value_and_plies(ending), (-value, length + 1));
        }
    }

    #[test]
    fn scores_do_not_depend_on_memory_and_threads(key: u64) {
        let states: Vec<_> = (0..6).map(|row| after(random_actions(key.wrapping_add(row), 15 + 2 * row as u32))).collect();
        let moves = |options: &SolveOptions| -> Vec<_> {
            solve(&states, options, &mut || false).expect("not over").into_iter().map(|answer| answer.expect("solved").moves).collect()
        };
        let expected: Vec<_> = states.iter().map(|state| solve_one(state, &STRONG).moves).collect();
        prop_assert_eq!(&moves(&SolveOptions { threads: 4, memory: 0, ..STRONG }), &expected);
        for (weak, strong) in moves(&SolveOptions { threads: 4, ..WEAK }).into_iter().zip(expected) {
            let values = strong.into_iter().map(|(action, ending)| (action, Ending { plies: None, ..ending }));
            prop_assert_eq!(weak, values.collect::<Vec<_>>());
        }
    }
}

#[test]
fn node_limit_and_stop_return_none() {
    let (late, early) = (after(random_actions(1, 34)), ConnectFour::start());
    let options = SolveOptions { max_nodes: 20_000, threads: 2, ..WEAK };
    let solutions = solve(&[early, late, early], &options, &mut || false).expect("not over");
    assert_eq!(solutions.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    let polls = Cell::new(0);
    let mut stop = || {
        polls.set(polls.get() + 1);
        polls.get() == 3
    };
    assert_eq!(solve(&[early; 4], &SolveOptions { threads: 2, ..WEAK }, &mut stop), Ok(vec![None; 4]));
    assert_eq!(polls.get(), 3);
    assert_eq!(solve(&[], &WEAK, &mut || false), Ok(vec![]));
}

#[test]
fn finished_games_are_rejected_by_row() {
    let over = after([0, 1, 0, 1, 0, 1, 0]);
    let refused = solve(&[ConnectFour::start(), over], &WEAK, &mut || false);
    assert!(matches!(&refused, Err(Error::GameOver(text)) if text.starts_with("states[1]: the game is over")), "{refused:?}");
}
