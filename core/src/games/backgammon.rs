//! Backgammon, without doubling cube; every win counts the same.
//!
//! An action plays both dice: `26 * second + first`, the origins of two checkers, for the higher die first, plus 676 for the lower die
//! first. Origins are 0 to 23 for the points 24 to 1 as the mover counts them, 24 for the bar, 25 for no move. A double is two actions
//! in a row with two dice each. Of actions with the same result the one with the higher die first, then the smaller, is legal.
//!
//! Outcomes are the 21 rolls, `high * (high - 1) / 2 + low - 1`. The opening roll is one of 30 without doubles, from 21 on with O to start.
//! Notation: `8/5 6/5`, `bar/20*/18`, `6/off`, `pass`; rolls `3-1`, the opening's `X 3-1`.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::backgammon_checkers::{from_other_side, places, Checkers, Mover, BAR, CHECKERS, OFF, POINTS};
use super::backgammon_text::{parse_action, parse_start, text_of, write_points};
use super::game::win_for;
use crate::error::Error;
use crate::games::{Action, BoardStyle, Dimensions, Game, Playout, CHANCE};
use crate::runtime::random::Random;

/// The checkers at the start: place and number.
const SET_UP: [(u32, u32); 4] = [(1, 2), (12, 5), (17, 3), (19, 5)];

const NO_MOVE: Action = 25;
const LOW_FIRST: Action = 26 * 26;
const PASS: Action = LOW_FIRST + 26 * NO_MOVE + NO_MOVE;
const NUM_ACTIONS: usize = 2 * LOW_FIRST as usize;
/// Outcomes of later rolls, and the first opening roll with which O starts.
const ROLLS: Action = 21;
const OPENING_PROBABILITY: f64 = 1.0 / 30.0;

/// The dice of each roll, the higher first.
pub(super) static DICE: [[u8; 2]; ROLLS as usize] = {
    let mut dice = [[0; 2]; ROLLS as usize];
    let mut high = 1;
    while high <= 6 {
        let mut low = 1;
        while low <= high {
            dice[high * (high - 1) / 2 + low - 1] = [high as u8, low as u8];
            low += 1;
        }
        high += 1;
    }
    dice
};

/// The sums of the probabilities of the first rolls.
static CUMULATIVE: [f64; ROLLS as usize] = {
    let mut sums = [0.0; ROLLS as usize];
    let (mut total, mut roll) = (0.0, 0);
    while roll < sums.len() {
        total += probability(roll);
        sums[roll] = total;
        roll += 1;
    }
    sums
};

const fn probability(roll: usize) -> f64 {
    if DICE[roll][0] == DICE[roll][1] {
        1.0 / 36.0
    } else {
        1.0 / 18.0
    }
}

/// A state of backgammon. Player 0 is X, player 1 is O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backgammon {
    pub(super) checkers: [Checkers; 2],
    /// The dice, the higher first; 0 before they are rolled.
    pub(super) dice: [u8; 2],
    /// The player to move, or to roll.
    pub(super) turn: u8,
    /// Whether this is the second half of a double.
    pub(super) is_second_half: bool,
    /// Whether the dice decide who starts.
    pub(super) is_opening: bool,
}

impl Backgammon {
    /// The state before the opening roll.
    pub(super) fn opening() -> Self {
        let checkers = [Checkers::of(SET_UP); 2];
        Self { checkers, dice: [0; 2], turn: 0, is_second_half: false, is_opening: true }
    }

    fn own(&self) -> Checkers {
        self.checkers[usize::from(self.turn & 1)]
    }

    fn other(&self) -> Checkers {
        self.checkers[usize::from(self.turn & 1 ^ 1)]
    }

    fn is_chance(&self) -> bool {
        self.dice[0] == 0
    }

    #[inline]
    fn mover(&self) -> Mover {
        Mover { own: self.own(), open: !from_other_side(self.other().held_by_several()) }
    }

    /// Returns the dice in the order in which an action uses them.
    #[inline]
    fn order(&self, action: Action) -> [u32; 2] {
        let [high, low] = self.dice.map(u32::from);
        if action < LOW_FIRST {
            [high, low]
        } else {
            [low, high]
        }
    }

    /// Returns the moves of an action: origin and die, none for a pass.
    pub(super) fn moves_of(&self, action: Action) -> impl Iterator<Item = (u32, u32)> {
        let pair = action % LOW_FIRST;
        let origins = [pair % 26, pair / 26 % 26];
        origins.into_iter().zip(self.order(action)).filter(|&(origin, _)| origin != NO_MOVE).map(|(origin, die)| (place(origin), die))
    }

