//! Pig: two players race to a target score with one die. Actions: 0 rolls, 1 holds. Outcomes: the faces 1 to 6.
//!
//! A face above 1 is added to the turn's total, a 1 loses the total and the turn, holding scores it. With the target in hand, holding is
//! the one legal action. Notation: `roll`, `hold`, the face.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::write_status;
use super::game::win_for;
use super::pig_playout::winner;
use crate::error::Error;
use crate::games::{plain_playout, Action, BoardStyle, Dimensions, Game, Playout, CHANCE};
use crate::runtime::random::Random;

const ROLL: Action = 0;
const HOLD: Action = 1;
const FACES: Action = 6;
const TARGET: u16 = 100;
const LARGEST_TARGET: u16 = 1000;
const PROBABILITY: f64 = 1.0 / FACES as f64;

/// The sums of the probabilities of the first faces.
static CUMULATIVE: [f64; FACES as usize] = {
    let mut sums = [0.0; FACES as usize];
    let (mut total, mut face) = (0.0, 0);
    while face < sums.len() {
        total += PROBABILITY;
        sums[face] = total;
        face += 1;
    }
    sums
};

/// A state of Pig.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pig {
    scores: [u16; 2],
    /// The points of this turn.
    total: u16,
    target: u16,
    /// The player whose turn it is.
    turn: u8,
    /// Whether the die is rolled next.
    rolling: bool,
}

impl Pig {
    fn own_score(&self) -> u16 {
        self.scores[usize::from(self.turn & 1)]
    }

    fn must_hold(&self) -> bool {
        self.own_score() + self.total >= self.target
    }

    fn end_turn(&mut self) {
        (self.total, self.turn) = (0, self.turn ^ 1);
    }
}

impl Game for Pig {
    const NAME: &'static str = "pig";
    const TITLE: &'static str = "Pig";
    const OPENING_PLIES: u32 = 2;
    const MAX_LEGAL: usize = 2;
    const HAS_CHANCE: bool = true;
    const MAX_OUTCOMES: usize = FACES as usize;
    const BOARD: BoardStyle = BoardStyle::Scores;

    fn start() -> Self {
        Self { scores: [0; 2], total: 0, target: TARGET, turn: 0, rolling: false }
    }

    fn parse_start(text: &str) -> Result<Self, Error> {
        match text.trim().parse() {
            Ok(target) if (1..=LARGEST_TARGET).contains(&target) => Ok(Self { target, ..Self::start() }),
            _ => Err(Error::InvalidArgument(format!("target must be a whole number from 1 to {LARGEST_TARGET}, not {text}"))),
        }
    }

