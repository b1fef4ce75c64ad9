//! The transposition table of a mate search, for one call.

use cozy_chess::{Board, Color, Piece};

/// Maximum number of entries: 24 MiB.
const MAX_ENTRIES: usize = 1 << 20;
/// Initial number of entries: searches at leaves need no more.
const INITIAL_ENTRIES: usize = 1 << 5;
/// Entries per bucket.
const BUCKET_SIZE: usize = 4;

/// Key of a position and a side (attack or defence), in 128 bits; equal keys are taken for equal positions.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Key(u64, u64);

impl Key {
    /// `defends`: whether the side to move may be mated. `clock`: the halfmove clock where it matters, else 0.
    #[inline]
    pub(super) fn of(board: &Board, defends: bool, clock: u8) -> Self {
        // The board's hash has 64 bits; the second word is computed from the pieces, independently of it.
        let mut word = 0x9e37_79b9_7f4a_7c15 ^ (u64::from(clock) << 1) ^ u64::from(defends);
        for bits in Piece::ALL.map(|piece| board.pieces(piece).0).into_iter().chain([board.colors(Color::White).0]) {
            word = (word ^ bits).wrapping_mul(0xd6e8_feb8_6659_fd93);
            word ^= word >> 32;
        }
        Self(board.hash() ^ (u64::from(clock) << 57) ^ if defends { 0xaaaa_aaaa_aaaa_aaaa } else { 0 }, word)
    }
}

/// A table entry: moves within which mate is proven (0: unproven) and disproven, and the move that last proved (attack) or
/// disproved (defence) it.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    key: Key,
    pub proven_within: u8,
    pub disproven_within: u8,
    pub best: u16,
}

impl Entry {
    fn depth(&self) -> u8 {
        self.proven_within.max(self.disproven_within)
    }
}

/// A growing hash table; a full one replaces the shallowest entry of a bucket.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    used: usize,
}

impl Table {
    #[inline]
    fn bucket(&self, key: Key) -> std::ops::Range<usize> {
        let first = key.0 as usize & (self.entries.len() - 1) & !(BUCKET_SIZE - 1);
        first..first + BUCKET_SIZE
    }

    /// Returns the entry of a position.
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<Entry> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries[self.bucket(key)].iter().find(|entry| entry.key == key && entry.depth() > 0).copied()
    }

    /// Stores the result of a search within `n` moves.
    pub(super) fn put(&mut self, key: Key, n: u8, proven: bool, best: u16) {
        if self.entries.len() < MAX_ENTRIES && self.used * 2 >= self.entries.len() {
            self.grow();
        }
        let mut entry = self.get(key).unwrap_or(Entry { key, ..Entry::default() });
        if proven {
            entry.proven_within = if entry.proven_within == 0 { n } else { entry.proven_within.min(n) };
        } else {
            entry.disproven_within = entry.disproven_within.max(n);
        }
        if best != 0 {
            entry.best = best;
        }
        self.insert(entry);
    }

    fn insert(&mut self, entry: Entry) {
        let bucket = self.bucket(entry.key);
        let slots = &mut self.entries[bucket];
        let mut shallowest = 0;
        for (offset, slot) in slots.iter().enumerate() {
            if slot.key == entry.key {
                shallowest = offset;
                break;
            }
            if slot.depth() < slots[shallowest].depth() {
                shallowest = offset;
            }
        }
        self.used += usize::from(slots[shallowest].depth() == 0);
        slots[shallowest] = entry;
    }

    fn grow(&mut self) {
        let larger = vec![Entry::default(); (self.entries.len() * 4).max(INITIAL_ENTRIES)];
        let entries = std::mem::replace(&mut self.entries, larger);
        self.used = 0;
        for entry in entries.into_iter().filter(|entry| entry.depth() > 0) {
            self.insert(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_returns_only_exact_keys() {
        let mut table = Table::default();
        assert!(table.get(Key(1, 2)).is_none());
        for number in 0..10_000 {
            table.put(Key(number * 977, number), 2, number % 2 == 0, number as u16);
        }
        for number in 0..10_000 {
            if let Some(entry) = table.get(Key(number * 977, number)) {
                assert_eq!((entry.proven_within, entry.disproven_within), if number % 2 == 0 { (2, 0) } else { (0, 2) });
                assert_eq!(entry.best, number as u16);
            }
            assert!(table.get(Key(number * 977, number + 1)).is_none());
        }
        let found = (0..10_000).filter(|&number| table.get(Key(number * 977, number)).is_some()).count();
        assert!(found > 9_000, "{found}");
    }

    #[test]
    fn bounds_tighten_and_shallow_entries_are_replaced() {
        let mut table = Table::default();
        for (n, proven) in [(5, true), (3, true), (4, true), (1, false), (2, false), (1, false)] {
            table.put(Key(8, 8), n, proven, 0);
        }
        let entry = table.get(Key(8, 8)).map(|entry| (entry.proven_within, entry.disproven_within));
        assert_eq!(entry, Some((3, 2)));
        // All of these map to the same bucket at every size.
        for number in 0..20 {
            table.put(Key(8 + (number << 40), 100 + number), 1, false, 0);
        }
        assert!(table.get(Key(8, 8)).is_some());
    }
}
