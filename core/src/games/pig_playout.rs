//! Playouts of Pig without unpredictable branches: coins and dice are computed ahead, many at a time, and played turn by turn, because
//! the scores decide only when a turn is the last one, not where it ends.

use crate::runtime::random::Random;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;

/// Random numbers computed at a time: one bit of a word each.
const AHEAD: usize = u64::BITS as usize;

/// Words of a byte for each number.
const WORDS: usize = AHEAD / 8;

/// Multiplied by a word, adds to each byte those of the same parity below it.
const EVERY_SECOND: u64 = 0x0001_0001_0001_0001;

/// The next random numbers of a stream, each read both as a coin and as a die.
#[derive(Debug, PartialEq)]
struct Draws {
    /// Whether each number as a coin says to hold, the first in the lowest bit.
    holds: u64,
    /// Whether each number as a coin ends the turn: it says to hold, or the number after it is a die that shows 1.
    ends: u64,
    /// The points of each number as a die, 0 for the face 1, added up over every second number; the first two entries are 0.
    sums: [u8; AHEAD + 2],
}

impl Draws {
    fn new(random: &Random) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
            // SAFETY: the CPU supports the target features of the function that is called.
            unsafe {
                if simd::has_avx512() {
                    return Self::new_avx512(random);
                }
                if simd::is_available() {
                    return Self::new_avx2(random);
                }
            }
        }
        Self::new_portable(random)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,bmi1,popcnt")]
    fn new_avx512(random: &Random) -> Self {
        Self::new_portable(random)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn new_avx2(random: &Random) -> Self {
        Self::new_portable(random)
    }

    /// Computes eight words at a time, byte by byte, so that no lane of a register depends on another one.
    #[inline(always)]
    fn new_portable(random: &Random) -> Self {
        let (mut points, mut holds, mut ones) = ([0; WORDS], [0; WORDS], [0; WORDS]);
        for byte in 0..8 {
            for word in 0..WORDS {
                let number = random.peek((8 * word + byte) as u64);
                let drawn = points_of(number);
                points[word] |= drawn << (8 * byte);
                holds[word] |= (number >> 63) << byte;
                ones[word] |= u64::from(drawn == 0) << byte;
            }
        }
        let bits = |words: [u64; WORDS]| words.iter().rev().fold(0, |bits, word| bits << 8 | word);
        let mut sums = [0; AHEAD + 2];
        let mut sum = 0_u64;
        for (bytes, word) in sums[2..].chunks_exact_mut(8).zip(points) {
            // At most 32 times 6 points: no byte overflows.
            sum = word.wrapping_mul(EVERY_SECOND) + (sum >> 48).wrapping_mul(EVERY_SECOND);
            bytes.copy_from_slice(&sum.to_le_bytes());
        }
        Self { holds: bits(holds), ends: bits(holds) | bits(ones) >> 1, sums }
    }

    /// Returns the points of the dice between two coins, the first of which says to roll.
    #[inline(always)]
    fn points_between(&self, first: usize, last: usize) -> u64 {
        u64::from(self.sums[last + 1]) - u64::from(self.sums[first + 1])
    }
}

/// Returns the points of the face that `Random::draw_cumulative` chooses by a number of 64 random bits, 0 for the face 1.
#[inline(always)]
const fn points_of(number: u64) -> u64 {
    // The highest sum of probabilities is just below 1: a share of one half, 2^52 of 2^53, still draws the third face.
    let face = ((number >> 11) * 6 - (number >> 63)) >> 53;
    face + (face != 0) as u64
}

