//! Invariants of the engine that hold after every search, on every compiled game.

use pondertree_core::games::analysis::Analyzed;
use pondertree_core::games::connect_four::ConnectFour;
use pondertree_core::games::othello::Othello;
use pondertree_core::games::tic_tac_toe::TicTacToe;
use pondertree_core::games::{Compiled, Game, PythonGame, World, CHANCE};
use pondertree_core::{
    for_each_game, tree_key, Backup, ChanceMode, Error, Forest, LeafKind, PlayoutPolicy, Policy, Rule, SearchConfig, StepResult, Tree,
    Ucb1, WorldConfig, ROOT, UNPROVEN,
};
use proptest::prelude::*;

fn config<G: Game>() -> SearchConfig {
    SearchConfig {
        rule: Rule::Ucb1(Ucb1 { c_param: 1.0, normalize: false }),
        leaf: LeafKind::Playout,
        playout_policy: PlayoutPolicy::Random,
        max_depth: None,
        solve: false,
        in_flight: 1,
        forced_depth: 0,
        early_stop: false,
        trace: false,
        num_players: G::NUM_PLAYERS,
        zero_sum: !G::HAS_REWARDS,
        has_rewards: G::HAS_REWARDS,
        has_chance: G::HAS_CHANCE,
        chance: ChanceMode::Balanced,
        chance_width: 36,
        discount: 1.0,
        backup: Backup::Mean,
        num_actions: G::start().dimensions().num_actions,
        max_nodes: None,
        max_bytes: None,
        threads: 1,
    }
}

fn forest<W: World>(config: SearchConfig) -> Result<Forest<W>, Error> {
    WorldConfig::new(config, None).map(Forest::new)
}

/// Returns the player whose values a node has: player 0 at chance nodes.
fn owner(to_play: u8) -> u8 {
    if to_play == CHANCE {
        0
    } else {
        to_play
    }
}

/// Visits of children sum to the visits of the node minus one (none at chance nodes), Q stays in [-1, 1] without rewards, nothing is
/// in flight.
fn check_invariants(tree: &Tree) {
    let mut stack = vec![(ROOT, tree.root_visits + 1)];
    let mut edges_seen = 0;
    while let Some((index, visits)) = stack.pop() {
        let node = tree.node(index);
        let edges = tree.edges(node);
        edges_seen += edges.actions.len();
        assert!(node.opened <= node.num_edges);
        if !node.is_exact() {
            let own = u32::from(node.to_play != CHANCE);
            assert_eq!(edges.visits.iter().sum::<u32>(), visits - own, "child visits sum to the node's minus its evaluation");
        }
        for place in 0..edges.actions.len() {
            assert_eq!(edges.visits[place] > 0, place < usize::from(node.opened), "opened edges come first");
            assert!(tree.shape().reward_width > 0 || edges.sums[place].abs() <= f64::from(edges.visits[place]) + 1e-9);
            assert_eq!(edges.in_flight.get(place).copied().unwrap_or(0), 0);
            if let Some(child) = edges.links[place].child() {
                if let Some(value) = edges.links[place].proven() {
                    let child = tree.node(child);
                    assert_eq!(value, if owner(child.to_play) == owner(node.to_play) { child.proven } else { -child.proven });
                }
                stack.push((child, edges.visits[place]));
            }
        }
    }
    assert_eq!(edges_seen, tree.num_edges());
}

fn root_visits<G: Analyzed>(forest: &Forest<Compiled<G>>, index: usize) -> Vec<(u16, u32)> {
    let tree = forest.tree(index).expect("a tree").tree();
    let edges = tree.edges(tree.node(ROOT));
    let mut visits: Vec<(u16, u32)> = edges.actions.iter().copied().zip(edges.visits.iter().copied()).collect();
    visits.sort_unstable();
    visits
}

