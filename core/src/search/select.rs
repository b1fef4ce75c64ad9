//! The way down: from the root to a leaf, by the score of the edges, with untried edges opened as the rule says.

use crate::games::analysis::MoveHint;
use crate::games::World;
use crate::runtime::random::{Purpose, Random};
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd;
use crate::search::backup::Step;
use crate::search::config::SearchConfig;
use crate::search::expand;
use crate::search::path::TraceStep;
use crate::search::score::{Context, ANY, LOG_PUCT, PUCT};
use crate::tree::journal::Journal;
use crate::tree::{NodeIndex, Tree, ROOT};

/// Where a descent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// At an edge opened just now: a position never seen.
    New,
    /// At a node whose exact value is known.
    Exact(NodeIndex),
    /// At a leaf that another descent of this batch is waiting for.
    InFlight,
}

/// What a descent leaves behind, and the buffers it works with.
#[derive(Clone, Debug)]
pub struct Descent<S> {
    /// The choices, from the root down.
    pub path: Vec<Step>,
    /// The position at the end of the path (compiled worlds).
    pub state: S,
    /// Legal actions of the last position looked at.
    pub legal: Vec<u16>,
    /// What was seen on the way, if asked for.
    pub trace: Vec<TraceStep>,
    /// The scores of the last choice.
    pub scores: Vec<f64>,
    /// What is told of the legal moves at the end of the path, in searches that ask for it.
    pub hints: Vec<MoveHint>,
    cursor: Cursor,
}

/// Where a descent under way is.
#[derive(Clone, Debug)]
struct Cursor {
    node: NodeIndex,
    /// N of the edge that led here.
    edge_visits: u32,
    /// The same with leaves in flight.
    visits: u32,
    /// The place to follow, where the root has a rule of its own.
    first: Option<usize>,
    random: Random,
}

impl<S> Descent<S> {
    /// Empty buffers, with a state to be overwritten.
    pub fn new(state: S) -> Self {
        let cursor = Cursor { node: ROOT, edge_visits: 0, visits: 0, first: None, random: Random::new(0, Purpose::Select) };
        Self { path: Vec::new(), state, legal: Vec::new(), trace: Vec::new(), scores: Vec::new(), hints: Vec::new(), cursor }
    }
}

/// How one descent begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The place to follow at the root, where that has a rule of its own.
    pub first: Option<usize>,
    /// PendingLeaves of this tree that are under way.
    pub in_flight: u32,
    /// The key of the simulation's random numbers.
    pub key: u64,
}

impl<S: Clone> Descent<S> {
    /// Goes back to the root, to walk down once more.
    #[inline]
    pub fn begin(&mut self, tree: &Tree, root: &S, start: Start) {
        self.path.clear();
        self.trace.clear();
        self.state.clone_from(root);
        let visits = tree.root_visits + start.in_flight;
        self.cursor =
            Cursor { node: ROOT, edge_visits: visits, visits, first: start.first, random: Random::new(start.key, Purpose::Select) };
    }
}

/// Walks down from where `begin` has put the descent.
pub fn descend<W: World>(tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>, journal: &mut Journal) -> Reached {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the processor has just been seen to have what this form is compiled for.
        return unsafe { descend_avx2::<W>(tree, config, descent, journal) };
    }
    descend_portable::<W>(tree, config, descent, journal)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn descend_avx2<W: World>(tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>, journal: &mut Journal) -> Reached {
    descend_portable::<W>(tree, config, descent, journal)
}

#[inline(always)]
fn descend_portable<W: World>(tree: &mut Tree, config: &SearchConfig, descent: &mut Descent<W::State>, journal: &mut Journal) -> Reached {
    loop {
        if let Some(reached) = step::<W, ANY>(tree, config, descent, journal) {
            return reached;
        }
    }
}

/// One walk of several that take turns.
#[derive(Debug)]
pub struct InterleavedDescent<'a, S> {
    /// Its tree.
    pub tree: &'a mut Tree,
    /// Where it is.
    pub descent: &'a mut Descent<S>,
    /// What it changes.
    pub journal: &'a mut Journal,
    /// Where it ended, once it has.
    pub reached: Option<Reached>,
}

