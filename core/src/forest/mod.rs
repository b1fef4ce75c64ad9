//! Many trees searched together. Each is exactly as if it were alone; they share threads, slots and batches.

use std::ops::Range;

mod apply;
mod compiled;
mod external;
pub mod latent;
pub mod offload;
pub mod pipeline;
pub mod pipeline_latent;
mod row_layout;
pub mod rows;

use crate::error::Error;
use crate::forest::rows::SlotAllocator;
use crate::games::World;
use crate::runtime::parallel_vec::parallel_drop;
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::SearchConfig;
use crate::search::leaf_analysis;
use crate::search::noise::{self, Noise};
use crate::search::tree_search::{Stop, TreeSearch};
use crate::tree::Tree;

/// Trees that share a limit of time take turns of at most this many simulations.
const SIMULATIONS_PER_TURN: u64 = 64;

/// A thread is worth so many nanoseconds of a job that is done once in a search: one that the system does not let run meanwhile
/// holds up all others, on some machines for milliseconds.
const WORTH_A_THREAD: usize = 200_000;

/// How many of `threads` a job that takes about `nanoseconds` for each of `trees` is worth.
fn threads_for(trees: usize, nanoseconds: usize, threads: usize) -> usize {
    (trees * nanoseconds / WORTH_A_THREAD).clamp(1, threads)
}

/// How many of `trees` to hand to a thread at a time: few enough that all end at about the same time, many enough that taking
/// them costs nothing beside the work.
fn piece_size(trees: usize, threads: usize) -> usize {
    (trees / (4 * threads)).clamp(1, 64)
}

/// One row of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which tree.
    pub tree: u32,
    /// The slot of the new position (external worlds).
    pub slot: u32,
    /// The slot of the position before it.
    pub parent_slot: u32,
    /// The move between them.
    pub action: u16,
    /// Who made it: seed 3's perspective player.
    pub chooser: u8,
    /// The key of the simulation's random numbers.
    pub key: u64,
}

/// A forest of one world.
#[derive(Debug)]
pub struct Forest<W: World> {
    /// What the search is made of.
    pub config: SearchConfig,
    threads: usize,
    trees: Vec<TreeSearch<W>>,
    slots: SlotAllocator,
    /// The rows `gather` has handed out for `step` and not yet had an answer to (external worlds).
    stepping: Vec<Row>,
    /// Trees that are status about together (compiled worlds and history_table models).
    groups: Vec<pipeline::Group>,
    /// Where the time of exchanges with a network went.
    pub pipeline_times: pipeline::PipelineTimes,
}

impl<W: World> Drop for Forest<W> {
    /// Thousands of trees are dropped as they were planted: together.
    fn drop(&mut self) {
        let nodes = self.trees.first().map_or(0, |search| search.tree().num_nodes());
        let threads = threads_for(self.trees.len(), 200 + 4 * nodes, self.threads);
        let size = piece_size(self.trees.len(), threads);
        parallel_drop(std::mem::take(&mut self.trees), (size, threads));
    }
}

impl<W: World> Forest<W> {
    /// An empty forest.
    ///
    /// # Errors
    /// `Error::InvalidArgument` for config that no search can be made of.
    pub fn new(config: SearchConfig, threads: usize) -> Result<Self, Error> {
        config.check()?;
        if threads == 0 {
            return Err(Error::InvalidArgument("threads must be at least 1, not 0".into()));
        }
        Ok(Self {
            config,
            threads,
            trees: Vec::new(),
            slots: SlotAllocator::default(),
            stepping: Vec::new(),
            groups: Vec::new(),
            pipeline_times: pipeline::PipelineTimes::default(),
        })
    }