fn searched<G: Analyzed>(config: SearchConfig, threads: usize, states: &[G], simulations: u64, seed: u64) -> Forest<Compiled<G>> {
    let mut forest = forest::<Compiled<G>>(SearchConfig { threads, ..config }).expect("a valid config");
    for (row, state) in states.iter().enumerate() {
        forest.plant_all(vec![(state.clone(), tree_key(seed, 0, row as u64))], &[]).expect("a game that goes on");
        forest.allow(row, simulations).expect("a tree");
    }
    forest.run(false, &|| false);
    forest
}

/// Returns a decision after some of the moves and outcomes that numbers choose.
fn opening<G: Analyzed>(numbers: &[u16]) -> G {
    let (mut state, mut decision) = (G::start(), G::start());
    for &number in numbers {
        let legal = state.legal();
        let after = state.after(legal[number as usize % legal.len()]);
        if after.outcome().is_some() {
            break;
        }
        state = after;
        if state.to_play() != CHANCE {
            decision = state.clone();
        }
    }
    decision
}

/// `search_and_check` of one game.
type SearchAndCheck = fn(&[u16], u64, u64, bool, u32);

fn search_and_check<G: Analyzed>(numbers: &[u16], seed: u64, simulations: u64, solve: bool, in_flight: u32) {
    let config = SearchConfig { solve, in_flight, ..config::<G>() };
    let forest = searched(config, 1, &[opening::<G>(numbers)], simulations, seed);
    let tree = forest.tree(0).expect("a tree");
    check_invariants(tree.tree());
    let decided = tree.tree().node(ROOT).proven != UNPROVEN;
    assert!(decided || forest.progress().0 == simulations);
    assert_eq!(u64::from(tree.tree().root_visits), forest.progress().0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn invariants_hold_after_every_search(
        numbers in prop::collection::vec(any::<u16>(), 0..30),
        seed in any::<u64>(),
        simulations in 1u64..400,
        solve in any::<bool>(),
        in_flight in prop::sample::select(vec![1u32, 2, 5, 16]),
        game in any::<prop::sample::Index>(),
    ) {
        macro_rules! searches {
            ($([$name:ident, $game:ty $(, $($start:tt)*)?])*) => { [$(search_and_check::<$game>),*] };
        }
        let searches: &[SearchAndCheck] = &for_each_game!(searches);
        game.get(searches)(&numbers, seed, simulations, solve, in_flight);
    }

    #[test]
    fn trees_do_not_depend_on_threads_or_other_trees(seed in any::<u64>(), in_flight in prop::sample::select(vec![1u32, 4])) {
        let states: Vec<ConnectFour> = (0..6).map(|n| opening(&[n, n / 2, 3])).collect();
        let config = SearchConfig { in_flight, ..config::<ConnectFour>() };
        let one = searched(config.clone(), 1, &states, 200, seed);
        let many = searched(config.clone(), 4, &states, 200, seed);
        for row in 0..states.len() {
            prop_assert_eq!(root_visits(&one, row), root_visits(&many, row));
        }
        let single = searched(config, 3, &states[..1], 200, seed);
        prop_assert_eq!(root_visits(&one, 0), root_visits(&single, 0));
    }

    #[test]
    fn rolled_back_batch_leaves_the_tree_unchanged(seed in any::<u64>(), batches in 1usize..30, in_flight in 1u32..9, solve in any::<bool>()) {
        let config = SearchConfig { leaf: LeafKind::External, in_flight, solve, ..config::<TicTacToe>() };
        let plant = || {
            let mut forest = forest::<Compiled<TicTacToe>>(config.clone()).expect("a valid config");
            forest.plant_all(vec![(opening(&[4, 0, 3]), seed)], &[]).expect("a game that goes on");
            forest.allow(0, 10_000).expect("a tree");
            forest
        };
        let (mut plain, mut rolled_back) = (plant(), plant());
        for batch in 0..batches {
            // One of the two rolls back every other batch and gathers it again.
            if batch % 2 == 0 {
                rolled_back.gather().expect("no rows to step");
                rolled_back.roll_back();
            }
            for forest in [&mut plain, &mut rolled_back] {
                forest.gather().expect("no rows to step");
                let values: Vec<f64> = forest.waiting().iter().map(|row| (row.key % 2001) as f64 / 1000.0 - 1.0).collect();
                forest.apply(forest.all(), Policy::Uniform, &values).expect("sound values");
            }
        }
        prop_assert_eq!(root_visits(&plain, 0), root_visits(&rolled_back, 0));
        let (a, b) = (plain.tree(0).expect("a tree"), rolled_back.tree(0).expect("a tree"));
        prop_assert_eq!(plain.progress(), rolled_back.progress());
        prop_assert_eq!(a.tree().num_nodes(), b.tree().num_nodes());
        check_invariants(b.tree());
    }

    #[test]
    fn advance_keeps_the_subtree(seed in any::<u64>(), plies in 1usize..6) {
        let mut forest = searched(config::<ConnectFour>(), 1, &[ConnectFour::start()], 600, seed);
        for _ in 0..plies {
            let (visits, action) = {
                let tree = forest.tree(0).expect("a tree").tree();
                let edges = tree.edges(tree.node(ROOT));
                let place = (0..edges.actions.len()).max_by_key(|&place| edges.visits[place]).expect("a move");
                let child = edges.links[place].child().expect("a node");
                let node = tree.node(child);
                (tree.edges(node).visits.to_vec(), edges.actions[place])
            };
            forest.advance(0, action).expect("a legal move");
            let tree = forest.tree(0).expect("a tree").tree();
            prop_assert_eq!(tree.edges(tree.node(ROOT)).visits.to_vec(), visits);
            check_invariants(tree);
            forest.allow(0, 100).expect("a tree");
            forest.run(false, &|| false);
            check_invariants(forest.tree(0).expect("a tree").tree());
        }
    }
}

#[test]
fn split_search_equals_one_search() {
    let whole = searched(config::<Othello>(), 1, &[Othello::start()], 300, 5);
    let mut pieces = searched(config::<Othello>(), 1, &[Othello::start()], 100, 5);
    for _ in 0..4 {
        pieces.allow(0, 50).expect("a tree");
        pieces.run(false, &|| false);
    }
    assert_eq!(root_visits(&whole, 0), root_visits(&pieces, 0));
}

#[test]
fn full_tree_stops_growing() {
    let limited = SearchConfig { max_nodes: Some(500), ..config::<ConnectFour>() };
    let forest = searched(limited, 1, &[ConnectFour::start()], 100_000, 1);
    let tree = forest.tree(0).expect("a tree");
    assert!(tree.tree().positions <= 500 && tree.tree().positions > 450);
    let small = SearchConfig { max_bytes: Some(200_000), ..config::<ConnectFour>() };
    let forest = searched(small, 1, &[ConnectFour::start()], 100_000, 1);
    let tree = forest.tree(0).expect("a tree").tree();
    assert!(tree.bytes() <= 200_000 && tree.bytes() > 100_000, "{}", tree.bytes());
    check_invariants(tree);
}

#[test]
fn memory_per_edge_is_bounded() {
    let forest = searched(config::<ConnectFour>(), 1, &[ConnectFour::start()], 20_000, 1);
    let tree = forest.tree(0).expect("a tree").tree();
    assert!((tree.bytes() as f64) / (tree.num_edges() as f64) <= 28.0);
}

#[test]
fn invalid_configs_are_refused() {
    assert!(forest::<Compiled<ConnectFour>>(SearchConfig { in_flight: 0, ..config::<ConnectFour>() }).is_err());
    assert!(forest::<Compiled<ConnectFour>>(SearchConfig { threads: 0, ..config::<ConnectFour>() }).is_err());
}

fn external() -> Forest<PythonGame> {
    forest(SearchConfig { leaf: LeafKind::External, num_actions: 3, ..config::<TicTacToe>() }).expect("a valid config")
}

/// A position that is neither terminal nor evaluated.
const OPEN: StepResult<'_> = StepResult { to_play: 1, returns: None, rewards: &[], legal: &[0, 1], probabilities: &[], values: &[] };

#[test]
fn rollback_releases_slots() {
    let mut forest = external();
    let root = forest.plant(0, &[0, 1, 2], 7).expect("sound");
    forest.allow(0, 100).expect("a tree");
    let slot = forest.gather().expect("rows")[0].slot;
    assert_ne!(slot, root);
    assert_eq!(forest.roll_back(), vec![slot]);
    assert_eq!(forest.gather().expect("rows")[0].slot, slot, "a released slot is allocated again");
    forest.step(&OPEN).expect("sound");
    assert_eq!(forest.roll_back(), vec![slot], "after step the node has the slot, and the rollback releases it");
    assert_eq!(forest.tree(0).expect("a tree").tree().num_nodes(), 1);
}

#[test]
fn invalid_steps_leave_the_forest_unchanged() {
    let mut forest = external();
    forest.plant(0, &[0, 1, 2], 7).expect("sound");
    forest.allow(0, 10).expect("a tree");
    assert_eq!(forest.gather().expect("rows").len(), 1);
    for wrong in [
        StepResult { to_play: 2, ..OPEN },
        StepResult { legal: &[], ..OPEN },
        StepResult { legal: &[1, 1], ..OPEN },
        StepResult { legal: &[3], ..OPEN },
        StepResult { values: &[1.0], ..OPEN },
        StepResult { values: &[0.5, 0.5], ..OPEN },
        StepResult { values: &[f64::NAN, 0.0], ..OPEN },
        StepResult { returns: Some(&[1.0]), ..OPEN },
        StepResult { returns: Some(&[1.0, 1.0]), ..OPEN },
        StepResult { returns: Some(&[f64::NAN, 0.0]), ..OPEN },
    ] {
        assert!(forest.step(&wrong).is_err(), "{wrong:?}");
    }
    assert!(forest.apply(0..1, Policy::Uniform, &[]).is_err(), "rows wait for step");
    assert!(forest.gather().is_err(), "rows wait for step");
    forest.step(&OPEN).expect("sound");
    assert!(forest.step(&OPEN).is_err(), "no row waits");
    for wrong in [vec![], vec![f64::NAN], vec![0.0, f64::INFINITY], vec![0.0; 3]] {
        assert!(forest.apply(0..1, Policy::Uniform, &wrong).is_err(), "{wrong:?}");
    }
    forest.apply(0..1, Policy::Uniform, &[0.5]).expect("sound");
    let tree = forest.tree(0).expect("a tree").tree();
    assert_eq!(tree.root_visits, 1);
    assert!((tree.edges(tree.node(ROOT)).sums[0] - -0.5).abs() < 1e-12, "the value was for the player to move at the leaf");
}

#[test]
fn positions_evaluated_with_their_step_are_backed_up_as_by_apply() {
    let (mut stepped, mut applied) = (external(), external());
    for forest in [&mut stepped, &mut applied] {
        forest.plant(0, &[0, 1, 2], 7).expect("sound");
        forest.allow(0, 20).expect("a tree");
    }
    for simulation in 0..20 {
        let value = f64::from(simulation) / 20.0;
        assert_eq!(stepped.next_row().expect("sound"), applied.next_row().expect("sound"));
        stepped.step(&StepResult { values: &[value, -value], ..OPEN }).expect("sound");
        applied.step(&OPEN).expect("sound");
        for forest in [&mut stepped, &mut applied] {
            assert_eq!(forest.next_row().expect("sound"), None, "one leaf is in flight");
        }
        assert_eq!((stepped.num_waiting(0..1), applied.num_waiting(0..1)), (0, 1));
        stepped.apply(0..1, Policy::Uniform, &[]).expect("sound");
        applied.apply(0..1, Policy::Uniform, &[value, -value]).expect("sound");
    }
    let [stepped, applied] = [&stepped, &applied].map(|forest| forest.tree(0).expect("a tree").tree());
    assert_eq!(stepped.edges(stepped.node(ROOT)).sums, applied.edges(applied.node(ROOT)).sums);
    assert_eq!(stepped.num_nodes(), applied.num_nodes());
    assert_eq!(stepped.root_visits, 20);
}
