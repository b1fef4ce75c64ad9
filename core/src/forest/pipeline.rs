//! Double-buffered batches of a compiled game: the trees of a group write their requests to the network's input buffer and read the
//! responses from its output buffer. While one group waits for the network, another is searched.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::row_layout::RowLayout;
use super::row_layout::{close_gaps, split_rows, Overflow, RequestWriter};
use super::{chunk_size, Forest};
use crate::error::Error;
use crate::games::analysis::Analyzed;
use crate::games::{Compiled, World};
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::WorldConfig;
use crate::search::expand::per_player;
use crate::search::priors::{check_logits, priors, PolicyKind};
use crate::search::tree_search::SearchState;
use crate::tree::Tree;

/// How far a value may lie outside [-1, 1] by rounding; it is clipped.
const VALUE_TOLERANCE: f32 = 1e-3;

/// A network's output: per row one number per legal action, padding, and the value for the player to move.
#[derive(Clone, Copy, Debug)]
pub struct Responses<'a> {
    /// The numbers, row after row.
    pub numbers: &'a [f32],
    /// The meaning of the policy's numbers.
    pub kind: PolicyKind,
}

/// Time spent in exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub struct PipelineTimes {
    /// Validating responses.
    pub checking: Duration,
    /// Backup, descents and expansion.
    pub growing: Duration,
    /// Closing gaps between requests.
    pub writing: Duration,
}

impl PipelineTimes {
    /// Adds an exchange that started, had validated responses, and had gathered leaves at these times, and has ended now.
    pub(super) fn add(&mut self, [start, checked, gathered]: [Instant; 3]) {
        self.checking += checked - start;
        self.growing += gathered - checked;
        self.writing += gathered.elapsed();
    }
}

/// The state of a group's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchStatus {
    /// Rows that wait for a response.
    pub rows: usize,
    /// Whether a batch is open, even if all its leaves are terminal.
    pub open: bool,
}

/// Trees that are evaluated together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(super) trees: Range<usize>,
    /// Rows of each tree in the open batch.
    pub(super) rows: Vec<u32>,
    /// Legal actions of each row.
    legal: Vec<u16>,
    /// Legal actions of each row of the next batch.
    next_legal: Vec<u16>,
}

impl<W: World> Forest<W> {
    /// Splits the trees into groups of similar size with at most `max_trees` each; returns their sizes.
    pub fn form_groups(&mut self, max_trees: usize) -> Vec<usize> {
        let trees = self.trees.len();
        let count = trees.div_ceil(max_trees.max(1)).max(1);
        let bounds = |group: usize| trees * group / count;
        self.groups = (0..count).map(|group| Group { trees: bounds(group)..bounds(group + 1), ..Group::default() }).collect();
        self.groups.iter().map(|group| group.trees.len()).collect()
    }
}

impl<G: Analyzed> Forest<Compiled<G>> {
    /// Returns the layout of requests, which the size of the board determines.
    ///
    /// # Errors
    /// `Error::Usage` without trees.
    pub fn row_layout(&self) -> Result<RowLayout, Error> {
        let tree = self.trees.first().ok_or_else(|| Error::Usage("a forest without trees has no requests".into()))?;
        Ok(RowLayout::of(&tree.search_state.root))
    }

    /// Applies the responses to the batch of group `index`, if given, and gathers the next batch into `requests`, if given. Returns
    /// None, and changes nothing, if the responses fail the fast check: NaN, +inf, no finite logit, a negative or infinite
    /// probability, or |value| > 1 + `VALUE_TOLERANCE` in a game without rewards. `apply` then validates in detail.
    ///
    /// # Errors
    /// `Error::Usage` if there is no such group, or the responses or requests do not have room for its rows.
    pub fn exchange(
        &mut self,
        index: usize,
        responses: Option<Responses<'_>>,
        requests: Option<&mut [u64]>,
    ) -> Result<Option<BatchStatus>, Error> {
        let range = self.group_or_all(Some(index))?;
        let layout = self.row_layout()?;
        let size = chunk_size(range.len(), self.threads);
        let Self { config, trees, groups, threads, .. } = self;
        let (config, threads, group) = (&*config, *threads, &mut groups[index]);
        let trees = &mut trees[range];
        let capacity = trees.len() * config.in_flight as usize;
        if requests.as_ref().is_some_and(|requests| requests.len() < capacity * layout.words()) {
            return Err(Error::Usage(format!("requests has no room for {capacity} rows")));
        }
        let columns = layout.max_legal + 1;
        let start = Instant::now();
        if let Some(responses) = responses {
            if responses.numbers.len() < group.legal.len() * columns {
                return Err(Error::Usage(format!("responses has no room for {} rows", group.legal.len())));
            }
            let largest = if G::HAS_REWARDS { f32::MAX } else { 1.0 + VALUE_TOLERANCE };
            if !are_valid(responses, &group.legal, columns, largest, threads) {
                return Ok(None);
            }
        }
        let checked = Instant::now();
        // In the first batch every tree has one row: its root.
        group.rows.resize(trees.len(), 1);
        let expected: Vec<Range<usize>> = chunk_ranges(&group.rows, size);
        let (gathers, open) = (requests.is_some(), AtomicBool::new(false));
        let mut requests = requests;
        group.next_legal.resize(capacity.max(trees.len()), 0);
        let mut overflow: Vec<Overflow> = expected.iter().map(|_| Overflow::default()).collect();
        {
            let words = split_rows(requests.as_deref_mut().unwrap_or_default(), &expected, layout.words());
            let request_rows = words.into_iter().zip(split_rows(&mut group.next_legal, &expected, 1));
            let chunks = trees.chunks_mut(size).zip(group.rows.chunks_mut(size)).zip(expected.iter().cloned());
            let chunks: Vec<_> = chunks.zip(request_rows).zip(&mut overflow).collect();
            let legal = &group.legal;
            parallel_for(threads, chunks.into_iter(), |((((trees, counts), rows), (words, next_legal)), overflow)| {
                let mut reader = responses.map(|responses| ResponseReader {
                    numbers: &responses.numbers[rows.start * columns..rows.end * columns],
                    legal: &legal[rows],
                    kind: responses.kind,
                    columns,
                    values: Vec::new(),
                    priors: Vec::new(),
                });
                let mut writer = RequestWriter::new(layout, words, next_legal, overflow);
                let mut has_open_batch = false;
                // A tree does all its work while it is cached.
                for (search, rows) in trees.iter_mut().zip(counts) {
                    let (tree, search_state) = search.split_mut();
                    if let Some(reader) = &mut reader {
                        reader.apply(tree, search_state, config, *rows as usize);
                    }
                    if gathers && search_state.wants_leaves(tree, config) {
                        search_state.gather(tree, config, 1);
                    }
                    has_open_batch |= search_state.has_batch();
                    *rows = if gathers { writer.write(tree, search_state) } else { 0 };
                }
                if has_open_batch {
                    open.store(true, Ordering::Relaxed);
                }
            });
        }
        let gathered = Instant::now();
        let places = chunk_ranges(&group.rows, size);
        let rows = places.last().map_or(0, |last| last.end);
        if let Some(requests) = requests {
            close_gaps(requests, &mut group.next_legal, layout.words(), &expected, &places, &overflow);
        }
        std::mem::swap(&mut group.legal, &mut group.next_legal);
        group.legal.truncate(if gathers { rows } else { 0 });
        self.pipeline_times.add([start, checked, gathered]);
        Ok(Some(BatchStatus { rows, open: open.into_inner() }))
    }
}

