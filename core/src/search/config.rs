//! The config a search is made of: a preset is one value of `SearchConfig`.

use std::sync::Arc;

use crate::error::Error;
use crate::games::analysis::Knowledge;
use crate::search::evaluate::LeafEvaluator;
use crate::search::score::{Fpu, Rule};
use crate::tree::Shape;

/// Everything that makes one search differ from another.
#[derive(Clone, Debug)]
pub struct SearchConfig {
    /// How an edge is scored.
    pub rule: Rule,
    /// Who values a leaf.
    pub leaf: LeafEvaluator,
    /// What is known of the game beside its rules (chess).
    pub knowledge: Option<Arc<Knowledge>>,
    /// Keep proven results (two-player zero-sum games).
    pub solve: bool,
    /// PendingLeaves under way in one tree at a time.
    pub in_flight: u32,
    /// Plies below the root in which forced moves are looked for.
    pub forced_depth: u8,
    /// Stop a tree when its leading move cannot be caught any more.
    pub early_stop: bool,
    /// Record every descent.
    pub trace: bool,
    /// Number of players.
    pub players: usize,
    /// What one player wins the other loses.
    pub zero_sum: bool,
    /// The game pays rewards along the way, and nothing at its end.
    pub has_rewards: bool,
    /// What a history_table model's values are multiplied by, a move later, where the model does not say.
    pub discount: f64,
    /// Size of the action space.
    pub num_actions: usize,
    /// No position has more legal moves.
    pub max_legal: usize,
    /// Positions live outside.
    pub external: bool,
    /// They are hidden states of a history_table model.
    pub latent: bool,
    /// Most positions one tree may hold.
    pub max_nodes: usize,
    /// Most bytes one tree may hold.
    pub max_bytes: usize,
}

/// At most so many ends are met in one gathering of one tree, so that time limits hold.
pub const MAX_ENDS_PER_GATHER: u32 = 1024;

impl SearchConfig {
    /// Refuses what no search can be made of.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the setting and its range.
    pub fn check(&self) -> Result<(), Error> {
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
                    return refuse("early_stop does not go with sequential halving, which spends every simulation by a plan".into());
                }
            }
        }
        if let Some(knowledge) = &self.knowledge {
            knowledge.check()?;
        }
        if !(0.0..=1.0).contains(&self.discount) {
            return refuse(format!("discount must be from 0 to 1, not {}", self.discount));
        }
        if self.latent && !(1..=2).contains(&self.players) {
            return refuse(format!("num_players must be 1 or 2 with a history_table model, not {}", self.players));
        }
        if self.in_flight == 0 || self.in_flight > u32::from(u16::MAX) {
            return refuse(format!("in_flight must be from 1 to 65535, not {}", self.in_flight));
        }
        if self.players == 0 || self.players > 255 {
            return refuse(format!("num_players must be from 1 to 255, not {}", self.players));
        }
        if self.num_actions == 0 || self.num_actions > usize::from(u16::MAX) {
            return refuse(format!("num_actions must be from 1 to 65535, not {}", self.num_actions));
        }
        if self.forced_depth > 0 && !self.is_plain() {
            return refuse("forced_depth needs a zero-sum game of two players without rewards".into());
        }
        Ok(())
    }

    /// Whether the root must be evaluated before the first descent.
    #[inline]
    #[must_use]
    pub fn evaluates_root(&self) -> bool {
        self.rule.uses_priors()
    }

    /// A two-player zero-sum game without rewards: one number says what a position is worth to everybody.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.players == 2 && self.zero_sum && !self.has_rewards && !self.latent
    }

    /// Whether results are proven.
    #[inline]
    #[must_use]
    pub fn solves(&self) -> bool {
        self.solve && self.is_plain() && !self.latent
    }

    /// What a tree of this search stores.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            max_edges: self.max_legal,
            players: self.players,
            count_in_flight: self.in_flight > 1,
            slots: self.external,
            rewards: if self.has_rewards && !self.latent { self.players } else { 0 },
            discounts: self.latent,
            returns: !self.is_plain() && !self.latent,
        }
    }
}
