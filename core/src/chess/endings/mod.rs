//! Endgame tables (distance to mate in plies) for KQK, KRK and KPK, by retrograde analysis.
//!
//! A table is computed on first use and kept for the life of the process. Wins are claimed only if neither the 50-move rule nor a
//! threefold repetition can intervene.

mod table;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cozy_chess::{Board, Color, Piece, Square};

use crate::games::chess::Chess;
use crate::games::{Action, Game};
use table::{Place, Table};

/// The result of a position for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It mates in that many plies; no shorter mate exists.
    Wins(u16),
    /// It is mated in that many plies; no defence is longer.
    Loses(u16),
    /// Neither side can force a mate.
    Drawn,
}

/// Returns the result of a nonterminal three-piece position; None for others, and where a draw by rule may intervene.
#[must_use]
pub fn ending(state: &Chess) -> Option<Ending> {
    let board = state.board();
    if board.occupied().len() != 3 {
        return None;
    }
    let (strong, kind, place) = read(board)?;
    let to_move = board.side_to_move();
    let Some(plies) = table(kind).plies(place, to_move == strong) else { return Some(Ending::Drawn) };
    // The line to a mate never repeats a position, so only positions that occurred twice before could draw it.
    if u32::from(state.halfmove_clock()) + u32::from(plies) > 100 || !state.seen_twice().is_empty() {
        return None;
    }
    Some(if to_move == strong { Ending::Wins(plies) } else { Ending::Loses(plies) })
}

/// Returns each legal action with the result of the position after it, for the side to move there. Mate is a loss in 0 plies.
#[must_use]
pub fn moves(state: &Chess) -> Vec<(Action, Option<Ending>)> {
    let after = |action: Action| {
        let next = state.after(action);
        let known = match next.outcome_in_search() {
            Some(0) => Some(Ending::Drawn),
            Some(_) => Some(Ending::Loses(0)),
            None => ending(&next),
        };
        (action, known)
    };
    state.legal().into_iter().map(after).collect()
}

/// Returns the optimal line to the mate; empty without one.
#[must_use]
pub fn line(state: &Chess) -> Vec<Action> {
    let mut state = state.clone();
    let mut line = Vec::new();
    while let Some(known @ (Ending::Wins(plies) | Ending::Loses(plies))) = ending(&state) {
        if plies == 0 {
            break;
        }
        let wanted = match known {
            Ending::Wins(_) => Some(Ending::Loses(plies - 1)),
            _ => Some(Ending::Wins(plies - 1)),
        };
        let Some((action, _)) = moves(&state).into_iter().find(|(_, known)| *known == wanted) else { break };
        line.push(action);
        state.play(action);
    }
    line
}

/// Returns the strong side, its piece, and the squares relative to it.
fn read(board: &Board) -> Option<(Color, Piece, Place)> {
    let strong = if board.colors(Color::White).len() == 2 { Color::White } else { Color::Black };
    let kind = [Piece::Queen, Piece::Rook, Piece::Pawn].into_iter().find(|&kind| !board.pieces(kind).is_empty())?;
    let piece = board.colored_pieces(strong, kind).into_iter().next()?;
    let rights = board.castle_rights(strong);
    if rights.short.is_some() || rights.long.is_some() {
        return None; // the tables exclude castling
    }
    let relative = |square: Square| square.relative_to(strong);
    Some((
        strong,
        kind,
        Place { strong_king: relative(board.king(strong)), weak_king: relative(board.king(!strong)), piece: relative(piece) },
    ))
}

fn table(kind: Piece) -> &'static Table {
    static QUEEN: OnceLock<Table> = OnceLock::new();
    static ROOK: OnceLock<Table> = OnceLock::new();
    static PAWN: OnceLock<Table> = OnceLock::new();
    let cell = match kind {
        Piece::Queen => &QUEEN,
        Piece::Rook => &ROOK,
        _ => &PAWN,
    };
    if let Some(table) = cell.get() {
        return table;
    }
    let needed = if kind == Piece::Pawn { vec![table(Piece::Queen), table(Piece::Rook)] } else { Vec::new() };
    let _building = lock_all();
    cell.get_or_init(|| Table::new(kind, &needed))
}

/// Locks the computation of tables, after a running one has finished.
pub(crate) fn lock_all() -> MutexGuard<'static, ()> {
    static BUILDING: Mutex<()> = Mutex::new(());
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::chess::fixtures::{game, play};

    fn known(fen: &str) -> Option<Ending> {
        ending(&game(fen))
    }

    #[test]
    fn results_are_colour_symmetric() {
        assert_eq!(known("7k/8/5K2/8/8/8/8/R7 w - - 0 1"), Some(Ending::Wins(3)));
        assert_eq!(known("r7/8/8/8/8/5k2/8/7K b - - 0 1"), Some(Ending::Wins(3)));
        assert_eq!(known("7k/5K2/8/8/8/8/8/R7 b - - 0 1"), Some(Ending::Loses(2)));
        assert_eq!(known("8/8/8/8/8/4k3/4P3/4K3 w - - 0 1"), Some(Ending::Drawn));
        assert_eq!(known("4k3/8/4K3/4P3/8/8/8/8 b - - 0 1"), known("8/8/8/8/4p3/4k3/8/4K3 w - - 0 1"));
    }

    #[test]
    fn wins_near_the_50_move_limit_are_not_claimed() {
        assert_eq!(known("7k/8/5K2/8/8/8/8/R7 w - - 97 80"), Some(Ending::Wins(3)));
        assert_eq!(known("7k/8/5K2/8/8/8/8/R7 w - - 98 80"), None);
        assert_eq!(known("8/8/8/8/8/4k3/4P3/4K3 w - - 98 80"), Some(Ending::Drawn));
        // A further occurrence would be the third, so no win is claimed.
        let mut game = game("7k/8/5K2/8/8/8/8/R7 w - - 0 1");
        for text in ["Ra2", "Kg8", "Ra1", "Kh8"] {
            assert!(ending(&game).is_some());
            play(&mut game, text);
        }
        assert_eq!((game.repetitions(), ending(&game)), (1, None));
    }

    #[test]
    fn castling_and_other_material_are_not_in_the_tables() {
        assert_eq!(known("4k3/8/8/8/8/8/8/4K2R w K - 0 1"), None);
        assert!(matches!(known("4k3/8/8/8/8/8/8/4K2R w - - 0 1"), Some(Ending::Wins(_))));
        assert_eq!(known("4k3/p7/8/8/8/8/8/4K2R w - - 0 1"), None);
        assert_eq!(known("4k3/8/8/8/8/8/8/4KN2 w - - 0 1"), None);
    }

    #[test]
    fn lines_end_in_mate() {
        for fen in ["8/8/8/8/8/2k5/8/K6R w - - 0 1", "8/8/8/4k3/8/8/4P3/4K3 b - - 0 1", "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"] {
            let mut game = game(fen);
            let Some(Ending::Wins(plies) | Ending::Loses(plies)) = ending(&game) else {
                assert!(line(&game).is_empty());
                continue;
            };
            let line = line(&game);
            assert_eq!(line.len(), usize::from(plies), "{fen}");
            line.into_iter().for_each(|action| game.play(action));
            assert_eq!(game.outcome().map(i8::abs), Some(1), "{fen}");
        }
    }
}