    /// Moves a checker of the player to move; returns whether it hits.
    #[inline]
    pub(super) fn move_checker(&mut self, origin: u32, die: u32) -> bool {
        let mover = usize::from(self.turn & 1);
        let target = (origin + die).min(OFF);
        self.checkers[mover].remove(origin);
        self.checkers[mover].add(target);
        let other = &mut self.checkers[mover ^ 1];
        let is_hit = target < OFF && other.single() >> (OFF - target) & 1 != 0;
        if is_hit {
            other.remove(OFF - target);
            other.add(BAR);
        }
        is_hit
    }

    /// Writes the legal actions of a decision.
    #[inline]
    fn write_actions(&self, actions: &mut Vec<Action>) {
        let mover = self.mover();
        let [high, low] = self.dice.map(u32::from);
        let firsts = [mover.origins(high), mover.origins(low)];
        if high == low {
            self.write_double(&mover, firsts[0], actions);
        } else {
            self.write_pairs(&mover, firsts, actions);
        }
        if actions.is_empty() {
            // One die at most can be played: the higher if possible.
            let (first, order) = if firsts[0] != 0 { (firsts[0], 0) } else { (firsts[1], LOW_FIRST) };
            actions.extend(places(first).map(|place| order + 26 * NO_MOVE + origin(place)));
        }
        if actions.is_empty() {
            actions.push(PASS);
        }
    }

    /// Writes the actions that play both dice of a double: each pair of origins in one order.
    #[inline]
    fn write_double(&self, mover: &Mover, firsts: u32, actions: &mut Vec<Action>) {
        let die = u32::from(self.dice[0]);
        let mut seconds = [0; 26];
        for first in places(firsts) {
            seconds[first as usize] = mover.next_origins(first, die, die);
            let is_new = |&second: &u32| second >= first || seconds[second as usize] >> first & 1 == 0;
            actions.extend(places(seconds[first as usize]).filter(is_new).map(|second| 26 * origin(second) + origin(first)));
        }
    }

    /// Writes the actions that play two different dice, one for each result.
    #[inline]
    fn write_pairs(&self, mover: &Mover, firsts: [u32; 2], actions: &mut Vec<Action>) {
        let [high, low] = self.dice.map(u32::from);
        let is_new = |actions: &[Action], action| !actions.iter().any(|&other| self.change(other) == self.change(action));
        let mut seconds = [0; 26];
        for first in places(firsts[0]) {
            seconds[first as usize] = mover.next_origins(first, high, low);
            for second in places(seconds[first as usize]) {
                let action = 26 * origin(second) + origin(first);
                // With the higher die first, only one checker's way of both dice can be listed already.
                if second + low != first || is_new(actions, action) {
                    actions.push(action);
                }
            }
        }
        for first in places(firsts[1]) {
            for second in places(mover.next_origins(first, low, high)) {
                let action = LOW_FIRST + 26 * origin(second) + origin(first);
                if seconds[second as usize] >> first & 1 == 0 && is_new(actions, action) {
                    actions.push(action);
                }
            }
        }
    }

    /// Returns what tells results of actions that play both dice apart: sums of powers of 16 by place, and the points hit.
    fn change(&self, action: Action) -> u128 {
        let blots = from_other_side(self.other().single()) & POINTS;
        self.moves_of(action).fold(0, |sum, (origin, die)| {
            let target = (origin + die).min(OFF);
            let moved = (1u128 << (4 * target)) - (1u128 << (4 * origin));
            (sum + moved) | u128::from((blots & 1 << target) >> 1) << 104
        })
    }

    fn end_turn(&mut self) {
        (self.dice, self.turn, self.is_second_half) = ([0; 2], self.turn ^ 1, false);
    }
}

impl Game for Backgammon {
    const NAME: &'static str = "backgammon";
    const TITLE: &'static str = "Backgammon";
    const OPENING_START: Option<&'static str> = Some("roll");
    const OPENING_PLIES: u32 = 2;
    const MAX_LEGAL: usize = NUM_ACTIONS;
    const HAS_CHANCE: bool = true;
    const MAX_OUTCOMES: usize = 30;
    const BOARD: BoardStyle = BoardStyle::Points;

    fn start() -> Self {
        Self { dice: [3, 1], is_opening: false, ..Self::opening() }
    }

