//! The board games against independent array implementations, over random games.

use pondertree_core::games::breakthrough::Breakthrough;
use pondertree_core::games::connect_four::ConnectFour;
use pondertree_core::games::hex::Hex;
use pondertree_core::games::othello::Othello;
use pondertree_core::games::tic_tac_toe::TicTacToe;
use pondertree_core::games::{plain_playout, Action, Game, CHANCE};
use pondertree_core::{for_each_game, Error, Purpose, Random};
use proptest::prelude::*;

/// The owner of each cell, row by row from the top.
type Cells = Vec<Option<u8>>;

/// A reference implementation of the rules of a game.
trait Rules {
    type Fast: Game;
    fn start(fast: &Self::Fast) -> Cells {
        vec![None; fast.dimensions().cells()]
    }
    fn legal(cells: &Cells, _turn: u8) -> Vec<Action> {
        (0..cells.len() as Action).filter(|cell| cells[usize::from(*cell)].is_none()).collect()
    }
    fn play(cells: &mut Cells, turn: u8, action: Action) {
        cells[usize::from(action)] = Some(turn);
    }
    /// The result for player 0 if the game is over.
    fn result(cells: &Cells) -> Option<i8>;
    /// The cells in the order of observations for the player to move.
    fn seen(cells: &Cells, _turn: u8) -> Cells {
        cells.clone()
    }
}

fn win_for(owner: u8) -> i8 {
    1 - 2 * owner as i8
}

const DIRECTIONS: [(i32, i32); 8] = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)];

/// The cells from `start` (not among them) to the edge.
fn ray(start: usize, (down, right): (i32, i32), height: usize, width: usize) -> Vec<usize> {
    let on_board = |steps: i32| {
        let row = (start / width) as i32 + steps * down;
        let column = (start % width) as i32 + steps * right;
        ((0..height as i32).contains(&row) && (0..width as i32).contains(&column)).then(|| row as usize * width + column as usize)
    };
    (1..).map_while(on_board).collect()
}

/// The result if a player has `length` cells in a line, or no cell is empty.
fn result_of_lines(cells: &Cells, height: usize, width: usize, length: usize) -> Option<i8> {
    let starts = (0..cells.len()).flat_map(|start| DIRECTIONS.map(|direction| (start, direction)));
    let mut owners = starts.filter_map(|(start, direction)| {
        let ray = ray(start, direction, height, width);
        let line = ray.get(..length - 1)?;
        cells[start].filter(|owner| line.iter().all(|cell| cells[*cell] == Some(*owner)))
    });
    owners.next().map(win_for).or_else(|| cells.iter().all(Option::is_some).then_some(0))
}

struct ReferenceTicTacToe;

impl Rules for ReferenceTicTacToe {
    type Fast = TicTacToe;

    fn result(cells: &Cells) -> Option<i8> {
        result_of_lines(cells, 3, 3, 3)
    }
}

struct ReferenceConnectFour;

impl Rules for ReferenceConnectFour {
    type Fast = ConnectFour;

    fn legal(cells: &Cells, _: u8) -> Vec<Action> {
        (0..7).filter(|column| cells[usize::from(*column)].is_none()).collect()
    }

    fn play(cells: &mut Cells, turn: u8, action: Action) {
        let lowest = (0..6).rev().map(|row| row * 7 + usize::from(action)).find(|cell| cells[*cell].is_none());
        cells[lowest.expect("an open column")] = Some(turn);
    }

    fn result(cells: &Cells) -> Option<i8> {
        result_of_lines(cells, 6, 7, 4)
    }
}

struct ReferenceOthello;

fn flipped(cells: &Cells, turn: u8, square: usize) -> Vec<usize> {
    let run = |direction| {
        let ray = ray(square, direction, 8, 8);
        let length = ray.iter().take_while(|cell| cells[**cell] == Some(1 - turn)).count();
        let closed = ray.get(length).is_some_and(|cell| cells[*cell] == Some(turn));
        ray[..if closed { length } else { 0 }].to_vec()
    };
    DIRECTIONS.into_iter().flat_map(run).collect()
}

