//! The board games against independent array implementations, over random games.

use pondertree_core::games::connect_four::ConnectFour;
use pondertree_core::games::othello::Othello;
use pondertree_core::games::tic_tac_toe::TicTacToe;
use pondertree_core::games::{Action, Game};
use pondertree_core::{for_each_game, Error, Purpose, Random};
use proptest::prelude::*;

/// The owner of each cell, row by row from the top.
type Cells = Vec<Option<u8>>;

/// A reference implementation of the rules of a game.
trait Rules {
    type Fast: Game;
    fn start() -> Cells;
    fn legal(cells: &Cells, turn: u8) -> Vec<Action>;
    fn play(cells: &mut Cells, turn: u8, action: Action);
    fn result(cells: &Cells) -> i8;
    fn is_over(cells: &Cells, turn: u8) -> bool;
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

/// The player who has `length` cells in a line.
fn line_owner(cells: &Cells, height: usize, width: usize, length: usize) -> Option<u8> {
    let starts = (0..cells.len()).flat_map(|start| DIRECTIONS.map(|direction| (start, direction)));
    let mut owners = starts.filter_map(|(start, direction)| {
        let ray = ray(start, direction, height, width);
        let line = ray.get(..length - 1)?;
        cells[start].filter(|owner| line.iter().all(|cell| cells[*cell] == Some(*owner)))
    });
    owners.next()
}

struct ReferenceTicTacToe;

impl Rules for ReferenceTicTacToe {
    type Fast = TicTacToe;

    fn start() -> Cells {
        vec![None; 9]
    }

    fn legal(cells: &Cells, _: u8) -> Vec<Action> {
        (0..9).filter(|cell| cells[usize::from(*cell)].is_none()).collect()
    }

    fn play(cells: &mut Cells, turn: u8, action: Action) {
        cells[usize::from(action)] = Some(turn);
    }

    fn result(cells: &Cells) -> i8 {
        line_owner(cells, 3, 3, 3).map_or(0, |owner| if owner == 0 { 1 } else { -1 })
    }

    fn is_over(cells: &Cells, _: u8) -> bool {
        line_owner(cells, 3, 3, 3).is_some() || cells.iter().all(Option::is_some)
    }
}

struct ReferenceConnectFour;

impl Rules for ReferenceConnectFour {
    type Fast = ConnectFour;

    fn start() -> Cells {
        vec![None; 42]
    }

    fn legal(cells: &Cells, _: u8) -> Vec<Action> {
        (0..7).filter(|column| cells[usize::from(*column)].is_none()).collect()
    }

    fn play(cells: &mut Cells, turn: u8, action: Action) {
        let lowest = (0..6).rev().map(|row| row * 7 + usize::from(action)).find(|cell| cells[*cell].is_none());
        cells[lowest.expect("an open column")] = Some(turn);
    }

    fn result(cells: &Cells) -> i8 {
        line_owner(cells, 6, 7, 4).map_or(0, |owner| if owner == 0 { 1 } else { -1 })
    }

