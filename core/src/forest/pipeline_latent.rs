//! Double-buffered batches of a learned model; see `pipeline`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::latent::check_number;
use super::pipeline::{chunk_ranges, parallel_all, BatchStatus};
use super::row_layout::split_rows;
use super::{chunk_size, Forest};
use crate::error::Error;
use crate::games::Latent;
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::WorldConfig;
use crate::search::expand_latent::{LeafResponse, Logits};
use crate::search::priors::check_logits;
use crate::search::tree_search::SearchState;
use crate::tree::Tree;

/// Numbers per request: slot of the parent, action, slot of the new position.
pub(crate) const REQUEST_NUMBERS: usize = 3;

/// The columns of a response row: reward, value, discount if any; then a logit per action, or of the top k actions the log-sum-exp of
/// all logits as the sum of two numbers, the logits, and the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Whether rows have a discount.
    pub discount: bool,
    /// Number of top k actions; None: all actions.
    pub top_k: Option<usize>,
}

impl Columns {
    /// Returns the numbers per row.
    #[must_use]
    pub fn count(self, num_actions: usize) -> usize {
        self.before_policy() + self.top_k.map_or(num_actions, |top_k| 2 + 2 * top_k)
    }

    fn before_policy(self) -> usize {
        2 + usize::from(self.discount)
    }

    fn read(self, row: &[f32]) -> LeafResponse<'_> {
        let (numbers, policy) = row.split_at(self.before_policy());
        let logits = match self.top_k {
            None => Logits::All(policy),
            Some(top_k) => {
                let (logits, actions) = policy[2..].split_at(top_k);
                Logits::TopK { actions, logits, log_sum: f64::from(policy[0]) + f64::from(policy[1]) }
            }
        };
        LeafResponse {
            reward: f64::from(numbers[0]),
            value: f64::from(numbers[1]),
            discount: self.discount.then(|| f64::from(numbers[2])),
            logits,
        }
    }
}

impl Forest<Latent> {
    /// Applies the responses to the batch of group `index`, if given, and gathers the next batch into `requests`, if given. Returns
    /// None if the responses are invalid: then nothing has changed.
    ///
    /// # Errors
    /// `Error::Usage` if there is no such group, or the responses or requests do not have room for its rows.
    pub fn exchange_latent(
        &mut self,
        index: usize,
        responses: Option<(&[f32], Columns)>,
        requests: Option<&mut [i64]>,
    ) -> Result<Option<BatchStatus>, Error> {
        let range = self.group_or_all(Some(index))?;
        let size = chunk_size(range.len(), self.threads);
        let Self { config, trees, groups, threads, slots, .. } = self;
        let (config, threads, group) = (&*config, *threads, &mut groups[index]);
        let trees = &mut trees[range];
        let capacity = trees.len() * config.in_flight as usize;
        if requests.as_ref().is_some_and(|requests| requests.len() < capacity * REQUEST_NUMBERS) {
            return Err(Error::Usage(format!("requests has no room for {capacity} rows")));
        }
        let start = Instant::now();
        group.rows.resize(trees.len(), 1);
        let expected = chunk_ranges(&group.rows, size);
        let rows = expected.last().map_or(0, |last| last.end);
        if let Some((numbers, columns)) = responses {
            let width = columns.count(config.num_actions);
            if numbers.len() < rows * width {
                return Err(Error::Usage(format!("responses has no room for {rows} rows")));
            }
            if !are_valid(&numbers[..rows * width], columns, config, threads) {
                return Ok(None);
            }
        }
        let checked = Instant::now();
        let (gathers, open, row_counts_unchanged) = (requests.is_some(), AtomicBool::new(false), AtomicBool::new(true));
        let mut requests = requests;
        let taken: Vec<u32> = (0..if gathers { rows } else { 0 }).map(|_| slots.allocate()).collect();
        {
            let request_rows = split_rows(requests.as_deref_mut().unwrap_or_default(), &expected, REQUEST_NUMBERS);
            let chunks = trees.chunks_mut(size).zip(group.rows.chunks_mut(size)).zip(expected);
            parallel_for(threads, chunks.zip(request_rows), |(((trees, counts), rows), requests)| {
                let mut own = responses.map(|(numbers, columns)| {
                    let width = columns.count(config.num_actions);
                    (&numbers[rows.start * width..rows.end * width], columns, width)
                });
                let mut writer = RequestWriter { requests, slots: if gathers { &taken[rows] } else { &[] } };
                let (mut same_row_count, mut has_open_batch) = (true, false);
                for (search, count) in trees.iter_mut().zip(counts) {
                    let (tree, search_state) = search.split_mut();
                    if let Some((numbers, columns, width)) = &mut own {
                        let (these, others) = numbers.split_at(*count as usize * *width);
                        *numbers = others;
                        if search_state.has_batch() {
                            search_state.apply_model(tree, config, |row| columns.read(&these[row * *width..(row + 1) * *width]));
                        }
                    }
                    if gathers && search_state.wants_leaves(tree, config) {
                        search_state.gather(tree, config, 1);
                    }
                    has_open_batch |= search_state.has_batch();
                    let rows = search_state.pending.len() as u32;
                    // Usually as many as in the last batch.
                    same_row_count &= rows == *count;
                    *count = rows;
                    if gathers && same_row_count {
                        writer.write(tree, search_state);
                    }
                }
                if has_open_batch {
                    open.store(true, Ordering::Relaxed);
                }
                if !same_row_count {
                    row_counts_unchanged.store(false, Ordering::Relaxed);
                }
            });
        }
        let gathered = Instant::now();
        let rows = group.rows.iter().sum::<u32>() as usize;
        if !row_counts_unchanged.into_inner() {
            slots.release(&taken);
            if let Some(requests) = requests {
                let taken: Vec<u32> = (0..rows).map(|_| slots.allocate()).collect();
                let mut writer = RequestWriter { requests: &mut requests[..rows * REQUEST_NUMBERS], slots: &taken };
                for search in trees {
                    let (tree, search_state) = search.split_mut();
                    writer.write(tree, search_state);
                }
            }
        }
        self.pipeline_times.add([start, checked, gathered]);
        Ok(Some(BatchStatus { rows, open: open.into_inner() }))
    }

