//! Null-window alpha-beta search; repeated calls bisect the score.
//!
//! The score of a win is 1 with the winner's last stone, 2 with the one before, and so on; that of a loss is negated; a draw is 0.

use std::sync::atomic::{AtomicBool, Ordering};

use super::position::{cells_of, Position, CELLS};
use super::table::{Bounds, Table};

/// Positions with fewer stones share an entry with their mirror image.
const MIRRORED_BELOW: u32 = 18;
/// Positions with more stones are searched without the table.
const MAX_TABLE_STONES: u32 = 36;
/// With fewer stones, all children are probed before one is searched (enhanced transposition cutoff).
const ETC_BELOW: u32 = 28;
/// Nodes between two polls of the stop flag.
const NODES_PER_CHECK: u64 = 1 << 12;
/// Columns from the centre outwards.
const CENTRE_FIRST: [u32; 7] = [3, 2, 4, 1, 5, 0, 6];

/// The search of one thread.
pub(super) struct Search<'a> {
    table: &'a Table,
    stop: &'a AtomicBool,
    /// Visited nodes, and their upper bound.
    pub nodes: u64,
    max_nodes: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(table: &'a Table, stop: &'a AtomicBool, max_nodes: u64) -> Self {
        Self { table, stop, nodes: 0, max_nodes }
    }

    /// Returns whether the score is at least `beta`; None if stopped. Requires that the player to move cannot win at once.
    fn null_window_search(&mut self, position: &Position, moves: u64, beta: i8) -> Option<bool> {
        self.nodes += 1;
        if self.nodes >= self.max_nodes || self.nodes.is_multiple_of(NODES_PER_CHECK) && self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let stones = position.stones;
        if moves == 0 {
            return Some(loss_at(stones + 2) >= beta);
        }
        if stones >= CELLS - 2 {
            return Some(0 >= beta);
        }
        // Neither player wins with the next two stones.
        if loss_at(stones + 4) >= beta {
            return Some(true);
        }
        if win_at(stones + 3) < beta {
            return Some(false);
        }
        if moves & (moves - 1) == 0 {
            let after = position.after(moves);
            return self.fails(&after, after.safe_moves(), beta);
        }
        let uses_table = stones <= MAX_TABLE_STONES;
        let (mut key, mut is_mirrored, mut bounds) = (0, false, Bounds::UNKNOWN);
        if uses_table {
            (key, is_mirrored) = position.key(stones < MIRRORED_BELOW);
            bounds = self.table.get(key);
            if bounds.lower >= beta {
                return Some(true);
            }
            if bounds.upper < beta {
                return Some(false);
            }
        }
        let turn = |column: u32| if is_mirrored { 6 - column } else { column };
        let hash_move = bounds.best.map_or(7, |column| turn(u32::from(column)));
        let mut list = [(0, 0, 0, *position); 7];
        let mut count = 0;
        let nodes_before = self.nodes;
        let mut found = None;
        for column in CENTRE_FIRST {
            let cell = moves & cells_of(column);
            if cell == 0 {
                continue;
            }
            let after = position.after(cell);
            let replies = after.safe_moves();
            if replies == 0 {
                // The opponent cannot block: the line is completed two stones later.
                found = Some(column);
                break;
            }
            if stones < ETC_BELOW && self.table.get(after.key(stones + 1 < MIRRORED_BELOW).0).upper < 1 - beta {
                // Enhanced transposition cutoff.
                found = Some(column);
                break;
            }
            let ordering_score = if column == hash_move { u32::MAX } else { after.threat_score() };
            let mut index = count;
            while index > 0 && list[index - 1].0 < ordering_score {
                list[index] = list[index - 1];
                index -= 1;
            }
            list[index] = (ordering_score, column, replies, after);
            count += 1;
        }
        if found.is_none() {
            for (_, column, replies, after) in &list[..count] {
                if self.fails(after, *replies, beta)? {
                    found = Some(*column);
                    break;
                }
            }
        }
        if uses_table {
            let work = (self.nodes - nodes_before + 1).ilog2() as u8;
            let mut updated = Bounds { work: work.max(bounds.work), ..bounds };
            if let Some(column) = found {
                updated.lower = beta;
                updated.best = Some(turn(column) as u8);
            } else {
                updated.upper = beta - 1;
            }
            self.table.put(key, updated);
        }
        Some(found.is_some())
    }

    #[inline]
    fn fails(&mut self, after: &Position, replies: u64, beta: i8) -> Option<bool> {
        Some(!self.null_window_search(after, replies, 1 - beta)?)
    }

    /// Returns the score for the player to move, clamped to `lower`..`upper`.
    pub(super) fn score(&mut self, position: &Position, mut lower: i8, mut upper: i8) -> Option<i8> {
        let exact = if position.stones == CELLS {
            Some(0)
        } else if position.wins_at_once() {
            Some(win_at(position.stones + 1))
        } else {
            None
        };
        if let Some(score) = exact {
            return Some(score.clamp(lower, upper));
        }
        let moves = position.safe_moves();
        while lower < upper {
            // The sign first, then scores nearer to 0, which prune more.
            let beta = match (lower, upper) {
                (..0, 1..) => 1,
                (..0, 0) => 0,
                (..0, _) => upper - (upper - lower) / 3,
                _ => lower + (upper - lower + 2) / 3,
            };
            if self.null_window_search(position, moves, beta)? {
                lower = beta;
            } else {
                upper = beta - 1;
            }
        }
        Some(lower)
    }
}

/// Returns the score of a win with the stone that makes it `stones`.
#[inline]
pub(super) fn win_at(stones: u32) -> i8 {
    (CELLS as i8 + 2 - stones as i8) / 2
}

#[inline]
fn loss_at(stones: u32) -> i8 {
    -win_at(stones)
}
