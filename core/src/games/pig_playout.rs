//! Playouts of Pig without unpredictable branches: coins and dice are computed ahead, many at a time, and a turn ends by masks.

use crate::runtime::random::Random;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;

/// Random numbers computed at a time: one bit of a word each.
const AHEAD: usize = u64::BITS as usize;

/// The next random numbers of a stream, each read both as a coin and as a die.
struct Draws {
    /// Whether each number as a coin says to hold, the first in the lowest bit.
    holds: u64,
    /// The points of each number as a die; 0 for the face 1.
    points: [u64; AHEAD],
}

impl Draws {
    fn compute(&mut self, random: &Random) {
        #[cfg(target_arch = "x86_64")]
        if simd::is_available() {
            #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
            // SAFETY: the CPU supports the target features of this function.
            return unsafe { self.compute_avx2(random) };
        }
        self.compute_each(random);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn compute_avx2(&mut self, random: &Random) {
        self.compute_each(random);
    }

    #[inline(always)]
    fn compute_each(&mut self, random: &Random) {
        self.holds = 0;
        for (place, points) in self.points.iter_mut().enumerate() {
            let number = random.peek(place as u64);
            self.holds |= (number >> 63) << place;
            *points = points_of(number);
        }
    }
}

/// Returns the points of the face that `Random::draw_cumulative` chooses by a number of 64 random bits, 0 for the face 1.
#[inline(always)]
const fn points_of(number: u64) -> u64 {
    // The highest sum of probabilities is just below 1: a share of one half, 2^52 of 2^53, still draws the third face.
    let face = ((number >> 11) * 6 - (number >> 63)) >> 53;
    face + (face != 0) as u64
}

/// Returns the player who wins a random game of `scores`, where `turn` has `total` points in hand; neither player has reached the target.
pub(super) fn winner(scores: [u16; 2], total: u16, turn: u8, target: u16, random: &mut Random) -> u8 {
    let target = u64::from(target);
    let (mut own, mut other) = (u64::from(scores[usize::from(turn & 1)]), u64::from(scores[usize::from(turn & 1 ^ 1)]));
    // The score of the player to move if the total was held.
    let mut held = own + u64::from(total);
    let mut player = u64::from(turn);
    let mut draws = Draws { holds: 0, points: [0; AHEAD] };
    // With the target in hand, holding wins and draws nothing.
    while held < target {
        draws.compute(random);
        let mut place = 0;
        // A coin that says to roll needs one more number.
        while place + 1 < AHEAD && held < target {
            let holds = draws.holds & 1;
            let points = draws.points[place + 1];
            let reached = held + (points & holds.wrapping_sub(1));
            // All bits are set if the turn ends, or by holding. A turn that reaches the target has points, and ends with the game.
            let ends = (holds | u64::from(points == 0)).wrapping_neg();
            let scored = own ^ ((own ^ held) & holds.wrapping_neg());
            (own, held, other) = (own ^ ((own ^ other) & ends), reached ^ ((reached ^ other) & ends), other ^ ((other ^ scored) & ends));
            player ^= ends & 1;
            draws.holds >>= 2 - holds;
            place += 2 - holds as usize;
        }
        random.skip(place as u64);
    }
    player as u8 & 1
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
        let mut random = Random::new(5, Purpose::Playout);
        let (mut draws, mut plain) = (Draws { holds: 1, points: [9; AHEAD] }, Draws { holds: 2, points: [8; AHEAD] });
        draws.compute(&random);
        plain.compute_each(&random);
        assert_eq!((draws.holds, draws.points), (plain.holds, plain.points));
        for (place, &points) in draws.points.iter().enumerate() {
            let mut coin = random.clone();
            assert_eq!(draws.holds >> place & 1, u64::from(coin.below(2)));
            assert_eq!(points, points_of(random.next_u64()));
        }
    }
}
