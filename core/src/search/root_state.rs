//! What a search stores about its root beside the tree.

/// Root data that snapshots share; copied on write.
#[derive(Clone, Debug, Default)]
pub struct RootState {
    /// The line that proves the root, with the best play of both sides; empty without a proof by analysis.
    pub proof_line: Vec<u16>,
    /// The root's priors without noise, by action; empty without noise.
    pub clean_priors: Vec<(u16, f32)>,
}
