//! Selection: the descent from the root to a leaf by the scores of the edges.

use std::any::Any;
use std::cell::Cell;

use crate::games::analysis::MoveHint;
use crate::games::World;
use crate::runtime::lanes::{Lanes, Portable};
use crate::runtime::random::{Purpose, Random};
#[cfg(target_arch = "x86_64")]
use crate::runtime::{lanes::Avx2, simd};
use crate::search::backup::{Bounds, NO_BOUNDS};
use crate::search::chance::owner_in;
use crate::search::config::WorldConfig;
use crate::search::path::{Step, TraceStep};
use crate::search::score::{Choice, ANY, LOG_PUCT, PUCT, UCB1};
use crate::search::terms::{ChoiceTerms, RecordedChoice};
use crate::search::tree_search::SearchState;
use crate::search::{chance, expand};
use crate::tree::journal::Journal;
use crate::tree::{NodeIndex, Tree, ROOT};

/// Where a descent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// An edge opened by this descent: a new position.
    New,
    /// A node with an exact value.
    Exact(NodeIndex),
    /// A leaf that is in flight.
    InFlight,
}

/// The result of a descent, and its buffers.
#[derive(Clone, Debug)]
pub(crate) struct Descent<S> {
    /// The choices from the root down.
    pub path: Vec<Step>,
    /// The position at the end of the path (compiled worlds).
    pub state: S,
    /// Legal actions of the last expanded position.
    pub legal: Vec<u16>,
    /// The recorded choices.
    pub trace: Vec<TraceStep>,
    /// The terms of a scheduled choice at the root, if it is recorded.
    pub scheduled_terms: Option<ChoiceTerms>,
    /// The scores of the last choice.
    pub scores: Vec<f64>,
    /// Outcomes of the last expanded chance node.
    pub outcomes: Vec<(u16, f64)>,
    /// Hints of the legal moves at the end of the path.
    pub hints: Vec<MoveHint>,
    /// Random numbers of the outcomes of chance that may follow.
    pub outcome_random: Random,
    cursor: Cursor,
}

/// The current node of a descent.
#[derive(Clone, Debug)]
struct Cursor {
    node: NodeIndex,
    /// N of the edge that leads here.
    edge_visits: u32,
    /// `edge_visits` plus leaves in flight.
    visits: u32,
    /// The place to follow at the root, if a schedule sets it.
    scheduled_edge: Option<usize>,
    forced_depth: u8,
    bounds: Bounds,
    random: Random,
}

impl<S> Descent<S> {
    /// Creates empty buffers; `state` is overwritten.
    pub(crate) fn new(state: S) -> Self {
        let cursor = Cursor {
            node: ROOT,
            edge_visits: 0,
            visits: 0,
            scheduled_edge: None,
            forced_depth: 0,
            bounds: NO_BOUNDS,
            random: Random::new(0, Purpose::Select),
        };
        Self {
            path: Vec::new(),
            state,
            legal: Vec::new(),
            trace: Vec::new(),
            scheduled_terms: None,
            scores: Vec::new(),
            outcomes: Vec::new(),
            hints: Vec::new(),
            outcome_random: Random::new(0, Purpose::Outcome),
            cursor,
        }
    }
}

thread_local! {
    /// The descent of the world that this thread searched last, for its buffers: trees have none.
    static DESCENT: Cell<Option<Box<dyn Any>>> = const { Cell::new(None) };
}

impl<W: World> SearchState<W> {
    /// Calls `work` with this thread's descent, whose content is arbitrary.
    pub(crate) fn with_descent(&mut self, work: impl FnOnce(&mut Self, &mut Descent<W::State>)) {
        let last = DESCENT.take().and_then(|descent| descent.downcast().ok());
        let mut descent: Box<Descent<W::State>> = last.unwrap_or_else(|| Box::new(Descent::new(self.root.clone())));
        work(self, &mut descent);
        DESCENT.set(Some(descent));
    }

    /// Returns `descent` to the root for the next simulation, whose random numbers have `key`.
    #[inline]
    pub(crate) fn return_to_root(&self, tree: &Tree, config: &WorldConfig<W>, key: u64, descent: &mut Descent<W::State>) {
        let scheduled_edge = self.scheduled_edge(tree, config, descent);
        descent.path.clear();
        descent.trace.clear();
        descent.state.clone_from(&self.root);
        let visits = tree.root_visits + self.pending.len() as u32;
        descent.cursor = Cursor {
            node: ROOT,
            edge_visits: visits,
            visits,
            scheduled_edge,
            forced_depth: self.forced_depth,
            bounds: self.bounds,
            random: Random::new(key, Purpose::Select),
        };
        if W::HAS_CHANCE {
            descent.outcome_random = Random::new(key, Purpose::Outcome);
        }
    }

