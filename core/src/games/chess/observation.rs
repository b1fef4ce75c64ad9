//! Observation: AlphaZero's 119 planes, from the perspective of the side to move.
//!
//! A bit is `rank * 8 + file`, rank 0 being the first rank of the side to move (for Black all eight
//! positions are flipped vertically). For each of the eight last positions, newest first, 14 planes: own pawns, knights, bishops,
//! rooks, queens, king; the opponent's; all ones if the position is repeated at least once; all ones if at least twice. Positions
//! before the start of the game (or the FEN) are all zeros.
//!
//! Then 7 scalars: 1 if White is to move, else 0; move number / 100; own castling rights, king side and queen side; the opponent's;
//! halfmove clock / 100.

use cozy_chess::Color;

use super::state::HistoryEntry;
use super::Chess;

const STEPS: usize = 8;
const PLANES_PER_STEP: usize = 14;
/// Bit planes of an observation.
pub(super) const PLANES: usize = STEPS * PLANES_PER_STEP;
/// Scalar planes of an observation.
pub(super) const SCALARS: usize = 7;

pub(super) fn pack(game: &Chess, planes: &mut [u64], scalars: &mut [f32]) {
    let board = game.board();
    let color = board.side_to_move();
    let now = HistoryEntry::of(board, game.repetitions() as u8);
    for (age, step) in planes.chunks_exact_mut(PLANES_PER_STEP).take(STEPS).enumerate() {
        match if age == 0 { Some(&now) } else { game.history_entry(age) } {
            Some(entry) => pack_step(entry, color, step),
            None => step.fill(0),
        }
    }
    let (own, other) = (board.castle_rights(color), board.castle_rights(!color));
    let numbers = [
        f32::from(color == Color::White),
        f32::from(game.fullmove_number()) / 100.0,
        f32::from(own.short.is_some()),
        f32::from(own.long.is_some()),
        f32::from(other.short.is_some()),
        f32::from(other.long.is_some()),
        f32::from(game.halfmove_clock()) / 100.0,
    ];
    for (scalar, number) in scalars.iter_mut().zip(numbers) {
        *scalar = number;
    }
}

fn pack_step(entry: &HistoryEntry, color: Color, step: &mut [u64]) {
    let (own, other) = step.split_at_mut(6);
    for ((&squares, own), other) in entry.pieces.iter().zip(own).zip(other.iter_mut()) {
        let (white, black) = (squares & entry.white, squares & !entry.white);
        // A vertical flip swaps the ranks, which are bytes.
        (*own, *other) = if color == Color::White { (white, black) } else { (black.swap_bytes(), white.swap_bytes()) };
    }
    other[6] = if entry.repetitions >= 1 { u64::MAX } else { 0 };
    other[7] = if entry.repetitions >= 2 { u64::MAX } else { 0 };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::play;
    use crate::games::Game;

    fn observe(game: &Chess) -> (Vec<u64>, Vec<f32>) {
        let mut planes = vec![3; PLANES];
        let mut scalars = vec![3.0; SCALARS];
        game.pack_observation(&mut planes, &mut scalars);
        (planes, scalars)
    }

    #[test]
    fn start_position_has_no_history() {
        let (planes, scalars) = observe(&Chess::default());
        let step = [0xFF00, 0x42, 0x24, 0x81, 0x08, 0x10, 0xFF << 48, 0x42 << 56, 0x24 << 56, 0x81 << 56, 0x08 << 56, 0x10 << 56, 0, 0];
        assert_eq!(planes[..14], step);
        assert!(planes[14..].iter().all(|&plane| plane == 0));
        assert_eq!(scalars, [1.0, 0.01, 1.0, 1.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn observation_of_black_is_flipped() {
        let mut game = Chess::default();
        play(&mut game, "e4");
        let (planes, scalars) = observe(&game);
        assert_eq!(planes[0], 0xFF00); // Black's own pawns on its second rank
        assert_eq!(planes[6], (0xEF << 48) | (1 << (4 * 8 + 4))); // White's, the one from e2 on the fifth rank from here
        assert_eq!(planes[14 + 6], 0xFF << 48); // one ply ago, still from Black's side
        assert!(planes[28..].iter().all(|&plane| plane == 0));
        assert_eq!(scalars[0], 0.0);
    }

    #[test]
    fn observation_has_history_repetitions_and_castling_rights() {
        let mut game = Chess::default();
        let mut newest: Vec<Vec<u64>> = Vec::new();
        for text in "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8 e4 e5 Ke2 Nc6".split_whitespace() {
            let flip = game.to_play() == 1;
            let own: Vec<u64> = observe(&game).0[..14].to_vec();
            // As White sees it, so that both sides' views can be compared.
            let white = if flip {
                own[6..12].iter().chain(&own[..6]).map(|plane| plane.swap_bytes()).chain(own[12..].iter().copied()).collect()
            } else {
                own
            };
            newest.insert(0, white);
            play(&mut game, text);
        }
        assert_eq!(game.to_play(), 0);
        let (planes, scalars) = observe(&game);
        for age in 1..8 {
            assert_eq!(planes[age * 14..(age + 1) * 14], newest[age - 1][..], "{age}");
        }
        // The third time at the start: 4 plies ago.
        assert_eq!(planes[4 * 14 + 12..5 * 14], [u64::MAX; 2]);
        assert_eq!(planes[5 * 14 + 12..6 * 14], [u64::MAX, 0]);
        assert_eq!(planes[12..14], [0, 0]);
        assert_eq!(scalars, [1.0, 0.07, 0.0, 0.0, 1.0, 1.0, 0.02]);
        // A clone carries the same history.
        let mut copy = Chess::default();
        copy.clone_from(&game);
        assert_eq!((observe(&copy), observe(&game.clone())), (observe(&game), observe(&game)));
    }
}