fn has_move(cells: &Cells, turn: u8) -> bool {
    (0..64).any(|square| cells[square].is_none() && !flipped(cells, turn, square).is_empty())
}

impl Rules for ReferenceOthello {
    type Fast = Othello;

    fn start(_: &Othello) -> Cells {
        let mut cells = vec![None; 64];
        (cells[27], cells[28], cells[35], cells[36]) = (Some(1), Some(0), Some(0), Some(1));
        cells
    }

    fn legal(cells: &Cells, turn: u8) -> Vec<Action> {
        if !has_move(cells, turn) {
            return vec![64];
        }
        let legal = |square: &Action| cells[usize::from(*square)].is_none() && !flipped(cells, turn, usize::from(*square)).is_empty();
        (0..64).filter(legal).collect()
    }

    fn play(cells: &mut Cells, turn: u8, action: Action) {
        if action != 64 {
            for cell in flipped(cells, turn, usize::from(action)) {
                cells[cell] = Some(turn);
            }
            cells[usize::from(action)] = Some(turn);
        }
    }

    fn result(cells: &Cells) -> Option<i8> {
        let count = |player| cells.iter().filter(|cell| **cell == Some(player)).count();
        (!has_move(cells, 0) && !has_move(cells, 1)).then(|| count(0).cmp(&count(1)) as i8)
    }
}

struct ReferenceBreakthrough;

/// Origin and target of a move: the action is numbered from the mover's side.
fn squares(turn: u8, action: Action) -> (usize, Option<usize>) {
    let (origin, forward) = if turn == 0 { (action / 3, 1) } else { ((action / 3) ^ 56, -1) };
    let step = (forward, i32::from(action % 3) - 1);
    (usize::from(origin), ray(origin.into(), step, 8, 8).first().copied())
}

impl Rules for ReferenceBreakthrough {
    type Fast = Breakthrough;

    fn start(_: &Breakthrough) -> Cells {
        let owner = |square| match square / 8 {
            0 | 1 => Some(0),
            6 | 7 => Some(1),
            _ => None,
        };
        (0..64).map(owner).collect()
    }

    /// By direction first.
    fn legal(cells: &Cells, turn: u8) -> Vec<Action> {
        let is_legal = |action: &Action| {
            let (origin, target) = squares(turn, *action);
            let may_take = |target: usize| cells[target].is_none() || (action % 3 != 1 && cells[target] == Some(1 - turn));
            cells[origin] == Some(turn) && target.is_some_and(may_take)
        };
        (0..3).flat_map(|direction| (direction..192).step_by(3)).filter(is_legal).collect()
    }

    fn play(cells: &mut Cells, turn: u8, action: Action) {
        let (origin, target) = squares(turn, action);
        cells[target.expect("a legal action")] = cells[origin].take();
    }

    fn result(cells: &Cells) -> Option<i8> {
        let has_won = |&player: &u8| {
            let last_rank = if player == 0 { &cells[56..] } else { &cells[..8] };
            last_rank.contains(&Some(player)) || !cells.contains(&Some(1 - player))
        };
        [0, 1].iter().copied().find(has_won).map(win_for)
    }

    fn seen(cells: &Cells, turn: u8) -> Cells {
        (0..64).map(|square| cells[if turn == 0 { square } else { square ^ 56 }]).collect()
    }
}

struct ReferenceHex;

impl Rules for ReferenceHex {
    type Fast = Hex;

    /// Walks from each first edge.
    fn result(cells: &Cells) -> Option<i8> {
        let size = cells.len().isqrt();
        let connects = |&owner: &u8| {
            let mut seen = vec![false; cells.len()];
            let mut stack: Vec<usize> = (0..size).map(|place| if owner == 0 { place } else { place * size }).collect();
            while let Some(cell) = stack.pop() {
                if cells[cell] != Some(owner) || std::mem::replace(&mut seen[cell], true) {
                    continue;
                }
                if (if owner == 0 { cell / size } else { cell % size }) == size - 1 {
                    return true;
                }
                let neighbours = [(0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0)];
                stack.extend(neighbours.into_iter().filter_map(|step| ray(cell, step, size, size).first().copied()));
            }
            false
        };
        [0, 1].iter().copied().find(connects).map(win_for)
    }
}

