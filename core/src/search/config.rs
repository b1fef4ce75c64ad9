//! The configuration of a search: a preset is one value of `SearchConfig`.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Error;
use crate::games::analysis::LeafAnalysis;
use crate::games::World;
use crate::search::chance::ChanceMode;
use crate::search::evaluate::{LeafKind, PlayoutPolicy};
use crate::search::score::Rule;
use crate::tree::{Backup, Shape};

/// Upper bound of the magnitude of rewards and values, so that sums do not overflow.
pub const LARGEST_REWARD: f64 = 1e12;

/// Calls `$then!` with the fields of `SearchConfig`, their documentation, types and ranges. Python declares the
/// options of users and their defaults.
#[macro_export]
macro_rules! search_config_fields {
    ($then:ident) => {
        $then! {
            /// The rule that scores edges.
            rule: Rule,
            /// The kind of leaf evaluation.
            leaf: LeafKind,
            /// How compiled playouts draw moves.
            playout_policy: PlayoutPolicy,
            /// Moves of a playout; None plays to the end, and with an external evaluator none at all.
            max_depth: Option<u32>,
            /// Whether proven results are kept (two-player zero-sum games).
            solve: bool,
            /// Leaves in flight per tree.
            in_flight: u32 = 1..=65_535,
            /// Plies below the root in which forced moves are searched.
            forced_depth: u8,
            /// Whether a tree stops when its leading move can no longer be overtaken.
            early_stop: bool,
            /// Whether descents are recorded.
            trace: bool,
            /// Number of players.
            num_players: usize = 1..=255,
            /// Whether returns sum to 0.
            zero_sum: bool,
            /// Whether moves pay rewards; terminal positions then pay nothing.
            has_rewards: bool,
            /// Whether the game has chance nodes.
            has_chance: bool,
            /// How outcomes of chance nodes are chosen.
            chance: ChanceMode,
            /// Outcomes up to which a choice may be balanced.
            chance_width: u32 = 1..=65_535,
            /// Discount per move: `g = r + discount * g`. A learned model may give its own.
            discount: f64 = 0.0..=1.0,
            /// What an expanded node is worth.
            backup: Backup,
            /// Size of the action space.
            num_actions: usize = 1..=65_535,
            /// Upper bound of the positions of a tree; None: unlimited.
            max_nodes: Option<usize>,
            /// Upper bound of the bytes of a tree; None: unlimited.
            max_bytes: Option<usize>,
            /// Threads of the forest.
            threads: usize = 1..=1024,
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident: $type:ty $(= $range:expr)?,)*) => {
        /// The configuration of one search.
        #[derive(Clone, Debug)]
        pub struct SearchConfig {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl SearchConfig {
            /// The names of the fields, in order.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Checks the fields that have a range.
            fn check(&self) -> Result<(), Error> {
                $($(
                    let range = $range;
                    if !range.contains(&self.$name) {
                        let (name, least, most) = (stringify!($name), range.start(), range.end());
                        return refuse(format!("{name} must be from {least} to {most}, not {}", self.$name));
                    }
                )?)*
                Ok(())
            }
        }
    };
}

search_config_fields!(declare);

/// Upper bound of the terminal positions met in one `gather` of a tree, so that time limits hold.
pub(crate) const MAX_TERMINALS_PER_GATHER: u32 = 1024;

fn refuse<T>(text: impl Into<String>) -> Result<T, Error> {
    Err(Error::InvalidArgument(text.into()))
}

impl SearchConfig {
    /// Returns whether the root is evaluated before the first descent.
    #[inline]
    #[must_use]
    pub(crate) fn evaluates_root(&self) -> bool {
        self.rule.uses_priors()
    }
}

/// The configuration of a search in world `W`: the settings, what follows from them, and the game's analysis.
#[derive(Debug)]
pub struct WorldConfig<W: World> {
    config: SearchConfig,
    /// The leaf analysis, in searches that have one.
    pub(crate) analysis: Option<Arc<W::Analysis>>,
    /// Upper bound of the positions of a tree.
    pub(crate) max_positions: usize,
    /// Upper bound of the bytes of a tree.
    pub(crate) max_tree_bytes: usize,
    /// Whether one value per leaf is backed up as it is, with the sign of each chooser: no rewards, no discount, no bounds, means.
    pub(crate) has_plain_backup: bool,
}

impl<W: World> Deref for WorldConfig<W> {
    type Target = SearchConfig;

    #[inline]
    fn deref(&self) -> &SearchConfig {
        &self.config
    }
}

impl<W: World> WorldConfig<W> {
    /// Combines settings and analysis.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the setting and its range.
    pub fn new(config: SearchConfig, analysis: Option<Arc<W::Analysis>>) -> Result<Self, Error> {
        config.check()?;
        if config.early_stop && config.rule.sequential_halving().is_some() {
            return refuse("early_stop cannot be combined with sequential halving, whose schedule uses every simulation");
        }
        if let Some(analysis) = &analysis {
            analysis.check()?;
        }
        if config.leaf == LeafKind::Static && analysis.is_none() {
            return refuse("leaf \"static\" needs the analysis of a game that has one");
        }
        if W::IS_LATENT && !(1..=2).contains(&config.num_players) {
            return refuse(format!("num_players must be 1 or 2 with a learned model, not {}", config.num_players));
        }
        if config.backup == Backup::Max {
            if config.num_players != 1 {
                return refuse(format!("backup \"max\" is for games of one player, not {}", config.num_players));
            }
            if W::IS_LATENT || config.rule.sequential_halving().is_some() {
                return refuse("backup \"max\" is neither for learned models nor for sequential halving");
            }
        }
        let mut this = Self {
            has_plain_backup: false,
            analysis,
            max_positions: config.max_nodes.unwrap_or(usize::MAX),
            max_tree_bytes: config.max_bytes.unwrap_or(usize::MAX),
            config,
        };
        this.has_plain_backup = this.has_scalar_value() && this.discount == 1.0 && !this.rule.uses_bounds();
        if this.forced_depth > 0 && !this.has_scalar_value() {
            return refuse("forced_depth needs a zero-sum game of two players without rewards");
        }
        Ok(this)
    }

    /// Returns whether the game is two-player zero-sum without rewards, so that one number values a position for both.
    #[inline]
    #[must_use]
    pub(crate) fn has_scalar_value(&self) -> bool {
        self.num_players == 2 && self.zero_sum && !self.has_rewards && !W::IS_LATENT
    }

    /// Records descents from now on, or no longer.
    pub(crate) fn set_trace(&mut self, trace: bool) {
        self.config.trace = trace;
    }

    /// Returns whether results are proven.
    #[inline]
    #[must_use]
    pub(crate) fn solves(&self) -> bool {
        self.solve && self.has_scalar_value()
    }

    /// Returns the upper bound of the nodes that a simulation adds, beyond which trees may grow by further chance nodes in a row.
    #[inline]
    #[must_use]
    pub(crate) fn nodes_per_simulation(&self) -> usize {
        if W::HAS_CHANCE && self.has_chance {
            2
        } else {
            1
        }
    }

    /// Returns what a tree of this search stores.
    #[must_use]
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            max_edges: W::MAX_LEGAL.map_or(self.num_actions, |most| most.min(self.num_actions)).max(W::MAX_OUTCOMES),
            players: self.num_players,
            count_in_flight: self.in_flight > 1,
            slots: W::HAS_SLOTS,
            reward_width: if self.has_rewards && !W::IS_LATENT { self.num_players } else { 0 },
            model_columns: W::IS_LATENT,
            player_values: !self.has_scalar_value() && !W::IS_LATENT,
            discount: if W::IS_LATENT { 1.0 } else { self.discount },
            backup: self.backup,
        }
    }
}
