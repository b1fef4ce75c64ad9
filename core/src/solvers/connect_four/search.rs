//! Null-window search: whether the player to move can reach a score; repeated calls find the score.
//!
//! The score of a win is 1 with the winner's last stone, 2 with the one before, and so on; that of a loss is negated; a draw is
//! 0.

use std::sync::atomic::{AtomicBool, Ordering};

use super::position::{cells_of, Position, CELLS};
use super::table::{Known, Table};

/// Positions with fewer stones share an entry with their mirror image.
const MIRRORED_BELOW: u32 = 18;
/// Positions with more stones are searched without the table.
const KEPT_UP_TO: u32 = 36;
/// With fewer stones, all children are probed in the table before one is searched.
const LOOKED_AHEAD_BELOW: u32 = 28;
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
    most_nodes: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(table: &'a Table, stop: &'a AtomicBool, most_nodes: u64) -> Self {
        Self { table, stop, nodes: 0, most_nodes }
    }

    /// Returns whether the score is at least `goal`; None if stopped. Requires that the player to move cannot win at once.
    fn reaches(&mut self, position: &Position, moves: u64, goal: i8) -> Option<bool> {
        self.nodes += 1;
        if self.nodes >= self.most_nodes || self.nodes % NODES_PER_CHECK == 0 && self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let stones = position.stones;
        if moves == 0 {
            return Some(loss_at(stones + 2) >= goal);
        }
        if stones >= CELLS - 2 {
            return Some(0 >= goal);
        }
        // Neither player wins with the next two stones.
        if loss_at(stones + 4) >= goal {
            return Some(true);
        }
        if win_at(stones + 3) < goal {
            return Some(false);
        }
        if moves & (moves - 1) == 0 {
            let after = position.after(moves);
            return self.fails(&after, after.safe_moves(), goal);
        }
        let kept = stones <= KEPT_UP_TO;
        let (mut key, mut turned, mut known) = (0, false, Known::NOTHING);
        if kept {
            (key, turned) = position.key(stones < MIRRORED_BELOW);
            known = self.table.get(key);
            if known.least >= goal {
                return Some(true);
            }
            if known.most < goal {
                return Some(false);
            }
        }
        let turn = |column: u32| if turned { 6 - column } else { column };
        let remembered = known.best.map_or(7, |column| turn(u32::from(column)));
        let mut list = [(0, 0, 0, *position); 7];
        let mut count = 0;
        let begun = self.nodes;
        let mut found = None;
        for column in CENTRE_FIRST {
            let cell = moves & cells_of(column);
            if cell == 0 {
                continue;
            }
            let after = position.after(cell);
            let replies = after.safe_moves();
            if replies == 0 {
                // The opponent cannot stop the line: it is completed two stones later.
                found = Some(column);
                break;
            }
            if stones < LOOKED_AHEAD_BELOW && self.table.get(after.key(stones + 1 < MIRRORED_BELOW).0).most < 1 - goal {
                // A transposition already reaches the goal.
                found = Some(column);
                break;
            }
            let worth = if column == remembered { u32::MAX } else { after.threat_worth() };
            let mut place = count;
            while place > 0 && list[place - 1].0 < worth {
                list[place] = list[place - 1];
                place -= 1;
            }
            list[place] = (worth, column, replies, after);
            count += 1;
        }
        if found.is_none() {
            for (_, column, replies, after) in &list[..count] {
                if self.fails(after, *replies, goal)? {
                    found = Some(*column);
                    break;
                }
            }
        }
        if kept {
            let work = (self.nodes - begun + 1).ilog2() as u8;
            let mut now = Known { work: work.max(known.work), ..known };
            if let Some(column) = found {
                now.least = goal;
                now.best = Some(turn(column) as u8);
            } else {
                now.most = goal - 1;
            }
            self.table.put(key, now);
        }
        Some(found.is_some())
    }

    #[inline]
    fn fails(&mut self, after: &Position, replies: u64, goal: i8) -> Option<bool> {
        Some(!self.reaches(after, replies, 1 - goal)?)
    }

    /// Returns the score for the player to move, clamped to `least`..`most`.
    pub(super) fn score(&mut self, position: &Position, mut least: i8, mut most: i8) -> Option<i8> {
        let exact = if position.stones == CELLS {
            Some(0)
        } else if position.wins_at_once() {
            Some(win_at(position.stones + 1))
        } else {
            None
        };
        if let Some(score) = exact {
            return Some(score.clamp(least, most));
        }
        let moves = position.safe_moves();
        while least < most {
            // The sign first, then close scores before distant ones: they prune more.
            let goal = match (least, most) {
                (..0, 1..) => 1,
                (..0, 0) => 0,
                (..0, _) => most - (most - least) / 3,
                _ => least + (most - least + 2) / 3,
            };
            if self.reaches(position, moves, goal)? {
                least = goal;
            } else {
                most = goal - 1;
            }
        }
        Some(least)
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