/// Plays a random game on both; returns the number of forced moves.
fn compare<R: Rules>(mut game: R::Fast, seed: u64) -> usize {
    let mut random = Random::new(seed, Purpose::Playout);
    let (mut cells, mut turn) = (R::start(&game), 0);
    let mut forced = 0;
    loop {
        let result = R::result(&cells);
        let expected = if result.is_some() { vec![] } else { R::legal(&cells, turn) };
        let mut legal = vec![99];
        game.legal_actions(&mut legal);
        assert_eq!(legal, expected, "{game}");
        assert_eq!(game.outcome(), result, "{game}");
        assert_eq!(game.to_play(), turn);
        assert!((0..=game.dimensions().num_actions as Action + 1).all(|action| game.is_legal(action) == legal.contains(&action)));
        assert!(legal.len() <= R::Fast::MAX_LEGAL);

        let (mut planes, mut scalars) = (vec![u64::MAX; game.dimensions().words()], [9.0]);
        game.pack_observation(&mut planes, &mut scalars);
        assert_eq!(scalars, [if turn == 0 { 1.0 } else { 0.0 }]);
        let seen = R::seen(&cells, turn);
        let word = |player, cells: &[Option<u8>]| (0..).zip(cells).map(|(bit, cell)| u64::from(*cell == Some(player)) << bit).sum::<u64>();
        let expected = [turn, 1 - turn].into_iter().flat_map(|player| seen.chunks(64).map(move |cells| word(player, cells)));
        assert_eq!(planes, expected.collect::<Vec<_>>());

        let text = game.to_string();
        let (board, _) = text.rsplit_once('\n').expect("a line on who moves");
        let drawn: String = board.chars().filter(|symbol| "XO.".contains(*symbol)).collect();
        let symbols = cells.iter().map(|cell| cell.map_or('.', |owner| if owner == 0 { 'X' } else { 'O' }));
        assert_eq!(drawn, symbols.collect::<String>());

        if result.is_some() {
            assert!(matches!(game.parse_action(&game.action_to_string(0)), Err(Error::InvalidAction(_))));
            return forced;
        }
        for action in &legal {
            assert_eq!(game.parse_action(&game.action_to_string(*action)), Ok(*action));
        }
        forced += usize::from(legal.len() == 1);
        // `play_random` plays the action of its contract.
        let action = legal[random.clone().choose(legal.len() as u32) as usize];
        let mut by_random = game.clone();
        by_random.play_random(&mut random);
        game.play(action);
        assert_eq!(game, by_random);
        R::play(&mut cells, turn, action);
        turn = 1 - turn;
    }
}

fn compare_playouts<G: Game>(first: &G, seeds: u64) {
    for seed in 0..seeds {
        let mut random = Random::new(seed, Purpose::RootMove);
        let mut start = first.clone();
        if seed % 2 == 1 {
            let prefix = random.below(60);
            plain_playout(&mut start, &mut random, prefix);
        }
        for max_depth in [0, 1, random.below(64), u32::MAX] {
            let (mut game, mut expected) = (start.clone(), start.clone());
            let (mut stream, mut expected_stream) = (random.clone(), random.clone());
            let result = game.playout(&mut stream, max_depth);
            assert_eq!(result, plain_playout(&mut expected, &mut expected_stream, max_depth), "depth {max_depth} from\n{start}");
            assert_eq!(game.outcome(), result.result, "the state has the result");
            if result.result.is_none() {
                assert_eq!(game, expected);
                assert_eq!(stream.next_u64(), expected_stream.next_u64(), "other numbers were drawn");
            }
        }
    }
}

