//! What the scores of a choice are made of. Terms are computed for records alone, apart from the formulas of the descent, which
//! recording must not slow down.

use std::collections::HashMap;

use crate::games::analysis::LeafAnalysis;
use crate::games::World;
use crate::search::backup::Bounds;
use crate::search::config::WorldConfig;
use crate::search::score::node_value;
use crate::tree::{Edges, Node, NodeIndex, Tree};

/// The value of a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// A count, an action or a player.
    Whole(i64),
    /// A number of a formula.
    Number(f64),
    /// A condition.
    Flag(bool),
    /// A name.
    Name(&'static str),
    /// No value.
    Missing,
}

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Term {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from!(u8 => Whole, i8 => Whole, u16 => Whole, u32 => Whole, f32 => Number, f64 => Number, i64 => Whole, bool => Flag, &'static str => Name);

impl<T: Into<Term>> From<Option<T>> for Term {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Terms by name, in the order of the formula.
pub type Terms = Vec<(&'static str, Term)>;

/// Makes `Terms` of names and values.
macro_rules! terms {
    ($($name:ident: $value:expr),* $(,)?) => {
        vec![$((stringify!($name), $crate::search::terms::Term::from($value))),*]
    };
}
pub(crate) use terms;

/// The terms of one choice.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceTerms {
    /// The terms that its edges share.
    pub shared: Terms,
    /// The names of the terms of an edge.
    pub names: Vec<&'static str>,
    /// The terms of each edge, in the order of comparison.
    pub edges: Vec<Vec<Term>>,
}

impl ChoiceTerms {
    /// Makes the terms of a choice of those of its edges, which have the same names.
    fn new(shared: Terms, edges: impl Iterator<Item = Terms>) -> Self {
        let mut names = Vec::new();
        let edges = edges.map(|terms| {
            names = terms.iter().map(|&(name, _)| name).collect();
            terms.iter().map(|&(_, term)| term).collect()
        });
        let edges = edges.collect();
        Self { shared, names, edges }
    }

    /// Replaces the clean priors by those given by action, which is the first term.
    pub(crate) fn set_clean_priors(&mut self, clean: &HashMap<i64, f32>) {
        let Some(place) = self.names.iter().position(|&name| name == "clean_prior") else { return };
        for edge in &mut self.edges {
            if let Term::Whole(action) = edge[0] {
                edge[place] = clean.get(&action).map_or(edge[place], |&prior| prior.into());
            }
        }
    }
}

/// A choice that is recorded: its node before an edge is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedChoice<'a> {
    pub tree: &'a Tree,
    pub index: NodeIndex,
    pub node: &'a Node,
    /// N of the node plus leaves in flight.
    pub visits: u32,
    pub bounds: Bounds,
    /// The name of the rule.
    rule: &'static str,
    /// Whether leaves in flight count as losses.
    virtual_loss: bool,
    has_priors: bool,
    /// Whether edges have categories as tags.
    has_categories: bool,
}

/// One edge of a recorded choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedEdge {
    pub place: usize,
    /// Visits plus leaves in flight.
    pub visits: u32,
    /// Leaves in flight that count as losses in Q.
    pub virtual_loss: u32,
    /// W / N with virtual loss, or the proven result; None without visits.
    pub q: Option<f64>,
    /// W / N; None without visits.
    pub mean: Option<f64>,
    pub prior: f64,
    pub proven: Option<i8>,
    /// Whether it is a proven loss that is not chosen.
    pub excluded: bool,
}

impl<'a> RecordedChoice<'a> {
    /// Makes the record of a choice at a node with `visits`, leaves in flight included.
    pub(crate) fn new<W: World>(tree: &'a Tree, config: &WorldConfig<W>, index: NodeIndex, visits: u32, bounds: Bounds) -> Self {
        Self {
            tree,
            index,
            node: tree.node(index),
            visits,
            bounds,
            rule: config.rule.name(),
            virtual_loss: !config.has_rewards,
            has_priors: config.rule.uses_priors(),
            has_categories: config.analysis.as_ref().is_some_and(|analysis| analysis.ordering().is_some()),
        }
    }

    /// Returns the edges of the node.
    pub(crate) fn edges(&self) -> Edges<'a> {
        self.tree.edges(self.node)
    }

    /// Returns the records of its edges. Proven losses are excluded unless all are lost.
    pub(crate) fn recorded(&self) -> Vec<RecordedEdge> {
        let links = self.edges().links;
        let all_lost = links.iter().all(|link| link.is_loss());
        (0..links.len()).map(|place| self.edge(place, !all_lost && links[place].is_loss())).collect()
    }

    fn edge(&self, place: usize, excluded: bool) -> RecordedEdge {
        let edges = self.edges();
        let in_flight = edges.in_flight.get(place).map_or(0, |&count| u32::from(count));
        let (sum, proven) = (edges.sums[place], edges.links[place].proven());
        let visits = edges.visits[place] + in_flight;
        let virtual_loss = if self.virtual_loss && proven.is_none() { in_flight } else { 0 };
        let q = (visits > 0).then(|| (sum - f64::from(virtual_loss)) / f64::from(visits));
        let mean = (edges.visits[place] > 0).then(|| sum / f64::from(edges.visits[place]));
        let (q, prior) = (proven.map(f64::from).or(q), f64::from(edges.priors[place]));
        RecordedEdge { place, visits, virtual_loss, q, mean, prior, proven, excluded }
    }

    /// Returns what every record has of an edge, whatever the rule.
    fn common(&self, edge: &RecordedEdge) -> Terms {
        let edges = self.edges();
        let (place, link) = (edge.place, edges.links[edge.place]);
        let mut terms = terms! {
            action: edges.actions[place],
            visits: edges.visits[place],
            in_flight: edge.visits - edges.visits[place],
            total: edges.sums[place],
            proven: edge.proven,
        };
        if self.has_priors {
            terms.extend(terms! { prior: edge.prior, clean_prior: edge.prior });
        }
        if self.has_categories {
            terms.extend(terms! { category: link.tag() });
        }
        if self.tree.shape().model_columns {
            let child = link.child().map(|child| (self.tree.node(child), self.tree.reward_discount(child)));
            let sign = |child: &Node| if child.to_play == self.node.to_play { 1.0 } else { -1.0 };
            terms.extend(terms! {
                reward: child.map(|(_, (reward, _))| reward),
                discount: child.map(|(child, (_, discount))| sign(child) * discount),
                value: child.map(|(child, _)| node_value(self.tree, child)),
            });
        }
        terms
    }

    fn shared(&self, how: &'static str) -> Terms {
        terms! { player: self.node.to_play, visits: self.visits, rule: self.rule, how: how }
    }

    /// Returns the terms of a choice by score: those that the edges share, and for each edge its own and its score, which excluded
    /// ones do not have.
    pub(crate) fn scored(&self, how: &'static str, shared: Terms, own: impl Fn(&RecordedEdge) -> (Terms, f64)) -> ChoiceTerms {
        let of_edge = |edge: &RecordedEdge| {
            let (own, score) = own(edge);
            let last = terms! { excluded: edge.excluded, score: (!edge.excluded).then_some(score) };
            [self.common(edge), own, last].concat()
        };
        ChoiceTerms::new([self.shared(how), shared].concat(), self.recorded().iter().map(of_edge))
    }

    /// Returns the terms of a choice among untried edges without scores: the first of the ordered prefix, or one drawn of all.
    pub(crate) fn untried(&self) -> ChoiceTerms {
        let opened = self.node.opened as usize;
        let prefix = self.node.ordered_prefix as usize;
        let end = if opened < prefix { prefix } else { self.node.num_edges as usize };
        ChoiceTerms::new(self.shared("untried"), (opened..end).map(|place| self.common(&self.edge(place, false))))
    }
}
