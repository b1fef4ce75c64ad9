//! Move categories: the ten categories of the hybrid search, in the order in which they are tried.

use cozy_chess::{Board, Move, Piece};

use super::checks::Checks;
use super::see::{see, SeeValues};
use crate::games::chess::{action, captures, Chess};
use crate::games::Action;

/// Number of categories.
pub const CATEGORIES: usize = 10;

/// The category of a move; lower ones are tried earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MoveCategory {
    /// Mate in one, or the first move of a known mate.
    ForcedMate = 0,
    /// A promotion to a queen, capturing or not.
    PromotionToQueen = 1,
    /// A capture with a static exchange value above the threshold.
    WinningCapture = 2,
    /// The first killer, a quiet move.
    KillerMove1 = 3,
    /// The second killer, a quiet move.
    KillerMove2 = 4,
    /// A capture with a static exchange value within the threshold.
    EqualCapture = 5,
    /// A quiet move that gives check.
    Check = 6,
    /// A quiet move with a high history score.
    HistoryHeuristic = 7,
    /// Any other quiet move.
    OtherQuiet = 8,
    /// A capture with a static exchange value below minus the threshold.
    LosingCapture = 9,
}

/// Inputs of categorization besides the position.
#[derive(Clone, Copy, Debug, Default)]
pub struct CategoryOptions {
    /// The first move of a known forced mate.
    pub mate: Option<Action>,
    /// Quiet killer moves; ignored where illegal or not quiet.
    pub killers: [Option<Action>; 2],
    /// Exchanges of at most this absolute value are equal; at least 0, in centipawns.
    pub see_threshold: i32,
    /// Piece values of the static exchange evaluation.
    pub values: SeeValues,
}

/// A legal move with its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Categorized {
    /// The move.
    pub mv: Move,
    /// Its action.
    pub action: Action,
    /// Its category.
    pub category: MoveCategory,
    /// Whether it gives check; categories of captures do not distinguish this.
    pub gives_check: bool,
}

/// Replaces `categories` by one entry per legal move, in the order of `legal_actions`.
///
/// The first that applies: mate; queen promotion; captures (en passant and capturing underpromotions included) by static exchange
/// evaluation; first and second killer; check; high history; the rest. `history` returns the history score of an action; it is high
/// if positive and at least half of the maximum among the quiet moves of the position.
pub fn categorize(game: &Chess, options: &CategoryOptions, history: impl Fn(Action) -> f64, categories: &mut Vec<Categorized>) {
    categories.clear();
    if game.is_drawn_automatically() {
        return;
    }
    let board = game.board();
    let checks = Checks::new(board);
    let mut highest = 0.0_f64;
    board.generate_moves(|moves| {
        for mv in moves {
            let action = action::encode(board, mv);
            let gives_check = checks.gives_check(mv);
            let category = fixed(board, &checks, options, mv, action, gives_check);
            if !is_forcing(board, mv) {
                highest = highest.max(history(action));
            }
            categories.push(Categorized { mv, action, category, gives_check });
        }
        false
    });
    if highest > 0.0 {
        for one in categories {
            if one.category == MoveCategory::OtherQuiet && history(one.action) > 0.0 && history(one.action) >= highest / 2.0 {
                one.category = MoveCategory::HistoryHeuristic;
            }
        }
    }
}

/// Returns the category of a move without history.
fn fixed(board: &Board, checks: &Checks<'_>, options: &CategoryOptions, mv: Move, action: Action, check: bool) -> MoveCategory {
    if options.mate == Some(action) || check && checks.mates(mv) {
        MoveCategory::ForcedMate
    } else if mv.promotion == Some(Piece::Queen) {
        MoveCategory::PromotionToQueen
    } else if captures(board, mv) {
        match see(board, mv, &options.values) {
            won if won > options.see_threshold => MoveCategory::WinningCapture,
            lost if lost < -options.see_threshold => MoveCategory::LosingCapture,
            _ => MoveCategory::EqualCapture,
        }
    } else if options.killers[0] == Some(action) {
        MoveCategory::KillerMove1
    } else if options.killers[1] == Some(action) {
        MoveCategory::KillerMove2
    } else if check {
        MoveCategory::Check
    } else {
        MoveCategory::OtherQuiet
    }
}

/// Returns whether a move captures or promotes to a queen; the other moves are quiet.
fn is_forcing(board: &Board, mv: Move) -> bool {
    mv.promotion == Some(Piece::Queen) || captures(board, mv)
}