/// Walks down several trees, a step of each in turn: while memory fetches what one of them needs next, the others go on.
pub fn descend_interleaved<W: World>(walks: &mut [Option<InterleavedDescent<'_, W::State>>], config: &SearchConfig) {
    #[cfg(target_arch = "x86_64")]
    if simd::is_available() {
        #[expect(unsafe_code, reason = "the same arithmetic on wider registers, chosen at run time")]
        // SAFETY: the processor has just been seen to have what this form is compiled for.
        return unsafe { interleaved_avx2::<W>(walks, config) };
    }
    interleaved_portable::<W>(walks, config);
}

/// The way down for each rule by itself.
#[inline(always)]
fn interleaved_portable<W: World>(walks: &mut [Option<InterleavedDescent<'_, W::State>>], config: &SearchConfig) {
    match config.rule.kind() {
        PUCT => interleaved_by_rule::<W, PUCT>(walks, config),
        LOG_PUCT => interleaved_by_rule::<W, LOG_PUCT>(walks, config),
        _ => interleaved_by_rule::<W, ANY>(walks, config),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn interleaved_avx2<W: World>(walks: &mut [Option<InterleavedDescent<'_, W::State>>], config: &SearchConfig) {
    interleaved_portable::<W>(walks, config);
}

#[inline(always)]
fn interleaved_by_rule<W: World, const KIND: u8>(walks: &mut [Option<InterleavedDescent<'_, W::State>>], config: &SearchConfig) {
    let mut under_way = true;
    while under_way {
        under_way = false;
        // First all nodes, which have been asked for, then their edges.
        for walk in walks.iter().flatten().filter(|walk| walk.reached.is_none()) {
            walk.tree.prefetch_tried(walk.descent.cursor.node);
        }
        for walk in walks.iter_mut().flatten().filter(|walk| walk.reached.is_none()) {
            walk.reached = step::<W, KIND>(walk.tree, config, walk.descent, walk.journal);
            if walk.reached.is_none() {
                walk.tree.prefetch_node(walk.descent.cursor.node);
                under_way = true;
            }
        }
    }
}

/// One choice on the way down. The tree changes in two ways only, both noted in the journal:
/// an untried edge may be opened, and a leaf visited for the second time gets its node.
#[inline(always)]
fn step<W: World, const KIND: u8>(
    tree: &mut Tree,
    config: &SearchConfig,
    descent: &mut Descent<W::State>,
    journal: &mut Journal,
) -> Option<Reached> {
    let index = descent.cursor.node;
    let node = *tree.node(index);
    if !descent.path.is_empty() {
        if node.is_exact() {
            return Some(Reached::Exact(index));
        }
        if descent.cursor.edge_visits == 0 {
            return Some(Reached::InFlight);
        }
    }
    let visits = descent.cursor.visits;
    let context = Context { visits, virtual_loss: !config.has_rewards, all_scores: config.trace };
    let ordered_prefix = node.opened < u16::from(node.ordered_prefix);
    let place = match descent.cursor.first.take() {
        Some(place) => place,
        None if ordered_prefix => node.opened as usize,
        None => {
            let best = config.rule.choose::<KIND>(tree, index, &node, context, &mut descent.scores, &mut descent.cursor.random);
            let forced = if index == ROOT { config.rule.forced(tree, &node, visits) } else { None };
            forced.unwrap_or(best)
        }
    };
    let fresh = place >= node.opened as usize;
    let mut edge = node.edge(place);
    if config.trace {
        let unscored = fresh && (ordered_prefix || config.rule.opens_unscored());
        // Proven losses that were passed over have no score.
        let scored = || tree.edges(&node).actions.iter().copied().zip(descent.scores.iter().copied()).filter(|(_, s)| s.is_finite());
        descent.trace.push(TraceStep { action: tree.action(edge), scores: (!unscored).then(|| scored().collect()) });
    }
    if fresh {
        journal.node(tree, index);
        journal.swap(node.edge(node.opened as usize), edge);
        edge = tree.open(index, edge);
    }
    descent.path.push(Step { node: index, edge, chooser: node.to_play });
    if !W::EXTERNAL {
        W::play(&mut descent.state, tree.action(edge));
    }
    if fresh {
        return Some(Reached::New);
    }
    let (edge_visits, link) = tree.visits_and_link(edge);
    descent.cursor.node = match link.child() {
        Some(child) => child,
        None if edge_visits == 0 => return Some(Reached::InFlight),
        None => {
            journal.edge(tree, edge);
            expand::second_visit::<W>(tree, &descent.state, edge, &node, &mut descent.legal)
        }
    };
    descent.cursor.edge_visits = edge_visits;
    descent.cursor.visits = edge_visits + u32::from(tree.in_flight(edge));
    None
}