    /// Number of trees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    /// Whether there are no trees.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Tree `index`.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn tree(&self, index: usize) -> Result<&TreeSearch<W>, Error> {
        let count = self.trees.len();
        self.trees.get(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))
    }

    /// All trees.
    pub fn trees(&self) -> impl Iterator<Item = &TreeSearch<W>> {
        self.trees.iter()
    }

    /// Reads something off every tree into its place of `results`, on as many threads as there are.
    pub fn read_each<T: Send>(&self, results: &mut [T], read: impl Fn(usize, &TreeSearch<W>, &mut T) + Sync) {
        let threads = threads_for(self.trees.len(), 150 + 4 * self.config.num_actions, self.threads);
        let size = piece_size(self.trees.len(), threads);
        let pieces = self.trees.chunks(size).zip(results.chunks_mut(size)).enumerate();
        parallel_for(threads, pieces, |(piece, (trees, results))| {
            for (place, (tree, answer)) in trees.iter().zip(results).enumerate() {
                read(piece * size + place, tree, answer);
            }
        });
    }

    fn tree_mut(&mut self, index: usize) -> Result<&mut TreeSearch<W>, Error> {
        let count = self.trees.len();
        self.trees.get_mut(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))
    }

    /// Allows tree `index` `simulations` more than it has had.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn allow(&mut self, index: usize, simulations: u64) -> Result<(), Error> {
        let search_state = &mut self.tree_mut(index)?.search_state;
        if simulations > 0 {
            // Until the new schedule has run a simulation, the answer is that of the old one.
            if search_state.simulations > search_state.begun {
                search_state.answered = search_state.schedule.take();
            }
            search_state.schedule = None;
            search_state.begun = search_state.simulations;
        }
        search_state.target = search_state.simulations.saturating_add(simulations);
        Ok(())
    }

    /// Whether some tree wants more simulations.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.trees.iter().any(|tree| tree.wants_more(&self.config))
    }

    /// Simulations done by all trees, and wanted by all.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.trees.iter().fold((0, 0), |(done, wanted), tree| (done + tree.search_state.simulations, wanted + tree.search_state.target))
    }

    /// Works on every tree, on as many threads as there are.
    fn each_in_parallel(&mut self, work: impl Fn(&mut TreeSearch<W>, &SearchConfig) + Sync) {
        let config = &self.config;
        parallel_for(self.threads, self.trees.iter_mut(), |tree| work(tree, config));
    }

    /// The same for work of some microseconds a tree, each with its own share of `shares`.
    fn each_briefly<T: Copy + Sync>(
        &mut self,
        trees: Range<usize>,
        shares: &[T],
        work: impl Fn(&mut TreeSearch<W>, &SearchConfig, T) + Sync,
    ) {
        let config = &self.config;
        let size = piece_size(trees.len(), self.threads);
        parallel_for(self.threads, self.trees[trees].chunks_mut(size).zip(shares.chunks(size)), |(trees, shares)| {
            trees.iter_mut().zip(shares).for_each(|(tree, &share)| work(tree, config, share));
        });
    }

    /// Runs every tree inside the engine until none wants more or `stop` says so. With `share`, trees take turns of a few
    /// simulations, so that a limit of time is pipeline_times on all of them alike.
    pub fn run(&mut self, share: bool, stop: Stop<'_>) {
        let threads_per_tree = if self.trees.len() == 1 { self.threads } else { 1 };
        let done = |tree: &TreeSearch<W>| tree.search_state.simulations - tree.search_state.begun;
        while !stop() {
            // Trees that are behind catch up first, also those that a stop has cut out of the last turn.
            let Some(least) = self.trees.iter().filter(|tree| tree.wants_more(&self.config)).map(done).min() else { return };
            // Turns begin with one simulation, so that a short time is not pipeline_times on the first trees alone.
            let level = if share { least + least.clamp(1, SIMULATIONS_PER_TURN) } else { u64::MAX };
            self.each_in_parallel(|tree, config| {
                if !stop() {
                    tree.run(config, threads_per_tree, level.saturating_sub(done(tree)), stop);
                }
            });
        }
    }

    /// Gives every tree that wants simulations its first since its limit was set: a limit of time, however short, leaves none
    /// without.
    pub fn begin(&mut self, stop: Stop<'_>) {
        self.each_in_parallel(|tree, config| {
            if tree.search_state.simulations == tree.search_state.begun {
                tree.run(config, 1, 1, stop);
            }
        });
    }

    /// Whether every tree that wants simulations has had one since its limit was set.
    #[must_use]
    pub fn all_begun(&self) -> bool {
        self.trees.iter().all(|tree| tree.search_state.simulations > tree.search_state.begun || !tree.wants_more(&self.config))
    }

    /// Gathers leaves from every tree that wants work. Compiled worlds: afterwards `waiting` has the leaves to evaluate.
    /// External worlds: the rows returned must be answered by `step`, and `gather` called again until it returns none.
    ///
    /// # Errors
    /// `Error::Usage` if rows are still to be stepped.
    pub fn gather(&mut self) -> Result<&[Row], Error> {
        if !self.stepping.is_empty() {
            return Err(Error::Usage(format!("{} rows wait for step: answer them, or roll back, before gather", self.stepping.len())));
        }
        let nothing = vec![(); self.trees.len()];
        self.each_briefly(0..nothing.len(), &nothing, |tree, config, ()| {
            if !tree.search_state.full_batch && (tree.wants_more(config) || !tree.search_state.pending.is_empty()) {
                let (grown, search_state) = tree.split_mut();
                search_state.gather(grown, config);
                if !W::EXTERNAL {
                    leaf_analysis::analyze_leaves::<W>(config, &search_state.history_table, &mut search_state.pending);
                }
            }
        });
        if W::STEPPED {
            for (index, tree) in self.trees.iter_mut().enumerate() {
                let (grown, search_state) = tree.split_mut();
                let Some(leaf) = search_state.pending.last_mut().filter(|leaf| leaf.node.is_none()) else { continue };
                let Some(last) = leaf.path.last() else { continue };
                leaf.slot = self.slots.allocate();
                self.stepping.push(Row {
                    tree: index as u32,
                    slot: leaf.slot,
                    parent_slot: grown.slot(last.node).unwrap_or(u32::MAX),
                    action: grown.action(last.edge),
                    chooser: last.chooser,
                    key: leaf.key,
                });
            }
        }
        Ok(&self.stepping)
    }

    /// The rows that wait for `step`.
    #[must_use]
    pub fn stepping(&self) -> &[Row] {
        &self.stepping
    }

    /// The leaves that wait for values, by tree and then in the order they were gathered.
    /// PendingLeaves whose playout reached an end by itself are not among them.
    #[must_use]
    pub fn waiting(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.each_waiting(|row| rows.push(row));
        rows
    }

    fn each_waiting(&self, mut take: impl FnMut(Row)) {
        for (index, search) in self.trees.iter().enumerate() {
            let tree = search.tree();
            for leaf in search.search_state.pending.iter().filter(|leaf| leaf.value.is_none()) {
                let last = leaf.path.last();
                take(Row {
                    tree: index as u32,
                    slot: leaf.slot,
                    parent_slot: last.and_then(|step| tree.slot(step.node)).unwrap_or(u32::MAX),
                    action: last.map_or(0, |step| tree.action(step.edge)),
                    chooser: last.map_or(0, |step| step.chooser),
                    key: leaf.key,
                });
            }
        }
    }

    /// The range of all trees.
    #[must_use]
    pub fn all(&self) -> Range<usize> {
        0..self.trees.len()
    }

    /// The trees of group `index`, or all.
    ///
    /// # Errors
    /// `Error::Usage` if there is no such group.
    pub fn group_or_all(&self, index: Option<usize>) -> Result<Range<usize>, Error> {
        let Some(index) = index else { return Ok(self.all()) };
        let count = self.groups.len();
        let group = self.groups.get(index).map(|group| group.trees.clone());
        group.ok_or_else(|| Error::Usage(format!("group {index} does not exist: this forest has {count}")))
    }

    /// How many leaves of these trees wait for values.
    #[must_use]
    pub fn num_waiting(&self, trees: Range<usize>) -> usize {
        self.trees[trees].iter().map(|tree| tree.search_state.pending.iter().filter(|leaf| leaf.value.is_none()).count()).sum()
    }

    /// The legal actions of each waiting leaf of these trees whose moves want priors: where each row begins (and the last ends),
    /// and the actions.
    #[must_use]
    pub fn waiting_legal(&self, trees: Range<usize>) -> (Vec<i64>, Vec<u16>) {
        let (mut offsets, mut actions) = (vec![0], Vec::new());
        for tree in &self.trees[trees] {
            for node in tree.search_state.waiting_nodes() {
                actions.extend_from_slice(tree.tree().edges(tree.tree().node(node)).actions);
                offsets.push(actions.len() as i64);
            }
        }
        (offsets, actions)
    }

    /// Mixes noise into the priors of tree `index`'s root before its next descent; None takes earlier noise out.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn set_noise(&mut self, index: usize, wanted: Option<Noise>) -> Result<(), Error> {
        let (tree, search_state) = self.tree_mut(index)?.split_mut();
        search_state.noise = wanted;
        if wanted.is_none() {
            noise::remove(tree);
        }
        Ok(())
    }

    /// Gives tree `index` its Gumbel numbers, one for each action; None draws them.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree, or the numbers are not one for each action, all finite.
    pub fn set_gumbel(&mut self, index: usize, numbers: Option<Vec<f64>>) -> Result<(), Error> {
        let actions = self.config.num_actions;
        if let Some(numbers) = &numbers {
            if numbers.len() != actions {
                return Err(Error::InvalidArgument(format!(
                    "gumbel has {} numbers: it must have {actions}, one for each action",
                    numbers.len()
                )));
            }
            if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
                return Err(Error::InvalidArgument(format!("gumbel has {number}: every number must be finite")));
            }
        }
        self.tree_mut(index)?.search_state.gumbel = numbers;
        Ok(())
    }

    /// Whether a batch is under way.
    #[must_use]
    pub fn has_batch(&self) -> bool {
        self.trees.iter().any(|tree| tree.search_state.has_batch())
    }

    /// Whether some tree can gather more into the batch under way (external worlds, between `step` and `apply`).
    #[must_use]
    pub fn batch_can_grow(&self) -> bool {
        self.trees.iter().any(|tree| !tree.search_state.full_batch && tree.wants_more(&self.config))
    }

    /// Takes back the batch under way, if any; the slots it had are free again and returned.
    pub fn roll_back(&mut self) -> Vec<u32> {
        self.stepping.clear();
        let mut released = Vec::new();
        for tree in &mut self.trees {
            let (grown, search_state) = tree.split_mut();
            released.extend(search_state.roll_back(grown));
        }
        self.slots.release(&released);
        released
    }

    /// Plays `action` at the root of tree `index` and keeps the part of the tree below it, of the `legal` moves there alone if
    /// they are given. `plant` makes a fresh tree of the
    /// position after the move where nothing is known of it yet. The slots released are returned.
    fn advance_with(
        &mut self,
        index: usize,
        action: u16,
        legal: Option<&[u16]>,
        plant: impl FnOnce(&SearchConfig, &mut SlotAllocator) -> (Tree, u32),
    ) -> Result<Vec<u32>, Error> {
        let Self { trees, config, slots, .. } = self;
        let count = trees.len();
        let search =
            trees.get_mut(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))?;
        let old = search.snapshot();
        let dropped = search.keep_child(action, config.evaluates_root(), legal);
        let released: Vec<u32> = if let Some(dropped) = dropped {
            dropped.into_iter().filter_map(|node| old.slot(node)).collect()
        } else {
            search.replant(plant(config, slots).0);
            old.indices().filter_map(|node| old.slot(node)).collect()
        };
        search.search_state.target = search.search_state.simulations;
        search.search_state.history_table.advance();
        search.search_state.root_searched = false;
        search.search_state.reset_schedules();
        slots.release(&released);
        Ok(released)
    }
}
