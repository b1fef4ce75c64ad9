//! What the scores of a choice are made of. Terms are computed for records alone, apart from the formulas of the descent, which
//! recording must not slow down.

use std::cell::RefCell;
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

thread_local! {
    /// The names that this thread has read from files.
    static NAMES: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Longest name of a term, and most names that a process keeps per thread.
const MAX_NAME: usize = 48;
const MAX_NAMES: usize = 1024;

/// Returns a name that was read from a file, kept for the life of the process; None for what is no name.
fn intern(name: &str) -> Option<&'static str> {
    let is_name = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    NAMES.with_borrow_mut(|names| match names.iter().find(|&&known| known == name) {
        Some(&known) => Some(known),
        None if is_name && names.len() < MAX_NAMES => {
            names.push(Box::leak(name.into()));
            names.last().copied()
        }
        None => None,
    })
}

/// Terms as columns of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermColumns {
    /// Of each choice the numbers of its shared terms, of names of its edges' terms, and of edges.
    pub counts: Vec<u32>,
    /// The different names as text, each with a line feed after it.
    pub text: Vec<u8>,
    /// The names of shared terms and of edges' terms, as their numbers in `text`.
    pub names: Vec<u16>,
    /// The kind of each value: 0 missing, 1 a whole number, 2 a number, 3 a flag, 4 a name.
    pub kinds: Vec<u8>,
    /// The bits of each value.
    pub values: Vec<u64>,
}

/// Writes terms to columns.
#[derive(Debug, Default)]
pub(crate) struct TermWriter {
    pub columns: TermColumns,
    known: Vec<&'static str>,
}

impl TermWriter {
    /// Returns the number of a name.
    fn number(&mut self, name: &'static str) -> u16 {
        let place = self.known.iter().position(|&known| known == name).unwrap_or_else(|| {
            self.known.push(name);
            self.columns.text.extend(name.bytes().chain([b'\n']));
            self.known.len() - 1
        });
        place as u16
    }

    fn name(&mut self, name: &'static str) {
        let number = self.number(name);
        self.columns.names.push(number);
    }

    fn value(&mut self, term: Term) {
        let (kind, bits) = match term {
            Term::Missing => (0, 0),
            Term::Whole(number) => (1, number as u64),
            Term::Number(number) => (2, number.to_bits()),
            Term::Flag(flag) => (3, u64::from(flag)),
            Term::Name(name) => (4, self.number(name).into()),
        };
        self.columns.kinds.push(kind);
        self.columns.values.push(bits);
    }

    /// Adds the terms of a choice.
    pub(crate) fn push(&mut self, terms: &ChoiceTerms) {
        self.columns.counts.extend([terms.shared.len() as u32, terms.names.len() as u32, terms.edges.len() as u32]);
        for &(name, term) in &terms.shared {
            self.name(name);
            self.value(term);
        }
        terms.names.iter().for_each(|&name| self.name(name));
        terms.edges.iter().flatten().for_each(|&term| self.value(term));
    }
}

impl TermColumns {
    /// Returns the terms of all choices; None if the columns do not fit each other.
    pub(crate) fn read(&self) -> Option<Vec<ChoiceTerms>> {
        let known = std::str::from_utf8(&self.text).ok()?.lines().map(intern).collect::<Option<Vec<_>>>()?;
        let mut names = self.names.iter().map(|&number| known.get(usize::from(number)).copied());
        let mut name = || names.next().flatten();
        let mut values = self.kinds.iter().zip(&self.values).map(|(&kind, &bits)| match kind {
            0 => Some(Term::Missing),
            1 => Some(Term::Whole(bits as i64)),
            2 => Some(Term::Number(f64::from_bits(bits))),
            3 => Some(Term::Flag(bits != 0)),
            4 => known.get(usize::try_from(bits).ok()?).map(|&name| Term::Name(name)),
            _ => None,
        });
        let mut value = || values.next().flatten();
        let fits = self.kinds.len() == self.values.len() && self.counts.len().is_multiple_of(3);
        let choices = fits.then(|| self.counts.chunks_exact(3))?.map(|counts| {
            let shared = (0..counts[0]).map(|_| name().zip(value())).collect::<Option<Terms>>()?;
            let names = (0..counts[1]).map(|_| name()).collect::<Option<Vec<_>>>()?;
            let width = (counts[1] > 0 || counts[2] == 0).then_some(counts[1])?;
            let edges = (0..counts[2]).map(|_| (0..width).map(|_| value()).collect()).collect::<Option<Vec<_>>>()?;
            Some(ChoiceTerms { shared, names, edges })
        });
        let choices = choices.collect::<Option<Vec<_>>>()?;
        (name().is_none() && value().is_none()).then_some(choices)
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
    pub(crate) fn new(shared: Terms, edges: impl Iterator<Item = Terms>) -> Self {
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