    #[inline]
    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: 2, planes: 3, scalars: 4, height: 1, width: self.target.into() }
    }

    #[inline]
    fn to_play(&self) -> u8 {
        if self.rolling {
            CHANCE
        } else {
            self.turn
        }
    }

    #[inline]
    fn outcome(&self) -> Option<i8> {
        // Only the player who has just held can have won.
        (self.scores[usize::from(self.turn & 1 ^ 1)] >= self.target).then(|| win_for(self.turn ^ 1))
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.outcome().is_some() {
            return;
        }
        match (self.rolling, self.must_hold()) {
            (true, _) => actions.extend(1..=FACES),
            (false, true) => actions.push(HOLD),
            (false, false) => actions.extend([ROLL, HOLD]),
        }
    }

    fn chance_outcomes(&self, outcomes: &mut Vec<(Action, f64)>) {
        outcomes.clear();
        if self.rolling {
            outcomes.extend((1..=FACES).map(|face| (face, PROBABILITY)));
        }
    }

    #[inline]
    fn is_legal(&self, action: Action) -> bool {
        if self.rolling {
            (1..=FACES).contains(&action)
        } else {
            self.outcome().is_none() && (action == HOLD || action == ROLL && !self.must_hold())
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        if !self.rolling {
            if action == ROLL {
                self.rolling = true;
                return;
            }
            let score = &mut self.scores[usize::from(self.turn & 1)];
            *score = score.saturating_add(self.total);
            self.end_turn();
            return;
        }
        self.rolling = false;
        if action == 1 {
            self.end_turn();
        } else {
            self.total = self.total.saturating_add(action);
        }
    }

    #[inline]
    fn play_random(&mut self, random: &mut Random) {
        let action = if self.must_hold() { HOLD } else { random.below(2) as Action };
        self.play(action);
    }

    #[inline]
    fn play_outcome(&mut self, random: &mut Random) {
        self.play(random.draw_cumulative(&CUMULATIVE) as Action + 1);
    }

    fn playout(&mut self, random: &mut Random, max_depth: u32) -> Playout {
        if max_depth < u32::MAX {
            return plain_playout(self, random, max_depth);
        }
        self.play_outcomes(random);
        if let Some(result) = self.outcome() {
            return Some(result).into();
        }
        let winner = winner(self.scores, self.total, self.turn, self.target, random);
        (self.scores[usize::from(winner)], self.total, self.turn) = (self.target, 0, winner ^ 1);
        Some(win_for(winner)).into()
    }

    fn action_to_string(&self, action: Action) -> String {
        match action {
            _ if self.rolling => action.to_string(),
            ROLL => "roll".into(),
            HOLD => "hold".into(),
            _ => action.to_string(),
        }
    }

    fn represent(&self, class: &str) -> String {
        let target = if self.target == TARGET { String::new() } else { self.target.to_string() };
        format!("{class}({target})\n{self}")
    }

    /// Planes of one row, a cell for each point up to the target: those that the player to move has scored, those of the other, and
    /// those that the player to move would have by holding. Scalars: the score of the player to move, of the other and the turn's
    /// total, as shares of the target; 1 if it is the turn of player 0, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        let (own, other) = (self.own_score(), self.scores[usize::from(self.turn & 1 ^ 1)]);
        let words = planes.len() / 3;
        for (plane, points) in planes.chunks_exact_mut(words).zip([own, other, own + self.total]) {
            let mut left = usize::from(points.min(self.target));
            for word in plane {
                let here = left.min(64);
                *word = if here == 64 { u64::MAX } else { (1 << here) - 1 };
                left -= here;
            }
        }
        let share = |points: u16| f32::from(points) / f32::from(self.target);
        scalars[..4].copy_from_slice(&[share(own), share(other), share(self.total), f32::from(1 - (self.turn & 1))]);
    }
}

impl fmt::Display for Pig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "X {}\nO {}\nturn {}", self.scores[0], self.scores[1], self.total)?;
        write_status(self, formatter)
    }
}

impl Analyzed for Pig {
    type Analysis = NoAnalysis;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(mut game: Pig, actions: &[Action]) -> Pig {
        for &action in actions {
            assert!(game.is_legal(action), "{action} in\n{game}");
            game.play(action);
        }
        game
    }

    #[test]
    fn a_one_loses_the_total_and_holding_scores_it() {
        let game = after(Pig::start(), &[ROLL, 6, ROLL, 5]);
        assert_eq!((game.total, game.scores, game.to_play()), (11, [0, 0], 0));
        assert_eq!(after(game, &[ROLL]).to_play(), CHANCE);
        let lost = after(game, &[ROLL, 1]);
        assert_eq!((lost.total, lost.scores, lost.to_play()), (0, [0, 0], 1));
        let held = after(game, &[HOLD]);
        assert_eq!((held.total, held.scores, held.to_play()), (0, [11, 0], 1));
        assert_eq!(held.to_string(), "X 11\nO 0\nturn 0\nO to move");
    }

    #[test]
    fn the_target_is_held_and_wins() {
        let game = after(Pig::parse_start("6").expect("a target"), &[ROLL, 6]);
        assert_eq!(game.legal(), [HOLD]);
        let end = after(game, &[HOLD]);
        assert_eq!((end.outcome(), end.legal(), end.is_legal(ROLL)), (Some(1), vec![], false));
        assert!(end.to_string().ends_with("X wins"));
    }

    #[test]
    fn targets_are_checked() {
        for wrong in ["0", "1001", "-1", "many", ""] {
            assert!(matches!(Pig::parse_start(wrong), Err(Error::InvalidArgument(_))), "{wrong}");
        }
    }

    #[test]
    fn observation_has_a_cell_for_each_point() {
        let game = Pig { scores: [70, 3], total: 5, turn: 0, ..Pig::start() };
        let (mut planes, mut scalars) = ([0; 6], [0.0; 4]);
        game.pack_observation(&mut planes, &mut scalars);
        assert_eq!(planes, [u64::MAX, 0x3F, 7, 0, u64::MAX, 0x7FF]);
        assert_eq!(scalars, [0.7, 0.03, 0.05, 1.0]);
    }
}
