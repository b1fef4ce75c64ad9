//! Sets of bits with rank and select, from which playouts choose uniformly. There are no branches: those of a playout would be
//! mispredicted at nearly every move.

use super::Action;
use crate::runtime::random::Random;

const EACH_BYTE: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x80 * EACH_BYTE;

/// The index of the k-th set bit of a byte.
static BIT_OF_BYTE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut found) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 != 0 {
                table[byte][found] = bit;
                found += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Returns the indices of the set bits, in ascending order.
#[inline]
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = Action> {
    std::iter::from_fn(move || {
        let lowest = word.trailing_zeros() as Action;
        word &= word.wrapping_sub(1);
        (lowest < 64).then_some(lowest)
    })
}

/// Words of bits, numbered from the lowest of the first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankedBits<const WORDS: usize> {
    words: [u64; WORDS],
    /// Byte i of a count is the number of set bits in bytes 0 to i of the word.
    counts: [u64; WORDS],
}

impl<const WORDS: usize> RankedBits<WORDS> {
    #[inline]
    pub(super) fn new(words: [u64; WORDS]) -> Self {
        let counts = words.map(|bits| {
            let pairs = bits - (bits >> 1 & 0x5555_5555_5555_5555);
            let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
            ((nibbles + (nibbles >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(EACH_BYTE)
        });
        Self { words, counts }
    }

    /// Returns the number of set bits.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.counts.iter().map(|count| (count >> 56) as u32).sum()
    }

    /// Returns the `random.choose(n)`-th of the n > 0 set bits, in ascending order.
    #[inline]
    pub(super) fn choose(&self, random: &mut Random) -> usize {
        let mut rank = u64::from(random.choose(self.len()));
        let (mut index, mut bits, mut counts) = (0, self.words[0], self.counts[0]);
        for word in 1..WORDS {
            let is_later = rank >= counts >> 56 && index + 1 == word;
            rank -= if is_later { counts >> 56 } else { 0 };
            (index, bits, counts) = if is_later { (word, self.words[word], self.counts[word]) } else { (index, bits, counts) };
        }
        // The first byte with a count above `rank`: no byte borrows from the next, since counts are at most 64.
        let above = ((counts | HIGH_BITS) - (rank + 1) * EACH_BYTE) & HIGH_BITS;
        let shift = above.trailing_zeros() & 56;
        let before = (counts << 8) >> shift & 0xFF;
        let byte = (bits >> shift & 0xFF) as usize;
        64 * index + shift as usize + usize::from(BIT_OF_BYTE[byte][(rank.wrapping_sub(before) & 7) as usize])
    }

    /// Clears a set bit.
    #[inline]
    pub(super) fn remove(&mut self, bit: usize) {
        self.words[bit / 64] &= !(1 << (bit % 64));
        self.counts[bit / 64] -= EACH_BYTE << (bit & 56);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::random::Purpose;

    proptest! {
        #[test]
        fn chosen_bits_are_those_of_a_list(words: [u64; 3], seed: u64) {
            let mut listed: Vec<usize> = (0..192).filter(|bit| words[bit / 64] >> (bit % 64) & 1 != 0).collect();
            let mut bits = RankedBits::new(words);
            let mut random = Random::new(seed, Purpose::Playout);
            while !listed.is_empty() {
                prop_assert_eq!(bits.len() as usize, listed.len());
                let expected = listed.remove(random.clone().choose(listed.len() as u32) as usize);
                let chosen = bits.choose(&mut random);
                prop_assert_eq!(chosen, expected);
                bits.remove(chosen);
            }
            prop_assert_eq!(bits, RankedBits::new([0; 3]));
        }
    }
}