    /// Returns the maximum number of slots in use so far; all slots are below.
    #[must_use]
    pub fn num_slots(&self) -> usize {
        self.slots.capacity()
    }
}

/// Writes requests and assigns slots, leaf after leaf.
struct RequestWriter<'a> {
    requests: &'a mut [i64],
    slots: &'a [u32],
}

impl RequestWriter<'_> {
    fn write(&mut self, tree: &Tree, search_state: &mut SearchState<Latent>) {
        for leaf in &mut search_state.pending {
            let (Some((&slot, slots)), Some(last)) = (self.slots.split_first(), leaf.path.last()) else { continue };
            self.slots = slots;
            leaf.slot = slot;
            let (request, others) = std::mem::take(&mut self.requests).split_at_mut(REQUEST_NUMBERS);
            self.requests = others;
            let parent = tree.slot(last.node).unwrap_or(u32::MAX);
            request.copy_from_slice(&[i64::from(parent), i64::from(tree.action(last.edge)), i64::from(slot)]);
        }
    }
}

/// Returns whether all numbers are valid.
fn are_valid(numbers: &[f32], columns: Columns, config: &WorldConfig<Latent>, threads: usize) -> bool {
    let width = columns.count(config.num_actions);
    let rows = numbers.len() / width;
    let size = rows.div_ceil(threads).max(64);
    parallel_all(threads, numbers.chunks(size * width), |numbers| {
        numbers.chunks_exact(width).all(|row| {
            let response = columns.read(row);
            let policy = match response.logits {
                Logits::All(logits) => check_logits(logits) == (false, true),
                Logits::TopK { actions, logits, log_sum } => {
                    let is_action = |&action: &f32| (0.0..config.num_actions as f32).contains(&action);
                    log_sum.is_finite() && check_logits(logits) == (false, true) && actions.iter().all(is_action)
                }
            };
            let discounted =
                response.discount.is_none_or(|discount| (-1.0..=1.0).contains(&discount) && (discount >= 0.0 || config.num_players == 2));
            policy && discounted && check_number(response.reward).is_ok() && check_number(response.value).is_ok()
        })
    })
}
