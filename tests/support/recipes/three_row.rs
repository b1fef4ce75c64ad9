//! Three in a row on seven squares in a line. Action = square 0-6 from the left. Notation: `1`-`7`.

use std::fmt;

use super::analysis::{Analyzed, NoAnalysis};
use super::board_text::{parse_by_name, stone_symbol, write_status};
use super::game::win_for;
use crate::error::Error;
use crate::games::{Action, Dimensions, Game, Symmetry};
use crate::runtime::random::Random;

const SQUARES: u16 = 7;

/// A state of three in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreeRow {
    /// The squares of player 0 and of player 1.
    stones: [u8; 2],
    ply: u8,
}

impl ThreeRow {
    fn is_empty(&self, square: Action) -> bool {
        square < SQUARES && (self.stones[0] | self.stones[1]) >> square & 1 == 0
    }
}

impl Game for ThreeRow {
    const NAME: &'static str = "three_row";
    const TITLE: &'static str = "Three in a row";
    const OPENING_PLIES: u32 = 1;
    const MAX_LEGAL: usize = SQUARES as usize;

    fn start() -> Self {
        Self { stones: [0; 2], ply: 0 }
    }

    fn dimensions(&self) -> Dimensions {
        Dimensions { num_actions: SQUARES as usize, planes: 2, scalars: 1, height: 1, width: SQUARES as usize }
    }

    fn symmetries(&self) -> Vec<Symmetry> {
        let mirrored = |cell: usize| SQUARES as usize - 1 - cell;
        vec![Symmetry::of_cells(self.dimensions(), |cell| cell), Symmetry::of_cells(self.dimensions(), mirrored)]
    }

    fn to_play(&self) -> u8 {
        self.ply & 1
    }

    fn outcome(&self) -> Option<i8> {
        let last = self.to_play() ^ 1;
        let stones = self.stones[usize::from(last)];
        if stones & stones >> 1 & stones >> 2 != 0 {
            return Some(win_for(last));
        }
        (u16::from(self.ply) >= SQUARES).then_some(0)
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        actions.extend((0..SQUARES).filter(|&square| self.is_legal(square)));
    }

    fn is_legal(&self, action: Action) -> bool {
        self.is_empty(action) && self.outcome().is_none()
    }

    fn play(&mut self, action: Action) {
        self.stones[usize::from(self.to_play())] |= 1 << (action & 7);
        self.ply = self.ply.wrapping_add(1);
    }

    fn play_random(&mut self, random: &mut Random) {
        let chosen = random.choose(u32::from(SQUARES) - u32::from(self.ply));
        let square = (0..SQUARES).filter(|&square| self.is_empty(square)).nth(chosen as usize);
        self.play(square.unwrap_or_default());
    }

    fn action_to_string(&self, action: Action) -> String {
        (action + 1).to_string()
    }

    fn parse_action(&self, text: &str) -> Result<Action, Error> {
        parse_by_name(self, text)
    }

    /// Planes: squares of the player to move, squares of the other. Scalar: 1 if player 0 is to move, else 0.
    fn pack_observation(&self, planes: &mut [u64], scalars: &mut [f32]) {
        let player = usize::from(self.to_play());
        planes[0] = u64::from(self.stones[player]);
        planes[1] = u64::from(self.stones[player ^ 1]);
        scalars[0] = 1.0 - player as f32;
    }
}

impl fmt::Display for ThreeRow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "1 2 3 4 5 6 7")?;
        for square in 0..SQUARES {
            write!(formatter, "{} ", stone_symbol(self.stones.map(|stones| stones >> square & 1 != 0)))?;
        }
        writeln!(formatter)?;
        write_status(self, formatter)
    }
}

impl Analyzed for ThreeRow {
    type Analysis = NoAnalysis;
}