/// Returns the player who wins a random game of `scores`, where `turn` has `total` points in hand; neither player has reached the
/// target. `random` is left at an arbitrary number.
pub(super) fn winner(scores: [u16; 2], total: u16, turn: u8, target: u16, random: &mut Random) -> u8 {
    /// The coins that may follow one another in a turn.
    const EVERY_SECOND_BIT: u64 = u64::MAX / 3;
    let target = u64::from(target);
    let (mut own, mut other) = (u64::from(scores[usize::from(turn & 1)]), u64::from(scores[usize::from(turn & 1 ^ 1)]));
    // The score of the player to move if the total was held. Who has the target in hand holds, and wins.
    let mut held = own + u64::from(total);
    let mut player = turn & 1;
    while held < target {
        let draws = Draws::new(random);
        let mut coin = 0;
        while coin < AHEAD {
            let ends = draws.ends >> coin & EVERY_SECOND_BIT;
            if ends == 0 {
                // The turn goes on behind these numbers, with a coin whose die is not known yet, or at the next one.
                let last = AHEAD - (AHEAD - coin) % 2;
                held += draws.points_between(coin, last);
                coin = last;
                break;
            }
            let last = coin + ends.trailing_zeros() as usize;
            let reached = held + draws.points_between(coin, last);
            if reached >= target {
                return player;
            }
            let holds = draws.holds >> last & 1;
            // All bits are set if the total is lost.
            let loses = holds.wrapping_sub(1);
            (own, other) = (other, reached ^ ((reached ^ own) & loses));
            (held, player) = (own, player ^ 1);
            coin = last + 2 - holds as usize;
        }
        random.skip(coin as u64);
    }
    player
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random::Purpose;

    #[test]
    fn points_are_those_of_drawn_faces() {
        // The sums of the probabilities in the order of the faces, as the rules list them.
        let sums: Vec<f64> = (0..6)
            .scan(0.0, |sum, _| {
                *sum += 1.0 / 6.0;
                Some(*sum)
            })
            .collect();
        let face = |number: u64| {
            let mark = (number >> 11) as f64 / (1u64 << 53) as f64 * sums[5];
            sums.iter().filter(|&&sum| sum <= mark).count() as u64
        };
        let boundaries = (0..=6u64).map(|sixth| (u128::from(sixth) << 64) / 6);
        for number in boundaries.flat_map(|boundary| (0..20_000).map(move |step| (boundary + step).wrapping_sub(10_000))) {
            let Ok(number) = u64::try_from(number) else { continue };
            assert_eq!(points_of(number), [0, 2, 3, 4, 5, 6][face(number) as usize], "{number:#x}");
        }
    }

    #[test]
    fn numbers_computed_ahead_are_those_of_the_stream() {
        for key in 0..200 {
            let mut random = Random::new(key, Purpose::Playout);
            let draws = Draws::new(&random);
            assert_eq!(draws, Draws::new_portable(&random));
            #[cfg(target_arch = "x86_64")]
            if simd::is_available() {
                #[expect(unsafe_code, reason = "a path that a CPU with AVX-512 does not take")]
                // SAFETY: the CPU supports the target features of this function.
                let of_avx2 = unsafe { Draws::new_avx2(&random) };
                assert_eq!(draws, of_avx2);
            }
            let numbers: Vec<u64> = (0..AHEAD).map(|_| random.next_u64()).collect();
            for (place, &number) in numbers.iter().enumerate() {
                let is_lost = numbers.get(place + 1).is_some_and(|&die| points_of(die) == 0);
                assert_eq!(draws.holds >> place & 1, number >> 63);
                assert_eq!(draws.ends >> place & 1, (number >> 63) | u64::from(is_lost));
                let sum: u64 = (0..=place).rev().step_by(2).map(|before| points_of(numbers[before])).sum();
                assert_eq!(u64::from(draws.sums[place + 2]), sum);
            }
        }
    }

    #[test]
    fn winners_are_those_of_games_played_number_by_number() {
        let play = |mut scores: [u64; 2], mut total: u64, turn: u8, target: u64, random: &mut Random| {
            let mut player = usize::from(turn);
            while scores[player] + total < target {
                let points = if random.below(2) == 1 { None } else { Some(points_of(random.next_u64())) };
                match points {
                    Some(0) => (total, player) = (0, 1 - player),
                    Some(points) => total += points,
                    None => {
                        scores[player] += total;
                        (total, player) = (0, 1 - player);
                    }
                }
            }
            player as u8
        };
        for key in 0..20_000 {
            let mut random = Random::new(key, Purpose::RootMove);
            let target = [1, 7, 40, 100, 1000][key as usize % 5];
            let [first, second, total] = [random.below(target), random.below(target), random.below(target.min(40))];
            let turn = random.below(2) as u8;
            let own = if turn == 0 { first } else { second };
            if own + total >= target {
                continue;
            }
            let mut stream = Random::new(key, Purpose::Playout);
            let expected = play([first.into(), second.into()], total.into(), turn, target.into(), &mut stream.clone());
            assert_eq!(winner([first as u16, second as u16], total as u16, turn, target as u16, &mut stream), expected, "{key}");
        }
    }
}
