//! The solver's transposition table: fixed size, shared by threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Entries per bucket: half a cache line.
const PLACES: usize = 4;
/// Keys have 49 bits; the bucket implies at least 12 of them and the entry stores the others, so that matches are exact.
const KEY_BITS: u32 = 49;
const LEAST_PLACE_BITS: u32 = 12;
const REST_BITS: u32 = KEY_BITS - LEAST_PLACE_BITS;
/// Odd, so that multiplication modulo 2^49 is a bijection.
const SPREAD: u64 = 0x1_9E37_79B9_7F4B;

/// The bounds of scores.
pub(super) const MOST: i8 = 21;

/// What the table stores of a position: bounds of the score, the best column if any, and the work as a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub least: i8,
    pub most: i8,
    pub best: Option<u8>,
    pub work: u8,
}

impl Known {
    pub(super) const NOTHING: Self = Self { least: -MOST, most: MOST, best: None, work: 0 };

    // From the high bits down: work (6), best + 1 (3), most + 32 (6), least + 32 (6), the rest of the key. No entry is 0, since
    // `most + 32` is not.
    fn pack(self, rest: u64) -> u64 {
        let bound = |score: i8| u64::from((score + 32) as u8);
        let best = self.best.map_or(0, |column| u64::from(column) + 1);
        (((u64::from(self.work.min(63)) << 3 | best) << 6 | bound(self.most)) << 6 | bound(self.least)) << REST_BITS | rest
    }

    fn unpack(entry: u64) -> Self {
        let bits = entry >> REST_BITS;
        let bound = |bits: u64| (bits & 63) as i8 - 32;
        Self {
            least: bound(bits),
            most: bound(bits >> 6),
            best: (bits >> 12 & 7).checked_sub(1).map(|column| column as u8),
            work: (bits >> 15) as u8,
        }
    }
}

/// Entries are single words, read and written atomically, so that threads need no lock.
pub(super) struct Table {
    entries: Box<[AtomicU64]>,
    place_bits: u32,
}

impl Table {
    /// Allocates at most `bytes`, at least 128 KiB; pages are committed on first write.
    pub(super) fn new(bytes: usize) -> Self {
        let buckets = (bytes / (PLACES * size_of::<AtomicU64>())).max(1);
        let place_bits = buckets.ilog2().clamp(LEAST_PLACE_BITS, 40);
        Self { entries: bytemuck::allocation::zeroed_slice_box(PLACES << place_bits), place_bits }
    }

    #[inline]
    fn find(&self, key: u64) -> (&[AtomicU64], u64) {
        let spread = key.wrapping_mul(SPREAD) & ((1 << KEY_BITS) - 1);
        let bucket = (spread >> (KEY_BITS - self.place_bits)) as usize;
        (&self.entries[bucket * PLACES..][..PLACES], spread & ((1 << REST_BITS) - 1))
    }

    /// Returns the entry of a position.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Known {
        let (places, rest) = self.find(key);
        for place in places {
            let entry = place.load(Ordering::Relaxed);
            if entry & ((1 << REST_BITS) - 1) == rest && entry != 0 {
                return Known::unpack(entry);
            }
        }
        Known::NOTHING
    }

    /// Stores an entry, replacing the one of least work in its bucket.
    #[inline]
    pub(super) fn put(&self, key: u64, known: Known) {
        let (places, rest) = self.find(key);
        let (mut chosen, mut least_work) = (&places[0], u64::MAX);
        for place in places {
            let entry = place.load(Ordering::Relaxed);
            if entry & ((1 << REST_BITS) - 1) == rest || entry == 0 {
                chosen = place;
                break;
            }
            let work = entry >> (REST_BITS + 15);
            if work < least_work {
                (chosen, least_work) = (place, work);
            }
        }
        chosen.store(known.pack(rest), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were_and_only_under_their_key() {
        // Neighbouring keys and keys that differ in high bits alone, in a table that is much too small for them.
        let keys: Vec<u64> = (0..200_000_u64).map(|n| n | (n % 64) << 43).collect();
        let known = |key: u64| Known {
            least: -(key as i8 % 22).abs(),
            most: ((key >> 3) as i8 % 22).abs(),
            best: [None, Some((key % 7) as u8)][key as usize & 1],
            work: (key % 64) as u8,
        };
        let table = Table::new(0);
        let mut found = 0;
        for &key in &keys {
            table.put(key, known(key));
            assert_eq!(table.get(key), known(key));
        }
        for &key in &keys {
            let entry = table.get(key);
            if entry != Known::NOTHING {
                assert_eq!(entry, known(key));
                found += 1;
            }
        }
        // The same places, but other keys.
        assert!((200_000..400_000).all(|key| table.get(key) == Known::NOTHING));
        assert_eq!(found, PLACES << LEAST_PLACE_BITS);
    }

    #[test]
    fn the_cheapest_is_forgotten_and_memory_is_bounded() {
        let table = Table::new(0);
        table.put(1, Known { work: 40, ..Known::NOTHING });
        for key in 2..200_000 {
            table.put(key, Known { work: (key % 8) as u8, ..Known::NOTHING });
        }
        assert_eq!(table.get(1).work, 40);
        for bytes in [0, 1 << 17, 3 << 20, 1 << 24] {
            assert!(size_of_val(&*Table::new(bytes).entries) <= bytes.max(1 << 17));
        }
        assert_eq!(size_of_val(&*Table::new(1 << 24).entries), 1 << 24);
    }
}