    fn parse_start(text: &str) -> Result<Self, Error> {
        parse_start(text)
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: NUM_ACTIONS, planes: 2 * CHECKERS as usize, scalars: 12, height: 1, width: 24 }
    }

    #[inline]
    fn to_play(&self) -> u8 {
        if self.is_chance() && self.outcome().is_none() {
            CHANCE
        } else {
            self.turn
        }
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        // All 15 checkers are off: each plane has the bit.
        let has_won = |checkers: Checkers| checkers.0.iter().fold(1 << OFF, |bit, plane| bit & plane) != 0;
        (0..).zip(self.checkers).find(|&(_, checkers)| has_won(checkers)).map(|(player, _)| win_for(player))
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.outcome().is_some() {
        } else if self.is_opening {
            actions.extend((0..2 * ROLLS).filter(|&outcome| !is_double(outcome)));
        } else if self.is_chance() {
            actions.extend(0..ROLLS);
        } else {
            self.write_actions(actions);
        }
    }

    fn chance_outcomes(&self, outcomes: &mut Vec<(Action, f64)>) {
        outcomes.clear();
        if self.is_chance() {
            let of = |outcome| if self.is_opening { OPENING_PROBABILITY } else { probability(usize::from(outcome)) };
            outcomes.extend(self.legal().into_iter().map(|outcome| (outcome, of(outcome))));
        }
    }

    fn is_legal(&self, action: Action) -> bool {
        self.legal().contains(&action)
    }

    #[inline]
    fn play(&mut self, action: Action) {
        if self.is_chance() {
            self.dice = DICE[usize::from(action % ROLLS)];
            if self.is_opening {
                (self.turn, self.is_opening) = (u8::from(action >= ROLLS), false);
            }
            return;
        }
        let mut moved = 0;
        for (origin, die) in self.moves_of(action) {
            self.move_checker(origin, die);
            moved += 1;
        }
        if self.dice[0] == self.dice[1] && !self.is_second_half && moved == 2 {
            self.is_second_half = true;
        } else {
            self.end_turn();
        }
    }

    fn play_random(&mut self, random: &mut Random) {
        let mut actions = Vec::with_capacity(64);
        self.write_actions(&mut actions);
        self.play(actions[random.choose(actions.len() as u32) as usize]);
    }

    #[inline]
    fn play_outcome(&mut self, random: &mut Random) {
        if self.is_opening {
            let outcomes = self.legal();
            if let Some(chosen) = random.draw(outcomes.iter().map(|_| OPENING_PROBABILITY)) {
                self.play(outcomes[chosen]);
            }
        } else {
            self.play(random.draw_cumulative(&CUMULATIVE) as Action);
        }
    }

    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        // One buffer for all moves.
        let mut actions = Vec::with_capacity(64);
        self.play_outcomes(random);
        for _ in 0..max_depth {
            if let Some(result) = self.outcome() {
                return Some(result).into();
            }
            actions.clear();
            self.write_actions(&mut actions);
            self.play(actions[random.choose(actions.len() as u32) as usize]);
            self.play_outcomes(random);
        }
        self.outcome().into()
    }

    fn action_to_string(&self, action: Action) -> String {
        text_of(self, action)
    }

    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        parse_action(self, text)
    }

    fn represent(&self, class: &str) -> String {
        format!("{class}\n{self}")
    }

    /// Planes of the points 24 to 1 as the player to move counts them: those where that player has at least 1, 2, ... 15 checkers, then
    /// the same of the other. Scalars: shares of the checkers on the bar and off of the player to move, of those of the other; half the
    /// number of dice with 1, 2, ... 6; 1 in the second half of a double; 1 if it is the turn of player 0, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        let (own, other) = (self.own(), self.other());
        for ((checkers, is_own), planes) in [(own, true), (other, false)].into_iter().zip(planes.chunks_exact_mut(CHECKERS as usize)) {
            planes.fill(0);
            for point in 1..OFF {
                let cell = if is_own { point } else { OFF - point } - 1;
                planes.iter_mut().take(checkers.count(point) as usize).for_each(|plane| *plane |= 1 << cell);
            }
        }
        let share = |checkers: Checkers, place| checkers.count(place) as f32 / CHECKERS as f32;
        scalars[..4].copy_from_slice(&[share(own, BAR), share(own, OFF), share(other, BAR), share(other, OFF)]);
        for face in 1..=6 {
            scalars[3 + face] = self.dice.iter().filter(|&&die| usize::from(die) == face).count() as f32 / 2.0;
        }
        scalars[10] = f32::from(u8::from(self.is_second_half));
        scalars[11] = f32::from(1 - (self.turn & 1));
    }
}

fn is_double(outcome: Action) -> bool {
    let [high, low] = DICE[usize::from(outcome % ROLLS)];
    high == low
}

impl fmt::Display for Backgammon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_points(self, formatter)
    }
}

impl Analyzed for Backgammon {
    type Analysis = NoAnalysis;
}

/// Returns the number of an origin in actions.
#[inline]
fn origin(place: u32) -> Action {
    if place == BAR {
        24
    } else {
        place as Action - 1
    }
}

/// Returns the place of an origin in actions.
#[inline]
fn place(origin: Action) -> u32 {
    if origin >= 24 {
        BAR
    } else {
        u32::from(origin) + 1
    }
}