    /// Returns the place to follow at the root by the schedule.
    #[inline]
    fn scheduled_edge(&self, tree: &Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>) -> Option<usize> {
        let (schedule, rule) = (self.schedule.as_ref()?, config.rule.sequential_halving()?);
        let started = self.simulations + self.pending.len() as u64;
        if config.trace {
            descent.scheduled_terms = self.scheduled_terms(tree, config, started);
        }
        Some(schedule.choose(&rule.completed_q, tree, started, config.trace, &mut descent.scores))
    }

    /// Returns the terms of the choice at the root by the schedule, for its record.
    #[cold]
    #[inline(never)]
    fn scheduled_terms(&self, tree: &Tree, config: &WorldConfig<W>, started: u64) -> Option<ChoiceTerms> {
        let (schedule, rule) = (self.schedule.as_ref()?, config.rule.sequential_halving()?);
        let choice = RecordedChoice::new(tree, config, ROOT, tree.root_visits + self.pending.len() as u32, self.bounds);
        Some(schedule.terms(rule, &choice, self.key, self.gumbel.as_deref(), started))
    }
}

/// Descends from the root, after `return_to_root`, by code compiled for the rule.
pub(crate) fn descend<W: World>(
    tree: &mut Tree,
    config: &WorldConfig<W>,
    descent: &mut Descent<W::State>,
    journal: &mut Journal,
) -> Reached {
    match config.rule.id() {
        _ if config.trace => descend_with::<W, ANY, true>(Portable, tree, config, descent, journal),
        _ if cfg!(feature = "ablate-specialization") => descend_by::<W, ANY>(tree, config, descent, journal),
        PUCT => descend_by::<W, PUCT>(tree, config, descent, journal),
        LOG_PUCT => descend_by::<W, LOG_PUCT>(tree, config, descent, journal),
        UCB1 => descend_by::<W, UCB1>(tree, config, descent, journal),
        _ => descend_by::<W, ANY>(tree, config, descent, journal),
    }
}