#[test]
fn playouts_match_trait_default() {
    macro_rules! compare_all {
        ($([$name:ident, $game:ty $(, $($start:tt)*)?])*) => { $(if <$game>::NAME != "chess" { compare_playouts(&<$game>::start(), 4000); })* };
    }
    for_each_game!(compare_all);
    for size in ["1", "8", "11", "13"] {
        compare_playouts(&Hex::parse_start(size).expect("a size"), 1000);
    }
}

/// Compares the constants of a game with its states in random games.
fn check_constants<G: Game>() {
    for seed in 0..50 {
        let (mut random, mut game) = (Random::new(seed, Purpose::Playout), G::start());
        let (cells, actions) = (game.dimensions().cells(), game.dimensions().num_actions);
        let by_planes = cells * G::POLICY_PLANES;
        assert_eq!(G::PLAYERS.len(), G::NUM_PLAYERS, "{}::PLAYERS", G::NAME);
        assert!(by_planes == 0 || by_planes == actions, "{}::POLICY_PLANES: {by_planes} logits for {actions} actions", G::NAME);
        for _ in 0..300 {
            let legal = game.legal();
            let is_chance = game.to_play() == CHANCE && game.outcome().is_none();
            assert!(!is_chance || G::HAS_CHANCE, "{}::HAS_CHANCE is false at the chance node\n{game}", G::NAME);
            let most = if is_chance { G::MAX_OUTCOMES } else { G::MAX_LEGAL };
            assert!(legal.len() <= most, "{}: {most} is below the {} legal actions in\n{game}", G::NAME, legal.len());
            let Some(last) = legal.len().checked_sub(1) else { break };
            game.play(legal[random.choose(last as u32 + 1) as usize]);
            assert!(G::HAS_REWARDS || game.reward() == 0.0, "{}::HAS_REWARDS is false at the reward of\n{game}", G::NAME);
        }
    }
}

#[test]
fn constants_of_every_game_bound_its_states() {
    macro_rules! check_all {
        ($([$name:ident, $game:ty $(, $($start:tt)*)?])*) => { $(check_constants::<$game>();)* };
    }
    for_each_game!(check_all);
}

#[test]
fn random_games_of_othello_contain_passes() {
    assert!((0..100).map(|seed| compare::<ReferenceOthello>(Game::start(), seed)).sum::<usize>() > 50);
}

/// Perft at depths 1 to 8.
fn perft<G: Game>() -> Vec<usize> {
    fn count<G: Game>(game: &G, depth: u32) -> usize {
        let legal = game.legal();
        if depth == 1 {
            return legal.len();
        }
        legal.into_iter().map(|action| count(&game.after(action), depth - 1)).sum()
    }
    (1..=8).map(|depth| count(&G::start(), depth)).collect()
}

#[test]
fn perft_matches_known_counts() {
    assert_eq!(perft::<ConnectFour>(), [7, 49, 343, 2401, 16_807, 117_649, 823_536, 5_673_234]);
    assert_eq!(perft::<Othello>(), [4, 12, 56, 244, 1396, 8200, 55_092, 390_216]);
}

proptest! {
    #[test]
    fn tic_tac_toe_matches_reference(seed: u64) {
        compare::<ReferenceTicTacToe>(Game::start(), seed);
    }

    #[test]
    fn connect_four_matches_reference(seed: u64) {
        compare::<ReferenceConnectFour>(Game::start(), seed);
    }

    #[test]
    fn othello_matches_reference(seed: u64) {
        compare::<ReferenceOthello>(Game::start(), seed);
    }

    #[test]
    fn breakthrough_matches_reference(seed: u64) {
        compare::<ReferenceBreakthrough>(Game::start(), seed);
    }

    #[test]
    fn hex_matches_reference(size in 1u8..=13, seed: u64) {
        compare::<ReferenceHex>(Hex::parse_start(&size.to_string()).expect("a size"), seed);
    }
}
