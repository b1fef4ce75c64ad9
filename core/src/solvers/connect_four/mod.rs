//! Exact solver of Connect 4: value and distance to the end by null-window alpha-beta with a shared transposition table.

mod position;
mod search;
mod table;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::Error;
use crate::games::connect_four::{ConnectFour, COLUMNS};
use crate::games::{Action, Game};
use position::{cells_of, Position, CELLS};
use search::{win_at, Search};
use table::{Table, MAX_SCORE};

/// Interval between two polls of `stop`.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// Options and limits of `solve`.
#[derive(Clone, Copy, Debug)]
pub struct SolveOptions {
    /// Solve the value without the plies, many times as fast.
    pub weak: bool,
    /// Number of threads; positions are distributed over them.
    pub threads: usize,
    /// Bytes of the shared transposition table, at least 128 KiB.
    pub memory: usize,
    /// Upper bound of visited nodes per position.
    pub max_nodes: u64,
}

/// The result of a move with best play, for the player who makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// 1 won, 0 drawn, -1 lost.
    pub value: i8,
    /// Plies to the end, the move included; None with `weak`.
    pub plies: Option<u32>,
}

/// The solution of one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// Every legal move with its result, in ascending order of columns.
    pub moves: Vec<(Action, Ending)>,
    /// Visited nodes.
    pub nodes: u64,
}

/// Solves every position, in the order of `states`; None for those cut off by `max_nodes` or `stop`, which is polled every 20
/// ms on the calling thread.
///
/// # Errors
/// `Error::GameOver` if a game is over; it names the row.
pub fn solve(states: &[ConnectFour], options: &SolveOptions, stop: &mut dyn FnMut() -> bool) -> Result<Vec<Option<Solution>>, Error> {
    if let Some(row) = states.iter().position(|state| state.outcome().is_some()) {
        return Err(Error::GameOver(format!("states[{row}]: the game is over, there is nothing to solve in\n{}", states[row])));
    }
    let table = Table::new(states.iter().map(useful_memory).sum::<usize>().min(options.memory));
    let (halt, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut solutions = vec![None; states.len()];
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..options.threads.clamp(1, states.len().max(1)) {
            let sender = sender.clone();
            let (table, halt, next) = (&table, &halt, &next);
            scope.spawn(move || {
                while !halt.load(Ordering::Relaxed) {
                    let row = next.fetch_add(1, Ordering::Relaxed);
                    let Some(state) = states.get(row) else { break };
                    let mut search = Search::new(table, halt, options.max_nodes);
                    // The receiver lives as long as the scope.
                    let _ = sender.send((row, answer(&mut search, state, options.weak)));
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(STOP_INTERVAL) {
                Ok((row, answer)) => solutions[row] = answer,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !halt.load(Ordering::Relaxed) && stop() {
                halt.store(true, Ordering::Relaxed);
            }
        }
    });
    Ok(solutions)
}

/// Returns the optimal table size in bytes: clearing a large table costs more than solving a late position. It doubles per 1.5
/// stones fewer, as the number of nodes does.
fn useful_memory(state: &ConnectFour) -> usize {
    let [own, other] = state.own_and_other();
    let missing = 24_u32.saturating_sub((own | other).count_ones());
    1 << (17 + 2 * missing / 3)
}

/// Returns None if the search was cut off.
fn answer(search: &mut Search<'_>, state: &ConnectFour, weak: bool) -> Option<Solution> {
    let position = Position::of(state);
    let bound = if weak { 1 } else { MAX_SCORE };
    let mut moves = Vec::with_capacity(COLUMNS as usize);
    for column in 0..COLUMNS {
        let cell = position.landing() & cells_of(column);
        if cell == 0 {
            continue;
        }
        let score =
            if position.wins_by(cell) { win_at(position.stones + 1) } else { -search.score(&position.after(cell), -bound, bound)? };
        moves.push((column as Action, ending(score, position.stones, weak)));
    }
    Some(Solution { moves, nodes: search.nodes })
}

fn ending(score: i8, stones: u32, weak: bool) -> Ending {
    let last = match score {
        0 => CELLS,
        // Two stone counts have this score: the one at which the winner has just moved.
        _ => {
            let last = CELLS + 2 - 2 * u32::from(score.unsigned_abs());
            let winner_moves_now = score > 0;
            last - u32::from((last - stones) % 2 != u32::from(winner_moves_now))
        }
    };
    Ending { value: score.signum(), plies: (!weak).then(|| last - stones) }
}
