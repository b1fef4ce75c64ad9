//! Scoring rules, one file each: they select an edge of a node. Opened edges come first.

mod edge_score;
pub(crate) mod gumbel;
mod log_puct;
mod puct;
mod select_edge;
pub(crate) mod ucb1;

pub use gumbel::CompletedQ;

use crate::runtime::lanes::{Lanes, Portable};
use crate::runtime::random::Random;
use crate::search::backup::{self, Bounds};
use crate::search::fields::{unknown, Fields};
use crate::search::terms::{ChoiceTerms, RecordedChoice};
use crate::tree::{Backup, Node, NodeIndex, Statistics, Tree};

/// `ScoringRule::ID` of rules without specialised code; as `ID` of `Rule::choose`, code for every rule.
pub(crate) const ANY: u8 = 0;
/// The id of PUCT.
pub(crate) const PUCT: u8 = 1;
/// The id of PUCT with a logarithmic constant.
pub(crate) const LOG_PUCT: u8 = 2;
/// The id of UCB1.
pub(crate) const UCB1: u8 = 3;

/// A rule that selects the edge to follow; its fields are its parameters.
pub(crate) trait ScoringRule: Sized {
    /// The name in configurations.
    const NAME: &'static str;
    /// The id, if descents are compiled for this rule alone.
    const ID: u8 = ANY;
    /// Whether moves have priors: a leaf then gets its edges when it is evaluated, and the root is evaluated first.
    const USES_PRIORS: bool = true;

    /// Reads and checks the parameters.
    fn read<F: Fields>(fields: &F) -> Result<Self, F::Error>;

    /// Returns the id of the code that descends by this rule: `ANY` where its parameters need more than the code of `ID` has.
    #[inline]
    fn id(&self) -> u8 {
        Self::ID
    }

    /// Returns the place of the edge to follow; a place from `opened` on is to be opened. `ID` is that of `id`, or `ANY`.
    fn choose<const ID: u8>(&self, choice: Choice<'_, impl Lanes>) -> usize;

    /// Returns what the scores of a choice are made of, for its record; `how` it is made. It computes the scores apart from `choose`,
    /// to the same bits.
    fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms;

    /// Returns the place of a root move with fewer simulations than forced playouts require.
    fn forced_playout(&self, _tree: &Tree, _node: &Node, _visits: u32) -> Option<usize> {
        None
    }

    /// Returns the exploration weight at a node with `visits`, for rules that have one.
    fn exploration(&self, _visits: u32) -> Option<f64> {
        None
    }

    /// Returns whether values are normalised by the bounds of the tree.
    fn uses_bounds(&self) -> bool {
        false
    }

    /// Returns the parameters of sequential halving, which schedules the simulations at the root.
    fn sequential_halving(&self) -> Option<&Gumbel> {
        None
    }
}

/// A choice at a node. `scores` receives the scores of its edges, those of all edges if `all_scores`; its length may exceed them.
#[derive(Debug)]
pub(crate) struct Choice<'a, L> {
    /// How groups of edges are scored.
    pub lanes: L,
    pub tree: &'a Tree,
    pub index: NodeIndex,
    pub node: &'a Node,
    /// N of the node plus leaves in flight.
    pub visits: u32,
    /// Whether leaves in flight count as losses (virtual loss); otherwise they only count as visits.
    pub virtual_loss: bool,
    /// Whether the score of every edge is needed, for a trace.
    pub all_scores: bool,
    /// Lowest and highest mean value of the tree.
    pub bounds: Bounds,
    pub scores: &'a mut Vec<f64>,
    /// Breaks ties.
    pub random: &'a mut Random,
}

impl<'a, L: Lanes> Choice<'a, L> {
    /// Returns the choice for code that is compiled without AVX2.
    fn portable(self) -> Choice<'a, Portable> {
        let Self { lanes: _, tree, index, node, visits, virtual_loss, all_scores, bounds, scores, random } = self;
        Choice { lanes: Portable, tree, index, node, visits, virtual_loss, all_scores, bounds, scores, random }
    }

    /// Returns the place of the edge with the highest score.
    #[inline(always)]
    fn highest(self, formula: impl edge_score::EdgeScore) -> usize {
        let (tree, node) = (self.tree, self.node);
        let opened = node.opened as usize;
        if !tree.counts_in_flight() && !node.has_proven_edge && !self.all_scores {
            let needs_max = select_edge::needs_max_untried(node.num_edges as usize);
            let untried = if needs_max { tree.max_untried_prior(node) } else { 0.0 };
            return select_edge::choose(self.lanes, formula, tree.statistics(node), opened, untried, self.scores, self.random);
        }
        select_edge::choose_general(formula, &tree.edges(node), opened, self.virtual_loss, self.scores, self.random)
    }
}