#[inline(always)]
fn descend_by<W: World, const ID: u8>(
    tree: &mut Tree,
    config: &WorldConfig<W>,
    descent: &mut Descent<W::State>,
    journal: &mut Journal,
) -> Reached {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() && !cfg!(feature = "ablate-avx2") {
        #[expect(unsafe_code, reason = "the same arithmetic in AVX2 registers, selected at run time")]
        // SAFETY: the CPU supports the target features of this function.
        return unsafe { descend_avx2::<W, ID>(tree, config, descent, journal) };
    }
    descend_with::<W, ID, false>(Portable, tree, config, descent, journal)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn descend_avx2<W: World, const ID: u8>(
    tree: &mut Tree,
    config: &WorldConfig<W>,
    descent: &mut Descent<W::State>,
    journal: &mut Journal,
) -> Reached {
    #[expect(unsafe_code, reason = "enabled in this function")]
    // SAFETY: the CPU supports the target features of this function.
    let lanes = unsafe { Avx2::new() };
    descend_with::<W, ID, false>(lanes, tree, config, descent, journal)
}

#[inline(always)]
fn descend_with<W: World, const ID: u8, const RECORDS: bool>(
    lanes: impl Lanes,
    tree: &mut Tree,
    config: &WorldConfig<W>,
    descent: &mut Descent<W::State>,
    journal: &mut Journal,
) -> Reached {
    loop {
        if let Some(reached) = step::<W, ID, RECORDS>(lanes, tree, config, descent, journal) {
            return reached;
        }
    }
}

/// One choice of a descent. It changes the tree in two ways, both journalled: it may open an untried edge, and a leaf visited for
/// the second time gets its node. Code that `RECORDS` choices is separate, so that other descents do not pay for it.
#[inline(always)]
fn step<W: World, const ID: u8, const RECORDS: bool>(
    lanes: impl Lanes,
    tree: &mut Tree,
    config: &WorldConfig<W>,
    descent: &mut Descent<W::State>,
    journal: &mut Journal,
) -> Option<Reached> {
    let index = descent.cursor.node;
    if ID != UCB1 && config.rule.uses_priors() {
        tree.cache_max_untried_prior(index);
    }
    // Not copied: a copy would be stored before its fields are read.
    let node = tree.node(index);
    let is_chance = W::HAS_CHANCE && node.is_chance();
    if !descent.path.is_empty() {
        if node.is_exact() {
            return Some(Reached::Exact(index));
        }
        if descent.cursor.edge_visits == 0 && !is_chance {
            return Some(Reached::InFlight);
        }
    }
    let visits = descent.cursor.visits;
    let in_prefix = node.opened < u16::from(node.ordered_prefix);
    let place = match descent.cursor.scheduled_edge.take() {
        _ if is_chance => chance::choose(tree, config, node, visits, &mut descent.outcome_random),
        Some(place) => place,
        None if in_prefix => node.opened as usize,
        None => {
            let best = config.rule.choose::<ID>(Choice {
                lanes,
                tree,
                index,
                node,
                visits,
                virtual_loss: !config.has_rewards,
                all_scores: RECORDS,
                bounds: descent.cursor.bounds,
                scores: &mut descent.scores,
                random: &mut descent.cursor.random,
            });
            let forced_playout = if index == ROOT { config.rule.forced_playout(tree, node, visits) } else { None };
            forced_playout.unwrap_or(best)
        }
    };
    if RECORDS {
        record(tree, config, descent, place);
    }
    let (to_play, first_untried) = (node.to_play, node.opened as usize);
    let is_untried = place >= first_untried;
    let mut edge = node.edge(place);
    if is_untried {
        journal.node(tree, index);
        journal.swap(tree.node(index).edge(first_untried), edge);
        edge = tree.open(index, edge);
    }
    descent.path.push(Step { node: index, edge, chooser: owner_in::<W>(to_play) });
    let (action, edge_visits, link) = tree.followed(edge);
    if !W::HAS_SLOTS {
        W::play(&mut descent.state, action);
    }
    if is_untried {
        if !W::HAS_SLOTS && chance::is_chance::<W>(&descent.state) && W::outcome(&descent.state).is_none() {
            journal.edge(tree, edge);
            descent.cursor.node = expand::chance_node::<W>(tree, &descent.state, edge, &mut descent.legal, &mut descent.outcomes);
            (descent.cursor.edge_visits, descent.cursor.visits) = (0, 0);
            return None;
        }
        return Some(Reached::New);
    }
    descent.cursor.node = match link.child() {
        Some(child) => child,
        None if edge_visits == 0 => return Some(Reached::InFlight),
        None => {
            journal.edge(tree, edge);
            let only_forced_moves = usize::from(descent.cursor.forced_depth) > descent.path.len();
            let parent = *tree.node(index);
            expand::second_visit::<W>(tree, &descent.state, edge, &parent, &mut descent.legal, only_forced_moves)
        }
    };
    descent.cursor.edge_visits = edge_visits;
    descent.cursor.visits = edge_visits + u32::from(tree.in_flight(edge));
    None
}

/// Records the choice of an edge, before it is opened.
#[cold]
#[inline(never)]
fn record<W: World>(tree: &Tree, config: &WorldConfig<W>, descent: &mut Descent<W::State>, place: usize) {
    let Cursor { node: index, visits, bounds, .. } = descent.cursor;
    if tree.node(index).is_chance() {
        descent.trace.push(chance::recorded(tree, config, tree.node(index), visits, place));
        return;
    }
    let choice = RecordedChoice::new(tree, config, index, visits, bounds);
    let (node, actions) = (choice.node, choice.edges().actions);
    let in_prefix = node.opened < u16::from(node.ordered_prefix);
    let unscored = place >= node.opened as usize && (in_prefix || !config.rule.uses_priors());
    let forced = || index == ROOT && config.rule.forced_playout(tree, node, visits).is_some();
    let terms = match descent.scheduled_terms.take() {
        Some(terms) => terms,
        None if unscored => choice.untried(),
        None => config.rule.terms(&choice, if forced() { "forced" } else { "score" }),
    };
    // Proven losses have no score.
    let scored = || actions.iter().copied().zip(descent.scores.iter().copied()).filter(|(_, score)| score.is_finite());
    descent.trace.push(TraceStep { action: actions[place], scores: (!unscored).then(|| scored().collect()), terms });
}
