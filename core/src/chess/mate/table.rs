//! The transposition table of a mate search, for one call.

use cozy_chess::{Board, Color, Piece};

/// Maximum number of entries: 24 MiB.
const MOST: usize = 1 << 20;
/// Initial number of entries: searches at leaves need no more.
const LEAST: usize = 1 << 5;
/// Entries per bucket.
const PLACES: usize = 4;

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

/// What the table stores: proven within `mate` moves (0: unproven), disproven within `none` moves; the move that proved
/// (attack) or disproved (defence) last.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    key: Key,
    pub mate: u8,
    pub none: u8,
    pub best: u16,
}

impl Entry {
    fn worth(&self) -> u8 {
        self.mate.max(self.none)
    }
}

/// A growing hash table; a full one replaces the cheapest entries.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    used: usize,
}

impl Table {
    #[inline]
    fn places(&self, key: Key) -> std::ops::Range<usize> {
        let first = key.0 as usize & (self.entries.len() - 1) & !(PLACES - 1);
        first..first + PLACES
    }

    /// Returns the entry of a position.
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<Entry> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries[self.places(key)].iter().find(|entry| entry.key == key && entry.worth() > 0).copied()
    }

    /// Stores the result of a search within `n` moves.
    pub(super) fn put(&mut self, key: Key, n: u8, proven: bool, best: u16) {
        if self.entries.len() < MOST && self.used * 2 >= self.entries.len() {
            self.grow();
        }
        let mut entry = self.get(key).unwrap_or(Entry { key, ..Entry::default() });
        if proven {
            entry.mate = if entry.mate == 0 { n } else { entry.mate.min(n) };
        } else {
            entry.none = entry.none.max(n);
        }
        if best != 0 {
            entry.best = best;
        }
        self.place(entry);
    }

    fn place(&mut self, entry: Entry) {
        let places = self.places(entry.key);
        let slots = &mut self.entries[places];
        let mut cheapest = 0;
        for (place, slot) in slots.iter().enumerate() {
            if slot.key == entry.key {
                cheapest = place;
                break;
            }
            if slot.worth() < slots[cheapest].worth() {
                cheapest = place;
            }
        }
        self.used += usize::from(slots[cheapest].worth() == 0);
        slots[cheapest] = entry;
    }

    fn grow(&mut self) {
        let larger = vec![Entry::default(); (self.entries.len() * 4).max(LEAST)];
        let entries = std::mem::replace(&mut self.entries, larger);
        self.used = 0;
        for entry in entries.into_iter().filter(|entry| entry.worth() > 0) {
            self.place(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_again_and_only_they() {
        let mut table = Table::default();
        assert!(table.get(Key(1, 2)).is_none());
        for number in 0..10_000 {
            table.put(Key(number * 977, number), 2, number % 2 == 0, number as u16);
        }
        for number in 0..10_000 {
            if let Some(entry) = table.get(Key(number * 977, number)) {
                assert_eq!((entry.mate, entry.none), if number % 2 == 0 { (2, 0) } else { (0, 2) });
                assert_eq!(entry.best, number as u16);
            }
            assert!(table.get(Key(number * 977, number + 1)).is_none());
        }
        let kept = (0..10_000).filter(|&number| table.get(Key(number * 977, number)).is_some()).count();
        assert!(kept > 9_000, "{kept}");
    }

    #[test]
    fn bounds_only_get_tighter_and_the_cheap_is_forgotten_first() {
        let mut table = Table::default();
        for (n, proven) in [(5, true), (3, true), (4, true), (1, false), (2, false), (1, false)] {
            table.put(Key(8, 8), n, proven, 0);
        }
        let entry = table.get(Key(8, 8)).map(|entry| (entry.mate, entry.none));
        assert_eq!(entry, Some((3, 2)));
        // All of these map to the same bucket at every size.
        for number in 0..20 {
            table.put(Key(8 + (number << 40), 100 + number), 1, false, 0);
        }
        assert!(table.get(Key(8, 8)).is_some());
    }
}
