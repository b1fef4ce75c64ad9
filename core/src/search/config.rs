//! The configuration of a search: a preset is one value of `SearchConfig`.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Error;
use crate::games::analysis::LeafAnalysis;
use crate::games::World;
use crate::search::evaluate::{LeafEvaluator, LeafKind, PlayoutPolicy};
use crate::search::score::{Fpu, Rule};
use crate::tree::Shape;

/// Upper bound of the magnitude of rewards and values, so that sums do not overflow.
pub const LARGEST_REWARD: f64 = 1e12;

/// Calls `$then!` with the fields of `SearchConfig`, documentation and types included: the one place that declares them.
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
            in_flight: u32,
            /// Plies below the root in which forced moves are searched.
            forced_depth: u8,
            /// Whether a tree stops when its leading move can no longer be overtaken.
            early_stop: bool,
            /// Whether descents are recorded.
            trace: bool,
            /// Number of players.
            num_players: usize,
            /// Whether returns sum to 0.
            zero_sum: bool,
            /// Whether moves pay rewards; terminal positions then pay nothing.
            has_rewards: bool,
            /// Discount per move where a learned model gives none.
            discount: f64,
            /// Size of the action space.
            num_actions: usize,
            /// Upper bound of the positions of a tree; None: unlimited.
            max_nodes: Option<usize>,
            /// Upper bound of the bytes of a tree; None: unlimited.
            max_bytes: Option<usize>,
            /// Threads of the forest.
            threads: usize,
        }
    };
}

macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The configuration of one search.
        #[derive(Clone, Debug)]
        pub struct SearchConfig {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl SearchConfig {
            /// The names of the fields, in order.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}

search_config_fields!(declare);

/// Upper bound of the terminal positions met in one `gather` of a tree, so that time limits hold.
pub(crate) const MAX_TERMINALS_PER_GATHER: u32 = 1024;

impl SearchConfig {
    fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::InvalidArgument(text));
        match self.rule {
            Rule::Ucb1 { c_param } if !(c_param.is_finite() && c_param >= 0.0) => {
                return refuse(format!("c_param must be a finite number of at least 0, not {c_param}"));
            }
            Rule::Ucb1 { .. } => {}
            Rule::Puct { c_puct, fpu, forced_playouts, .. } => {
                if !(c_puct.is_finite() && c_puct >= 0.0) {
                    return refuse(format!("c_puct must be a finite number of at least 0, not {c_puct}"));
                }
                if !(forced_playouts.is_finite() && forced_playouts >= 0.0) {
                    return refuse(format!("forced_playouts must be a finite number of at least 0, not {forced_playouts}"));
                }
                let (Fpu::Constant(number) | Fpu::Parent(number)) = fpu;
                if !number.is_finite() {
                    return refuse(format!("fpu must be a finite number, not {number}"));
                }
            }
            Rule::LogPuct(ref rule) => {
                let (pb_c_base, pb_c_init) = (rule.pb_c_base, rule.pb_c_init);
                if !(pb_c_base.is_finite() && pb_c_base > 0.0) {
                    return refuse(format!("pb_c_base must be a finite number above 0, not {pb_c_base}"));
                }
                if !(pb_c_init.is_finite() && pb_c_init >= 0.0) {
                    return refuse(format!("pb_c_init must be a finite number of at least 0, not {pb_c_init}"));
                }
            }
            Rule::Gumbel { completed_q, max_num_considered_actions, gumbel_scale } => {
                let numbers = [
                    ("value_scale", completed_q.value_scale),
                    ("maxvisit_init", completed_q.maxvisit_init),
                    ("gumbel_scale", gumbel_scale),
                ];
                if let Some((name, number)) = numbers.into_iter().find(|(_, number)| !(number.is_finite() && *number >= 0.0)) {
                    return refuse(format!("{name} must be a finite number of at least 0, not {number}"));
                }
                if max_num_considered_actions == 0 {
                    return refuse("max_num_considered_actions must be at least 1, not 0".into());
                }
                if self.early_stop {
                    return refuse("early_stop cannot be combined with sequential halving, whose schedule uses every simulation".into());
                }
            }
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return refuse(format!("discount must be from 0 to 1, not {}", self.discount));
        }
        if self.in_flight == 0 || self.in_flight > u32::from(u16::MAX) {
            return refuse(format!("in_flight must be from 1 to 65535, not {}", self.in_flight));
        }
        if self.num_players == 0 || self.num_players > 255 {
            return refuse(format!("num_players must be from 1 to 255, not {}", self.num_players));
        }
        if self.num_actions == 0 || self.num_actions > usize::from(u16::MAX) {
            return refuse(format!("num_actions must be from 1 to 65535, not {}", self.num_actions));
        }
        if self.threads == 0 {
            return refuse("threads must be at least 1, not 0".into());
        }
        Ok(())
    }

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
    /// How leaves are evaluated.
    pub(crate) evaluator: LeafEvaluator,
    /// Upper bound of the positions of a tree.
    pub(crate) max_positions: usize,
    /// Upper bound of the bytes of a tree.
    pub(crate) max_tree_bytes: usize,
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
        let refuse = |text: &str| Err(Error::InvalidArgument(text.into()));
        config.check()?;
        if let Some(analysis) = &analysis {
            analysis.check()?;
        }
        if config.leaf == LeafKind::Static && analysis.is_none() {
            return refuse("leaf \"static\" needs the analysis of a game that has one");
        }
        if W::IS_LATENT && !(1..=2).contains(&config.num_players) {
            return refuse(&format!("num_players must be 1 or 2 with a learned model, not {}", config.num_players));
        }
        let this = Self {
            analysis,
            evaluator: LeafEvaluator::new(config.leaf, config.playout_policy, config.max_depth),
            max_positions: config.max_nodes.unwrap_or(usize::MAX),
            max_tree_bytes: config.max_bytes.unwrap_or(usize::MAX),
            config,
        };
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

    /// Returns whether results are proven.
    #[inline]
    #[must_use]
    pub(crate) fn solves(&self) -> bool {
        self.solve && self.has_scalar_value()
    }

    /// Returns what a tree of this search stores.
    #[must_use]
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            max_edges: W::MAX_LEGAL.map_or(self.num_actions, |most| most.min(self.num_actions)),
            players: self.num_players,
            count_in_flight: self.in_flight > 1,
            slots: W::HAS_SLOTS,
            reward_width: if self.has_rewards && !W::IS_LATENT { self.num_players } else { 0 },
            model_columns: W::IS_LATENT,
            player_values: !self.has_scalar_value() && !W::IS_LATENT,
        }
    }
}
