//! Chess knowledge beyond the rules, used by leaf analyses.

mod analysis;
mod checks;
pub mod endings;
pub mod evaluation;
pub mod mate;
mod move_category;
mod move_features;
mod move_scores;
mod move_weights;
pub mod quiescence;
mod see;

pub use analysis::{value, ChessAnalysis};
pub use checks::Checks;
pub use move_category::{categorize, Categorized, CategoryOptions, MoveCategory, CATEGORIES};
pub use move_features::{MoveFeatureContext, FEATURES};
pub use move_scores::MoveScores;
pub use see::{see, see_at_least, SeeValues};