/// Returns whether all numbers are valid.
fn are_valid(responses: Responses<'_>, legal: &[u16], columns: usize, largest: f32, threads: usize) -> bool {
    // At least 512 rows per work item: validation is cheap compared with synchronisation.
    let size = legal.len().div_ceil(threads).max(512);
    parallel_all(threads, responses.numbers.chunks(size * columns).zip(legal.chunks(size)), |(numbers, legal)| {
        let mut broken = false;
        for (row, &legal) in numbers.chunks_exact(columns).zip(legal) {
            let policy = &row[..usize::from(legal)];
            let (is_invalid, possible) = match responses.kind {
                PolicyKind::Logits => check_logits(policy),
                PolicyKind::Probabilities => (policy.iter().fold(false, |any, p| any | !(0.0..f32::INFINITY).contains(p)), true),
            };
            let value = row[columns - 1];
            broken |= is_invalid | !possible | value.is_nan() | (value.abs() > largest);
        }
        !broken
    })
}

/// Returns whether `holds` for every item, each tested on one of the threads.
pub(super) fn parallel_all<I: Send>(
    threads: usize,
    items: impl ExactSizeIterator<Item = I> + Send,
    holds: impl Fn(I) -> bool + Sync,
) -> bool {
    let all = AtomicBool::new(true);
    parallel_for(threads, items, |item| {
        if !holds(item) {
            all.store(false, Ordering::Relaxed);
        }
    });
    all.into_inner()
}

/// Reads the responses of a range of trees, tree after tree.
struct ResponseReader<'a> {
    numbers: &'a [f32],
    legal: &'a [u16],
    kind: PolicyKind,
    columns: usize,
    values: Vec<f64>,
    priors: Vec<f32>,
}

impl ResponseReader<'_> {
    /// Applies the responses to a tree's `rows` rows.
    fn apply<G: Analyzed>(
        &mut self,
        tree: &mut Tree,
        search_state: &mut SearchState<Compiled<G>>,
        config: &WorldConfig<Compiled<G>>,
        rows: usize,
    ) {
        if !search_state.has_batch() {
            return;
        }
        let (own, others) = self.numbers.split_at(rows * self.columns);
        let (legal, other_legal) = self.legal.split_at(rows);
        (self.numbers, self.legal) = (others, other_legal);
        self.values.clear();
        self.priors.clear();
        let waiting = search_state.pending.iter().filter(|leaf| leaf.awaits_value());
        for ((row, &legal), leaf) in own.chunks_exact(self.columns).zip(legal).zip(waiting) {
            let value = f64::from(row[self.columns - 1]);
            let value = if G::HAS_REWARDS { value } else { value.clamp(-1.0, 1.0) };
            let value = if leaf.state.to_play() == 0 { value } else { -value };
            self.values.extend(&per_player(value)[..G::NUM_PLAYERS.min(2)]);
            let (legal, start) = (usize::from(legal), self.priors.len());
            self.priors.resize(start + legal, 0.0);
            // `are_valid` has validated the numbers.
            let _ = priors(row[..legal].iter().copied(), self.kind, &mut self.priors[start..]);
        }
        search_state.apply(tree, config, &self.values, &self.priors);
    }
}

/// Returns the rows of each piece of `size` trees.
pub(super) fn chunk_ranges(rows: &[u32], size: usize) -> Vec<Range<usize>> {
    let mut at = 0;
    let range = |rows: &[u32]| {
        let from = at;
        at += rows.iter().sum::<u32>() as usize;
        from..at
    };
    rows.chunks(size).map(range).collect()
}