/// Makes the enumeration of the rules in these files, which reads them by name and delegates to them.
macro_rules! rules {
    ($($file:ident::$rule:ident,)+) => {
        $(pub use $file::$rule;)+

        /// The rule that selects an edge of a node.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Rule {
            $(#[doc = concat!("See [`", stringify!($rule), "`].")] $rule($rule),)+
        }

        impl Rule {
            /// The names of the rules, each with `ScoringRule::USES_PRIORS`.
            pub const USE_OF_PRIORS: &'static [(&'static str, bool)] = &[$(($rule::NAME, $rule::USES_PRIORS)),+];

            /// Reads a rule by its `name`, with its parameters.
            ///
            /// # Errors
            /// `Error::InvalidArgument` names the parameter and its range.
            pub fn read<F: Fields>(fields: &F) -> Result<Self, F::Error> {
                let name = fields.text("name")?.unwrap_or_default();
                $(if name == $rule::NAME {
                    return Ok(Self::$rule($rule::read(fields)?));
                })+
                Err(F::refuse(unknown("rule", Some(&name), [$(Some($rule::NAME)),+])))
            }

            /// See `ScoringRule::id`.
            #[inline]
            pub(crate) fn id(&self) -> u8 {
                match self {
                    $(Self::$rule(rule) => rule.id(),)+
                }
            }

            /// Chooses an edge. `ID` is the rule's id or `ANY`: code compiled for one rule has fewer branches.
            #[inline(always)]
            pub(crate) fn choose<const ID: u8>(&self, choice: Choice<'_, impl Lanes>) -> usize {
                match self {
                    $(Self::$rule(rule) if ID == ANY || ID == $rule::ID => rule.choose::<ID>(choice),)+
                    _ => unreachable!("`ID` is the rule's or `ANY`"),
                }
            }

            /// See `ScoringRule::forced_playout`.
            #[inline]
            pub(crate) fn forced_playout(&self, tree: &Tree, node: &Node, visits: u32) -> Option<usize> {
                match self {
                    $(Self::$rule(rule) => rule.forced_playout(tree, node, visits),)+
                }
            }

            /// See `ScoringRule::terms`.
            pub(crate) fn terms(&self, choice: &RecordedChoice<'_>, how: &'static str) -> ChoiceTerms {
                match self {
                    $(Self::$rule(rule) => rule.terms(choice, how),)+
                }
            }

            /// See `ScoringRule::NAME`.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $(Self::$rule(_) => $rule::NAME,)+
                }
            }

            /// See `ScoringRule::exploration`.
            pub(crate) fn exploration(&self, visits: u32) -> Option<f64> {
                match self {
                    $(Self::$rule(rule) => rule.exploration(visits),)+
                }
            }

            /// See `ScoringRule::USES_PRIORS`.
            #[inline]
            pub(crate) fn uses_priors(&self) -> bool {
                match self {
                    $(Self::$rule(_) => $rule::USES_PRIORS,)+
                }
            }

            /// See `ScoringRule::uses_bounds`.
            pub(crate) fn uses_bounds(&self) -> bool {
                match self {
                    $(Self::$rule(rule) => rule.uses_bounds(),)+
                }
            }

            /// See `ScoringRule::sequential_halving`.
            #[inline]
            pub(crate) fn sequential_halving(&self) -> Option<&Gumbel> {
                match self {
                    $(Self::$rule(rule) => rule.sequential_halving(),)+
                }
            }
        }
    };
}

rules! {
    gumbel::Gumbel,
    log_puct::LogPuct,
    puct::Puct,
    ucb1::Ucb1,
}

/// Returns the value of a node for the player to move: (raw value + W of its edges) / N, or that of its best visited edge.
#[inline]
pub(crate) fn node_value(tree: &Tree, node: &Node) -> f64 {
    if tree.shape().backup == Backup::Max {
        if let Some(best) = backup::best_value(tree, node) {
            return best;
        }
    }
    mean_with(node.raw_value, tree.statistics(node), node.opened as usize)
}

/// Returns W of a node with `visits` for the player to move: the raw value plus W of its edges, or N times the best edge's value.
#[must_use]
pub fn node_sum(tree: &Tree, node: &Node, visits: u32) -> f64 {
    if tree.shape().backup == Backup::Max {
        if let Some(best) = backup::best_value(tree, node) {
            return f64::from(visits) * best;
        }
    }
    node.raw_value + tree.statistics(node).sums[..node.opened as usize].iter().fold(0.0, |sum, value| sum + value)
}

/// How a rule normalises Q by the tree.
const NORMALIZE: [(Option<&str>, bool); 2] = [(None, false), (Some("tree"), true)];

/// Returns the offset and the factor that map the values of a tree to [0, 1]. Without two different values, all become 0.
#[inline]
fn scale_of((low, high): Bounds) -> (f64, f64) {
    if high > low {
        (low, 1.0 / (high - low))
    } else {
        (0.0, 0.0)
    }
}

/// Returns the mean of a raw value and the backed up values of the opened edges.
#[inline]
fn mean_with(raw: f64, edges: Statistics<'_>, opened: usize) -> f64 {
    let sum = edges.sums[..opened].iter().fold(0.0, |sum, value| sum + value);
    let visits: u32 = edges.visits[..opened].iter().sum();
    (raw + sum) / (1.0 + f64::from(visits))
}
