//! Snapshots: an immutable copy of one search, and the results at its root.

use std::sync::{Arc, OnceLock};

use crate::error::Error;
use crate::search::backup::Bounds;
use crate::search::root_answer::{self, GumbelPolicy};
use crate::search::root_state::RootState;
use crate::solvers::minimax::Verdict;
use crate::tree::{self, NodeIndex, Tree, TreeColumns, ROOT};

/// An immutable copy of a tree, and the data that its results depend on.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) tree: Arc<Tree>,
    /// Key of the tree's random numbers.
    pub key: u64,
    /// Simulations in the life of the tree.
    pub simulations: u64,
    pub(super) gumbel_policy: Option<GumbelPolicy>,
    pub(super) root_state: Option<Arc<RootState>>,
    pub(super) bounds: Bounds,
    pub(super) forced_depth: u8,
    /// Whether edges carry tags of the leaf analysis.
    pub has_tags: bool,
    /// `forced_depth_left` of each node, computed on first access.
    pub(super) forced_depths: OnceLock<Vec<u8>>,
}

/// A snapshot as plain columns: the format of pickles and files.
#[derive(Clone, Debug)]
pub struct SnapshotColumns {
    /// Nodes and edges.
    pub tree: TreeColumns,
    /// Key of the tree's random numbers.
    pub key: u64,
    /// Simulations in the life of the tree.
    pub simulations: u64,
    /// Data that determine move and policy of a Gumbel search.
    pub gumbel_policy: Option<GumbelPolicy>,
    /// The line that proves the root and the priors without noise.
    pub root_state: RootState,
    /// Lowest and highest mean value.
    pub bounds: (f64, f64),
    /// Plies below each node in which forced moves are searched.
    pub node_forced_depth: Vec<u8>,
    /// Whether edges carry tags of the leaf analysis.
    pub has_tags: bool,
}

impl Snapshot {
    /// Returns the tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the plies below `node` in which forced moves are searched. O(nodes) once, if the search has any.
    #[must_use]
    pub fn forced_depth_left(&self, node: NodeIndex) -> u8 {
        match self.forced_depth {
            0 => 0,
            _ => self.forced_depths.get_or_init(|| self.node_forced_depths())[node as usize],
        }
    }

    /// Returns the root's priors without noise, by action; empty without noise.
    #[must_use]
    pub fn clean_priors(&self) -> &[(u16, f32)] {
        self.root_state.as_ref().map_or(&[], |root| &root.clean_priors)
    }

    /// Returns the place of the move to play at a temperature, guarded by `verdicts`.
    #[must_use]
    pub fn choose(&self, temperature: f64, verdicts: &[(u16, Verdict)]) -> usize {
        root_answer::choose(&self.tree, temperature, self.key, self.simulations, verdicts, self.gumbel_policy.as_ref())
    }

    /// Returns the probability of each root edge at a temperature; `greedy` is the place of the best.
    #[must_use]
    pub fn policy(&self, temperature: f64, greedy: usize) -> Vec<f64> {
        root_answer::policy(&self.tree, temperature, greedy, self.gumbel_policy.as_ref())
    }

    /// Returns the value of the root for the player to move.
    #[must_use]
    pub fn value(&self) -> f64 {
        root_answer::value(&self.tree)
    }

    /// Returns the value of the root for each player.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        root_answer::values(&self.tree)
    }

    /// Returns the principal variation that begins with the root edge at `first`, up to the first chance node or `through_chance`.
    #[must_use]
    pub fn principal_variation(&self, first: usize, through_chance: bool) -> Vec<u16> {
        let proof_line = self.root_state.as_ref().map_or(&[][..], |root| &root.proof_line);
        root_answer::principal_variation(&self.tree, proof_line, first, through_chance)
    }

    /// Returns the mean depth of the simulations and the depth of the deepest position, in plies. O(nodes).
    #[must_use]
    pub fn depths(&self) -> (f64, u32) {
        tree::depths(&self.tree)
    }

    /// Returns the snapshot as columns.
    #[must_use]
    pub fn to_columns(&self) -> SnapshotColumns {
        SnapshotColumns {
            tree: self.tree.to_columns(),
            key: self.key,
            simulations: self.simulations,
            gumbel_policy: self.gumbel_policy.clone(),
            root_state: self.root_state.as_deref().cloned().unwrap_or_default(),
            bounds: self.bounds,
            node_forced_depth: self.node_forced_depths(),
            has_tags: self.has_tags,
        }
    }

    fn node_forced_depths(&self) -> Vec<u8> {
        if self.forced_depth == 0 {
            return vec![0; self.tree.num_nodes()];
        }
        let left = |(node, depth): (u32, u16)| match self.tree.node(node).terminal {
            true => 0,
            false => u16::from(self.forced_depth).saturating_sub(depth) as u8,
        };
        self.tree.indices().zip(tree::node_depths(&self.tree)).map(left).collect()
    }

    /// Builds the snapshot of these columns.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the first invalid column.
    pub fn from_columns(columns: SnapshotColumns) -> Result<Self, Error> {
        let refuse = |text: String| Err(Error::InvalidArgument(format!("these are not the columns of a tree: {text}")));
        let tree = Tree::from_columns(&columns.tree)?;
        if columns.node_forced_depth.len() != tree.num_nodes() {
            let (given, right) = (columns.node_forced_depth.len(), tree.num_nodes());
            return refuse(format!("node_forced_depth has {given} entries: there must be {right}"));
        }
        if let Some(at) = columns.root_state.clean_priors.iter().position(|(_, prior)| !prior.is_finite()) {
            return refuse(format!("entry {at} of clean_priors is not a finite number"));
        }
        Ok(Self {
            tree: Arc::new(tree),
            key: columns.key,
            simulations: columns.simulations,
            gumbel_policy: columns.gumbel_policy,
            root_state: Some(Arc::new(columns.root_state)),
            bounds: columns.bounds,
            forced_depth: columns.node_forced_depth[ROOT as usize],
            has_tags: columns.has_tags,
            forced_depths: OnceLock::new(),
        })
    }
}
