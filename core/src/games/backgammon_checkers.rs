//! Checkers of backgammon as bit-sliced numbers, and the places from which a die can be played.

use super::ranked_bits::bits;

/// The places of a player's checkers, by the way they have gone: the bar, the points 24 to 1 as the player counts them, and off.
pub(super) const BAR: u32 = 0;
pub(super) const OFF: u32 = 25;
const HOME: u32 = 19;
pub(super) const POINTS: u32 = 0x01FF_FFFE;
pub(super) const CHECKERS: u32 = 15;
/// The checkers of a player: bit i of plane k is bit k of the number at place i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Checkers(pub(super) [u32; 4]);

impl Checkers {
    #[inline]
    pub(super) fn add(&mut self, place: u32) {
        let mut carry = 1 << place;
        for plane in &mut self.0 {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        let mut borrow = 1 << place;
        for plane in &mut self.0 {
            (*plane, borrow) = (*plane ^ borrow, !*plane & borrow);
        }
    }

    #[inline]
    pub(super) fn count(&self, place: u32) -> u32 {
        (0..).zip(self.0).map(|(bit, plane)| (plane >> place & 1) << bit).sum()
    }

    /// Places with at least one checker.
    #[inline]
    pub(super) fn held(&self) -> u32 {
        self.0[0] | self.held_by_several()
    }

    /// Places with at least two checkers.
    #[inline]
    pub(super) fn held_by_several(&self) -> u32 {
        self.0[1] | self.0[2] | self.0[3]
    }

    /// Places with exactly one checker.
    #[inline]
    pub(super) fn single(&self) -> u32 {
        self.0[0] & !self.held_by_several()
    }

    /// Builds the checkers from numbers by place.
    pub(super) fn of(numbers: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut checkers = Self::default();
        for (place, number) in numbers {
            for _ in 0..number {
                checkers.add(place);
            }
        }
        checkers
    }
}

/// Turns points as one player counts them into those of the other.
#[inline]
pub(super) fn from_other_side(places: u32) -> u32 {
    places.reverse_bits() >> 6
}

/// What the moves of a turn depend on, as the mover counts.
#[derive(Clone, Copy)]
pub(super) struct Mover {
    pub(super) own: Checkers,
    /// Points that the other player does not hold.
    pub(super) open: u32,
}

impl Mover {
    /// Returns the places from which a die can be played.
    #[inline]
    pub(super) fn origins(&self, die: u32) -> u32 {
        let held = self.own.held() & (POINTS | 1 << BAR);
        if held & 1 << BAR != 0 {
            return u32::from(self.open >> die & 1 != 0);
        }
        let onto_points = held & (self.open & POINTS) >> die;
        let last = held.trailing_zeros();
        if last < HOME {
            return onto_points;
        }
        // All are home: an exact roll bears off, a higher one the last checker.
        let exact = held & 1 << (OFF - die);
        onto_points | exact | if last + die >= OFF { held & held.wrapping_neg() } else { 0 }
    }

    /// Returns the places from which `die` can be played after a checker of `origin` has gone on by `first_die`.
    #[inline]
    pub(super) fn next_origins(&self, origin: u32, first_die: u32, die: u32) -> u32 {
        let mut next = *self;
        next.own.remove(origin);
        next.own.add((origin + first_die).min(OFF));
        next.origins(die)
    }
}

/// Returns the places of a set.
#[inline]
pub(super) fn places(set: u32) -> impl Iterator<Item = u32> {
    bits(set.into()).map(u32::from)
}
