//! The way down: from the root to a leaf, by the score of the edges, with untried edges opened as the rule says.

use crate::backup::Step;
use crate::expand;
use crate::journal::Journal;
use crate::knowledge::Kind;
use crate::parts::Parts;
use crate::random::{Purpose, Random};
use crate::score::Context;
use crate::trace::TraceStep;
use crate::tree::{NodeIndex, Tree, ROOT};
use crate::world::World;

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
    pub kinds: Vec<Kind>,
}

impl<S> Descent<S> {
    /// Empty buffers, with a state to be overwritten.
    pub fn new(state: S) -> Self {
        Self { path: Vec::new(), state, legal: Vec::new(), trace: Vec::new(), scores: Vec::new(), kinds: Vec::new() }
    }
}

/// How one descent begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The place to follow at the root, where that has a rule of its own.
    pub first: Option<usize>,
    /// Leaves of this tree that are under way.
    pub flying: u32,
    /// The key of the simulation's random numbers.
    pub key: u64,
}

/// Walks down once. The tree changes in two ways only, both noted in the journal:
/// an untried edge may be opened, and a leaf visited for the second time gets its node.
pub fn descend<W: World>(
    tree: &mut Tree,
    parts: &Parts,
    root: &W::State,
    descent: &mut Descent<W::State>,
    start: Start,
    journal: &mut Journal,
) -> Reached {
    let mut random = Random::new(start.key, Purpose::Select);
    let mut first = start.first;
    descent.path.clear();
    descent.trace.clear();
    descent.state.clone_from(root);
    let mut index = ROOT;
    let mut visits = tree.root_visits + start.flying;
    loop {
        let node = *tree.node(index);
        let context = Context { visits, virtual_loss: !parts.has_rewards, all_scores: parts.trace };
        let eager = node.opened < u16::from(node.eager);
        let place = match first.take() {
            Some(place) => place,
            None if eager => node.opened as usize,
            None => {
                let best = parts.score.choose(tree, index, &node, context, &mut descent.scores, &mut random);
                let forced = if index == ROOT { parts.score.forced(tree, &node, visits) } else { None };
                forced.unwrap_or(best)
            }
        };
        let fresh = place >= node.opened as usize;
        let mut edge = node.edge(place);
        if parts.trace {
            let unscored = fresh && (eager || parts.score.opens_unscored());
            // Proven losses that were passed over have no score.
            let scored = || tree.edges(&node).actions.iter().copied().zip(descent.scores.iter().copied()).filter(|(_, s)| s.is_finite());
            descent.trace.push(TraceStep { action: tree.action(edge), scores: (!unscored).then(|| scored().collect()) });
        }
        if fresh {
            let first_untried = node.edge(node.opened as usize);
            journal.node(tree, index);
            journal.swap(first_untried, edge);
            tree.swap_untried(first_untried, edge);
            edge = first_untried;
            tree.node_mut(index).opened += 1;
            tree.positions += 1;
        }
        descent.path.push(Step { node: index, edge, chooser: node.to_play });
        if !W::EXTERNAL {
            W::play(&mut descent.state, tree.action(edge));
        }
        if fresh {
            return Reached::New;
        }
        let (edge_visits, _, link) = tree.edge(edge);
        match link.child() {
            Some(child) if tree.node(child).is_exact() => return Reached::Exact(child),
            _ if edge_visits == 0 => return Reached::InFlight,
            Some(child) => index = child,
            None => {
                journal.edge(tree, edge);
                index = expand::second_visit::<W>(tree, &descent.state, edge, &node, &mut descent.legal);
            }
        }
        visits = edge_visits + u32::from(tree.in_flight(edge));
    }
}
