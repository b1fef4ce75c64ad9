//! Counter-based random numbers: every number is a function of (seed, call, row, simulation, purpose), so that a search can be
//! replayed from any point, on any thread. `python/pondertree/random.py` implements the same generator.

/// The increment of SplitMix64, 2^64 / golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The purpose of a random stream; streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Ties between edge scores, and the order of untried edges.
    Select = 1,
    /// Random playouts.
    Playout = 2,
    /// The final choice of a move.
    RootMove = 3,
    /// Dirichlet noise at the root.
    Noise = 4,
    /// Gumbel variates at the root.
    Gumbel = 5,
    /// Sampled outcomes of chance nodes.
    Outcome = 6,
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection with good avalanche.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Mixes a word into a key; the order of words matters.
#[inline]
#[must_use]
pub const fn fold(key: u64, word: u64) -> u64 {
    mix(key ^ mix(word.wrapping_add(GOLDEN)))
}

/// Returns the key of the `row`-th tree of the `call`-th search with `seed`.
#[must_use]
pub const fn tree_key(seed: u64, call: u64, row: u64) -> u64 {
    fold(fold(fold(0, seed), call), row)
}

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates the stream of `key` for `purpose`.
    #[inline]
    #[must_use]
    pub const fn new(key: u64, purpose: Purpose) -> Self {
        Self { state: fold(key, purpose as u64) }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Returns the value of `next_u64` after `count` further draws, without advancing the stream.
    #[inline]
    #[must_use]
    pub const fn peek(&self, count: u64) -> u64 {
        mix(self.state.wrapping_add(GOLDEN.wrapping_mul(count + 1)))
    }

    /// Returns the value of `uniform` after `count` further draws, without advancing the stream.
    #[inline]
    #[must_use]
    pub fn uniform_ahead(&self, count: u64) -> f64 {
        let bits = self.peek(count) >> 11;
        // Converted in halves, which vectorises without AVX-512.
        const LOW: u64 = 0x4330_0000_0000_0000; // 2^52, the last bit of which is 1
        const HIGH: u64 = 0x4530_0000_0000_0000; // 2^84, the last bit of which is 2^32
        let low = f64::from_bits(LOW | (bits & 0xFFFF_FFFF)) - f64::from_bits(LOW);
        let high = f64::from_bits(HIGH | (bits >> 32)) - f64::from_bits(HIGH);
        (high + low) * (1.0 / (1u64 << 53) as f64)
    }

    /// Skips `count` draws.
    #[inline]
    pub fn skip(&mut self, count: u64) {
        self.state = self.state.wrapping_add(GOLDEN.wrapping_mul(count));
    }

    /// Returns an integer below `n` by multiply and shift (Lemire 2019, without rejection: the bias is below 2^-24 for the sizes
    /// used here).
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// Like `below`, but draws nothing for n = 1.
    #[inline]
    pub fn choose(&mut self, n: u32) -> u32 {
        if n == 1 {
            0
        } else {
            self.below(n)
        }
    }

    /// Returns the index of a weight, drawn in proportion: by the first cumulative sum above a uniform share of the total. None if
    /// there are none. Weights are not negative and not all 0; 0 is never drawn.
    #[inline]
    pub fn draw(&mut self, weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        // Not `sum`, which starts from -0.0.
        let mark = self.uniform() * weights.clone().fold(0.0, |total, weight| total + weight);
        let (mut running, mut chosen) = (0.0, None);
        for (index, weight) in weights.enumerate() {
            if weight > 0.0 {
                chosen = Some(index);
            }
            running += weight;
            if running > mark {
                break;
            }
        }
        chosen
    }

    /// Returns what `draw` would return for positive weights, whose sums up to each `cumulative` lists.
    #[inline]
    pub fn draw_cumulative(&mut self, cumulative: &[f64]) -> usize {
        let last = cumulative.len().saturating_sub(1);
        let mark = self.uniform() * cumulative.get(last).copied().unwrap_or(0.0);
        cumulative.iter().map(|&sum| usize::from(sum <= mark)).sum::<usize>().min(last)
    }

    /// Returns a number in [0, 1) with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_matches_pinned_values() {
        // The tests of the reference implementation pin the same values; a change invalidates every recorded search.
        assert_eq!(tree_key(0, 0, 0), 0x7993_3B9D_F3D7_C2C7);
        assert_eq!(tree_key(7, 1, 2), 0x62EB_4218_392A_9D3F);
        assert_eq!(Random::new(tree_key(7, 1, 2), Purpose::Select).next_u64(), 0x1A4A_2DFA_A92A_6D07);
    }

    #[test]
    fn uniform_ahead_equals_later_draws() {
        let mut random = Random::new(3, Purpose::Noise);
        let start = random.clone();
        for count in 0..1000 {
            assert_eq!(start.uniform_ahead(count), random.uniform());
        }
        let mut skipped = start;
        skipped.skip(1000);
        assert_eq!(skipped.next_u64(), random.next_u64());
    }

    #[test]
    fn weights_are_drawn_in_proportion_and_zeros_never() {
        let weights = [0.0, 0.5, 1.5, 0.0, 2.0, 0.0];
        let (mut random, mut counts) = (Random::new(1, Purpose::Playout), [0; 6]);
        for _ in 0..8000 {
            counts[random.draw(weights.into_iter()).expect("weights")] += 1;
        }
        assert_eq!((counts[0], counts[3], counts[5]), (0, 0, 0));
        let near = |count: i32, expected: i32| (count - expected).abs() < 150;
        assert!(near(counts[1], 1000) && near(counts[2], 3000) && near(counts[4], 4000), "{counts:?}");
        assert_eq!(random.draw([].into_iter()), None);
    }

    #[test]
    fn draws_by_cumulative_sums_equal_draws_by_weights() {
        for length in 1..40 {
            let weights = (0..length).map(|index| if index % 2 == 0 { 0.9 } else { 0.1 } / f64::from(length));
            let sums: Vec<f64> = weights
                .clone()
                .scan(0.0, |sum, weight| {
                    *sum += weight;
                    Some(*sum)
                })
                .collect();
            let mut random = Random::new(length as u64, Purpose::Playout);
            let mut other = random.clone();
            assert!((0..1000).all(|_| random.draw(weights.clone()) == Some(other.draw_cumulative(&sums))));
        }
    }

    #[test]
    fn below_is_uniform_below_its_bound() {
        let mut random = Random::new(1, Purpose::Playout);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }

    #[test]
    fn keys_depend_on_the_order_of_words() {
        assert_ne!(tree_key(1, 2, 3), tree_key(2, 1, 3));
        assert_ne!(tree_key(1, 0, 0), tree_key(0, 1, 0));
        assert_ne!(tree_key(0, 0, 1), tree_key(0, 1, 0));
    }
}