    fn is_over(cells: &Cells, _: u8) -> bool {
        line_owner(cells, 6, 7, 4).is_some() || cells.iter().all(Option::is_some)
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

    fn start() -> Cells {
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

    fn result(cells: &Cells) -> i8 {
        let count = |player| cells.iter().filter(|cell| **cell == Some(player)).count();
        count(0).cmp(&count(1)) as i8
    }

    fn is_over(cells: &Cells, _: u8) -> bool {
        !has_move(cells, 0) && !has_move(cells, 1)
    }
}

/// Plays a random game on both; returns the number of forced moves.
fn compare<R: Rules>(seed: u64) -> usize {
    let mut random = Random::new(seed, Purpose::Playout);
    let (mut cells, mut turn) = (R::start(), 0);
    let mut game = R::Fast::start();
    let mut forced = 0;
    loop {
        let over = R::is_over(&cells, turn);
        let expected = if over { vec![] } else { R::legal(&cells, turn) };
        let mut legal = vec![99];
        game.legal_actions(&mut legal);
        assert_eq!(legal, expected, "{game}");
        assert_eq!(game.outcome(), over.then(|| R::result(&cells)), "{game}");
        assert_eq!(game.to_play(), turn);
        assert!((0..=game.dimensions().num_actions as Action + 1).all(|action| game.is_legal(action) == legal.contains(&action)));
        assert!(legal.len() <= R::Fast::MAX_LEGAL);

        let (mut planes, mut scalars) = ([0; 2], [9.0]);
        game.pack_observation(&mut planes, &mut scalars);
        assert_eq!(scalars, [if turn == 0 { 1.0 } else { 0.0 }]);
        let plane = |player| (0..cells.len()).map(|cell| u64::from(cells[cell] == Some(player)) << cell).sum::<u64>();
        assert_eq!(planes, [plane(turn), plane(1 - turn)]);

        let text = game.to_string();
        let (board, _) = text.rsplit_once('\n').expect("a line on who moves");
        let drawn: String = board.chars().filter(|symbol| "XO.".contains(*symbol)).collect();
        let symbols = cells.iter().map(|cell| cell.map_or('.', |owner| if owner == 0 { 'X' } else { 'O' }));
        assert_eq!(drawn, symbols.collect::<String>());

        if over {
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

/// The default of `Game::playout`.
fn default_playout<G: Game>(game: &mut G, random: &mut Random, max_depth: u32) -> Option<i8> {
    for _ in 0..max_depth {
        if let Some(result) = game.outcome_in_search() {
            return Some(result);
        }
        game.play_random(random);
    }
    game.outcome_in_search()
}

fn compare_playouts<G: Game>() {
    for seed in 0..4000 {
        let mut random = Random::new(seed, Purpose::RootMove);
        let mut start = G::start();
        if seed % 2 == 1 {
            let prefix = random.below(60);
            default_playout(&mut start, &mut random, prefix);
        }
        for max_depth in [0, 1, random.below(64), u32::MAX] {
            let (mut game, mut expected) = (start.clone(), start.clone());
            let (mut stream, mut expected_stream) = (random.clone(), random.clone());
            let result = game.playout(&mut stream, max_depth);
            assert_eq!(result, default_playout(&mut expected, &mut expected_stream, max_depth), "depth {max_depth} from\n{start}");
            assert_eq!(game.outcome(), result, "the state has the result");
            if result.is_none() {
                assert_eq!(game, expected);
                assert_eq!(stream.next_u64(), expected_stream.next_u64(), "other numbers were drawn");
            }
        }
    }
}

#[test]
fn playouts_match_trait_default() {
    macro_rules! compare_all {
        ($([$name:ident, $game:ty $(, $($start:tt)*)?])*) => { $(if <$game>::NAME != "chess" { compare_playouts::<$game>(); })* };
    }
    for_each_game!(compare_all);
}

#[test]
fn random_games_of_othello_contain_passes() {
    assert!((0..100).map(compare::<ReferenceOthello>).sum::<usize>() > 50);
}

/// Perft at depths 1 to 8.
fn perft<G: Game>() -> Vec<usize> {
    fn count<G: Game>(game: &G, depth: u32) -> usize {
        let mut legal = Vec::new();
        game.legal_actions(&mut legal);
        if depth == 1 {
            return legal.len();
        }
        let count_after = |action: Action| {
            let mut next = game.clone();
            next.play(action);
            count(&next, depth - 1)
        };
        legal.into_iter().map(count_after).sum()
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
        compare::<ReferenceTicTacToe>(seed);
    }

    #[test]
    fn connect_four_matches_reference(seed: u64) {
        compare::<ReferenceConnectFour>(seed);
    }

    #[test]
    fn othello_matches_reference(seed: u64) {
        compare::<ReferenceOthello>(seed);
    }
}
