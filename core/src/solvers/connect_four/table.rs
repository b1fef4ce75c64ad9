//! The solver's transposition table: fixed size, shared by threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Entries per bucket: half a cache line.
const BUCKET_SIZE: usize = 4;
/// Keys have 49 bits; the bucket implies at least 12 of them and the entry stores the others, so that matches are exact.
const KEY_BITS: u32 = 49;
const MIN_INDEX_BITS: u32 = 12;
const REST_BITS: u32 = KEY_BITS - MIN_INDEX_BITS;
/// Odd, so that multiplication modulo 2^49 is a bijection.
const SPREAD: u64 = 0x1_9E37_79B9_7F4B;

/// Upper bound of |score|.
pub(super) const MAX_SCORE: i8 = 21;

/// A table entry: bounds of the score, the best column if any, and the binary logarithm of the nodes searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub lower: i8,
    pub upper: i8,
    pub best: Option<u8>,
    pub work: u8,
}

impl Bounds {
    pub(super) const UNKNOWN: Self = Self { lower: -MAX_SCORE, upper: MAX_SCORE, best: None, work: 0 };

    // From the high bits down: work (6), best + 1 (3), upper + 32 (6), lower + 32 (6), the rest of the key. No entry is 0, since
    // `upper + 32` is not.
    fn pack(self, rest: u64) -> u64 {
        let bound = |score: i8| u64::from((score + 32) as u8);
        let best = self.best.map_or(0, |column| u64::from(column) + 1);
        (((u64::from(self.work.min(63)) << 3 | best) << 6 | bound(self.upper)) << 6 | bound(self.lower)) << REST_BITS | rest
    }

    fn unpack(entry: u64) -> Self {
        let bits = entry >> REST_BITS;
        let bound = |bits: u64| (bits & 63) as i8 - 32;
        Self {
            lower: bound(bits),
            upper: bound(bits >> 6),
            best: (bits >> 12 & 7).checked_sub(1).map(|column| column as u8),
            work: (bits >> 15) as u8,
        }
    }
}

/// Entries are single words, read and written atomically, so that threads need no lock.
pub(super) struct Table {
    entries: Box<[AtomicU64]>,
    index_bits: u32,
}

impl Table {
    /// Allocates at most `bytes`, at least 128 KiB; pages are committed on first write.
    pub(super) fn new(bytes: usize) -> Self {
        let buckets = (bytes / (BUCKET_SIZE * size_of::<AtomicU64>())).max(1);
        let index_bits = buckets.ilog2().clamp(MIN_INDEX_BITS, 40);
        Self { entries: bytemuck::allocation::zeroed_slice_box(BUCKET_SIZE << index_bits), index_bits }
    }

    #[inline]
    fn find(&self, key: u64) -> (&[AtomicU64], u64) {
        let spread = key.wrapping_mul(SPREAD) & ((1 << KEY_BITS) - 1);
        let bucket_index = (spread >> (KEY_BITS - self.index_bits)) as usize;
        (&self.entries[bucket_index * BUCKET_SIZE..][..BUCKET_SIZE], spread & ((1 << REST_BITS) - 1))
    }

    /// Returns the entry of a position.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Bounds {
        let (bucket, rest) = self.find(key);
        for slot in bucket {
            let entry = slot.load(Ordering::Relaxed);
            if entry & ((1 << REST_BITS) - 1) == rest && entry != 0 {
                return Bounds::unpack(entry);
            }
        }
        Bounds::UNKNOWN
    }

    /// Stores an entry, replacing the one of least work in its bucket.
    #[inline]
    pub(super) fn put(&self, key: u64, bounds: Bounds) {
        let (bucket, rest) = self.find(key);
        let (mut chosen, mut least_work) = (&bucket[0], u64::MAX);
        for slot in bucket {
            let entry = slot.load(Ordering::Relaxed);
            if entry & ((1 << REST_BITS) - 1) == rest || entry == 0 {
                chosen = slot;
                break;
            }
            let work = entry >> (REST_BITS + 15);
            if work < least_work {
                (chosen, least_work) = (slot, work);
            }
        }
        chosen.store(bounds.pack(rest), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_round_trips_by_exact_key() {
        // Neighbouring keys and keys that differ in high bits alone, in a table that is much too small for them.
        let keys: Vec<u64> = (0..200_000_u64).map(|n| n | (n % 64) << 43).collect();
        let bounds = |key: u64| Bounds {
            lower: -(key as i8 % 22).abs(),
            upper: ((key >> 3) as i8 % 22).abs(),
            best: [None, Some((key % 7) as u8)][key as usize & 1],
            work: (key % 64) as u8,
        };
        let table = Table::new(0);
        let mut found = 0;
        for &key in &keys {
            table.put(key, bounds(key));
            assert_eq!(table.get(key), bounds(key));
        }
        for &key in &keys {
            let entry = table.get(key);
            if entry != Bounds::UNKNOWN {
                assert_eq!(entry, bounds(key));
                found += 1;
            }
        }
        // The same buckets, but other keys.
        assert!((200_000..400_000).all(|key| table.get(key) == Bounds::UNKNOWN));
        assert_eq!(found, BUCKET_SIZE << MIN_INDEX_BITS);
    }

    #[test]
    fn replacement_evicts_the_least_work_within_bounded_memory() {
        let table = Table::new(0);
        table.put(1, Bounds { work: 40, ..Bounds::UNKNOWN });
        for key in 2..200_000 {
            table.put(key, Bounds { work: (key % 8) as u8, ..Bounds::UNKNOWN });
        }
        assert_eq!(table.get(1).work, 40);
        for bytes in [0, 1 << 17, 3 << 20, 1 << 24] {
            assert!(size_of_val(&*Table::new(bytes).entries) <= bytes.max(1 << 17));
        }
        assert_eq!(size_of_val(&*Table::new(1 << 24).entries), 1 << 24);
    }
}
