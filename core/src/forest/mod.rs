//! Many trees searched together: they share threads, slots and batches; results do not depend on the other trees.

use std::ops::Range;

mod apply;
mod compiled;
mod external;
pub(crate) mod latent;
pub(crate) mod offload;
pub(crate) mod pipeline;
pub(crate) mod pipeline_latent;
mod root_results;
pub(crate) mod row_layout;
pub(crate) mod rows;
mod saved;
mod step;

use crate::error::Error;
use crate::forest::rows::{Row, SlotAllocator};
use crate::games::World;
use crate::runtime::parallel_vec::parallel_drop;
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::WorldConfig;
use crate::search::noise::{self, Noise};
use crate::search::tree_search::{Stop, TreeSearch};
use crate::tree::{Tree, ROOT};

/// Upper bound of the simulations of a turn, if trees share a time limit.
const SIMULATIONS_PER_TURN: u64 = 64;

/// Nanoseconds of work per thread in jobs that run once per search: a preempted worker delays the job, on some machines by
/// milliseconds.
const MIN_WORK_PER_THREAD: usize = 200_000;

/// Returns how many of `threads` pay off for a job of about `nanoseconds` per tree.
fn threads_for(trees: usize, nanoseconds: usize, threads: usize) -> usize {
    (trees * nanoseconds / MIN_WORK_PER_THREAD).clamp(1, threads)
}

/// Returns the trees per work item: few enough for balanced threads, many enough to amortise the synchronisation.
fn chunk_size(trees: usize, threads: usize) -> usize {
    (trees / (4 * threads)).clamp(1, 64)
}

/// The trees of one world.
#[derive(Debug)]
pub struct Forest<W: World> {
    /// The configuration of every tree.
    pub(crate) config: WorldConfig<W>,
    threads: usize,
    trees: Vec<TreeSearch<W>>,
    slots: SlotAllocator,
    /// The rows gathered last (external worlds), and how many of them were stepped.
    rows: Vec<Row>,
    stepped: usize,
    /// Trees that are evaluated together (compiled worlds and learned models).
    groups: Vec<pipeline::Group>,
    /// Time spent in exchanges with a network.
    pipeline_times: pipeline::PipelineTimes,
}

impl<W: World> Drop for Forest<W> {
    /// Drops the trees in parallel.
    fn drop(&mut self) {
        let nodes = self.trees.first().map_or(0, |search| search.tree().num_nodes());
        let threads = threads_for(self.trees.len(), 200 + 4 * nodes, self.threads);
        let size = chunk_size(self.trees.len(), threads);
        parallel_drop(std::mem::take(&mut self.trees), (size, threads));
    }
}

impl<W: World> Forest<W> {
    /// Creates an empty forest.
    #[must_use]
    pub fn new(config: WorldConfig<W>) -> Self {
        Self {
            threads: config.threads,
            config,
            trees: Vec::new(),
            slots: SlotAllocator::default(),
            rows: Vec::new(),
            stepped: 0,
            groups: Vec::new(),
            pipeline_times: pipeline::PipelineTimes::default(),
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &WorldConfig<W> {
        &self.config
    }

    /// Returns the time spent in exchanges with a network.
    #[must_use]
    pub fn pipeline_times(&self) -> pipeline::PipelineTimes {
        self.pipeline_times
    }

    /// Returns the number of trees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    /// Returns whether there are no trees.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Returns tree `index`.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn tree(&self, index: usize) -> Result<&TreeSearch<W>, Error> {
        let count = self.trees.len();
        self.trees.get(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))
    }

    /// Returns all trees.
    pub fn trees(&self) -> impl Iterator<Item = &TreeSearch<W>> {
        self.trees.iter()
    }

    /// Calls `read` for every tree with its entry of `results`, in parallel.
    fn read_each<T: Send>(&self, results: &mut [T], read: impl Fn(usize, &TreeSearch<W>, &mut T) + Sync) {
        let threads = threads_for(self.trees.len(), 150 + 4 * self.config.num_actions, self.threads);
        let size = chunk_size(self.trees.len(), threads);
        let chunks = self.trees.chunks(size).zip(results.chunks_mut(size)).enumerate();
        parallel_for(threads, chunks, |(chunk, (trees, results))| {
            for (offset, (search, result)) in trees.iter().zip(results).enumerate() {
                read(chunk * size + offset, search, result);
            }
        });
    }

    fn tree_mut(&mut self, index: usize) -> Result<&mut TreeSearch<W>, Error> {
        let count = self.trees.len();
        self.trees.get_mut(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))
    }

    /// Sets the limit of tree `index` to `simulations` more.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn allow(&mut self, index: usize, simulations: u64) -> Result<(), Error> {
        let search = self.tree_mut(index)?;
        if simulations > 0 && search.tree().node(ROOT).is_chance() {
            return Err(Error::Usage(format!("tree {index} waits for an outcome of chance: advance it first")));
        }
        let search_state = &mut search.search_state;
        if simulations > 0 {
            // The old schedule determines the move until the new one has run a simulation.
            if search_state.simulations > search_state.limit_start {
                search_state.previous_schedule = search_state.schedule.take();
            }
            search_state.schedule = None;
            search_state.limit_start = search_state.simulations;
        }
        search_state.simulation_limit = search_state.simulations.saturating_add(simulations);
        search_state.planned_limit = search_state.simulation_limit;
        Ok(())
    }

    /// Returns whether some tree wants more simulations.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.trees.iter().any(|tree| tree.wants_more(&self.config))
    }

    /// Returns the simulations done and the limit, summed over all trees.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.trees
            .iter()
            .fold((0, 0), |(done, wanted), tree| (done + tree.search_state.simulations, wanted + tree.search_state.simulation_limit))
    }

    /// Calls `work` for every tree, in parallel.
    fn par_for_each(&mut self, work: impl Fn(&mut TreeSearch<W>, &WorldConfig<W>) + Sync) {
        let config = &self.config;
        parallel_for(self.threads, self.trees.iter_mut(), |tree| work(tree, config));
    }

    /// Calls `work` for every tree with its entry of `per_tree`, in parallel; for work of some microseconds per tree.
    fn for_each_short<T: Copy + Sync>(
        &mut self,
        trees: Range<usize>,
        per_tree: &[T],
        work: impl Fn(&mut TreeSearch<W>, &WorldConfig<W>, T) + Sync,
    ) {
        let config = &self.config;
        let size = chunk_size(trees.len(), self.threads);
        parallel_for(self.threads, self.trees[trees].chunks_mut(size).zip(per_tree.chunks(size)), |(trees, per_tree)| {
            trees.iter_mut().zip(per_tree).for_each(|(search, &entry)| work(search, config, entry));
        });
    }

    /// Runs every tree inside the engine until none wants more or `stop` returns true. With `round_robin`, trees take turns of a few
    /// simulations, so that they share a time limit evenly.
    pub fn run(&mut self, round_robin: bool, stop: Stop<'_>) {
        let threads_per_tree = if self.trees.len() == 1 { self.threads } else { 1 };
        let done = |tree: &TreeSearch<W>| tree.search_state.simulations - tree.search_state.limit_start;
        while !stop() {
            // Trees that are behind catch up first, e.g. those that a stop excluded from the last turn.
            let Some(least) = self.trees.iter().filter(|tree| tree.wants_more(&self.config)).map(done).min() else { return };
            // Turns begin with one simulation, so that a short time limit reaches all trees.
            let level = if round_robin { least + least.clamp(1, SIMULATIONS_PER_TURN) } else { u64::MAX };
            self.par_for_each(|tree, config| {
                if !stop() {
                    tree.run(config, threads_per_tree, level.saturating_sub(done(tree)), stop);
                }
            });
        }
    }

    /// Runs the first simulation of every tree since its limit was set, so that a short time limit leaves none without.
    pub fn begin(&mut self, stop: Stop<'_>) {
        self.par_for_each(|tree, config| {
            if tree.search_state.simulations == tree.search_state.limit_start {
                tree.run(config, 1, 1, stop);
            }
        });
    }

    /// Returns whether every tree that wants simulations has had one since its limit was set.
    #[must_use]
    pub fn all_started(&self) -> bool {
        self.trees.iter().all(|tree| tree.search_state.simulations > tree.search_state.limit_start || !tree.wants_more(&self.config))
    }

    /// Gathers leaves from every tree that wants work. Compiled worlds: `waiting` then has the leaves to evaluate. External worlds:
    /// the returned rows must be stepped, and `gather` called again until it returns none.
    ///
    /// # Errors
    /// `Error::Usage` if rows are still to be stepped.
    pub fn gather(&mut self) -> Result<&[Row], Error> {
        self.refuse_unstepped("answer them, or roll back, before gather")?;
        self.rows.clear();
        self.stepped = 0;
        let nothing = vec![(); self.trees.len()];
        self.for_each_short(0..nothing.len(), &nothing, |search, config, ()| {
            if search.search_state.wants_leaves(search.tree(), config) {
                let (tree, state) = search.split_mut();
                state.gather(tree, config, 1);
            }
        });
        if W::NEEDS_STEP {
            for (index, search) in self.trees.iter_mut().enumerate() {
                let (tree, state) = search.split_mut();
                let Some(leaf) = state.pending.last_mut().filter(|leaf| leaf.node.is_none()) else { continue };
                leaf.slot = self.slots.allocate();
                self.rows.push(Row::of_leaf(index, tree, leaf));
            }
        }
        Ok(&self.rows)
    }

    /// Raises `Error::Usage` if rows wait for `step`.
    fn refuse_unstepped(&self, right: &str) -> Result<(), Error> {
        match self.rows.len() - self.stepped {
            0 => Ok(()),
            rows => Err(Error::Usage(format!("{rows} rows wait for step: {right}"))),
        }
    }

    /// Returns the leaves that wait for values, by tree and in gathering order; not those with a known value.
    #[must_use]
    pub fn waiting(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.each_waiting(|row| rows.push(row));
        rows
    }

    fn each_waiting(&self, mut take: impl FnMut(Row)) {
        for (index, search) in self.trees.iter().enumerate() {
            let tree = search.tree();
            for leaf in search.search_state.pending.iter().filter(|leaf| leaf.awaits_value()) {
                take(Row::of_leaf(index, tree, leaf));
            }
        }
    }

    /// Returns the range of all trees.
    #[must_use]
    pub fn all(&self) -> Range<usize> {
        0..self.trees.len()
    }

    /// Returns the trees of group `index`, or all.
    ///
    /// # Errors
    /// `Error::Usage` if there is no such group.
    pub fn group_or_all(&self, index: Option<usize>) -> Result<Range<usize>, Error> {
        let Some(index) = index else { return Ok(self.all()) };
        let count = self.groups.len();
        let group = self.groups.get(index).map(|group| group.trees.clone());
        group.ok_or_else(|| Error::Usage(format!("group {index} does not exist: this forest has {count}")))
    }

    /// Returns the number of leaves of these trees that wait for values.
    #[must_use]
    pub fn num_waiting(&self, trees: Range<usize>) -> usize {
        self.trees[trees].iter().map(|tree| tree.search_state.pending.iter().filter(|leaf| leaf.awaits_value()).count()).sum()
    }

    /// Returns the legal actions of the waiting leaves of these trees whose edges need priors: row offsets (one more than rows), and
    /// the actions.
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

    /// Mixes noise into the priors of tree `index`'s root before its next descent; None removes earlier noise.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree, or a number is out of range.
    pub fn set_noise(&mut self, index: usize, wanted: Option<Noise>) -> Result<(), Error> {
        wanted.map_or(Ok(()), |noise| noise.check())?;
        let (tree, search_state) = self.tree_mut(index)?.split_mut();
        search_state.noise = wanted;
        if wanted.is_none() && search_state.root_state.is_some() {
            noise::remove(tree, search_state.root_state_mut());
        }
        Ok(())
    }

    /// Sets the Gumbel numbers of tree `index`, one per action; None draws them.
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

    /// Returns whether a batch is open.
    #[must_use]
    pub fn has_batch(&self) -> bool {
        self.trees.iter().any(|tree| tree.search_state.has_batch())
    }

    /// Returns whether some tree can add leaves to the open batch, or has a leaf to step behind a chance node (external worlds,
    /// between `step` and `apply`).
    #[must_use]
    pub fn batch_can_grow(&self) -> bool {
        let most = self.config.in_flight as usize;
        let has_place = |tree: &TreeSearch<W>| !tree.search_state.full_batch && tree.search_state.pending.len() < most;
        let can_grow = |tree: &TreeSearch<W>| has_place(tree) && tree.wants_more(&self.config);
        self.trees.iter().any(|tree| tree.search_state.awaits_step() || can_grow(tree))
    }

    /// Rolls back the open batch, if any; releases and returns its slots.
    pub fn roll_back(&mut self) -> Vec<u32> {
        self.rows.clear();
        self.stepped = 0;
        let mut released = Vec::new();
        for search in &mut self.trees {
            let (tree, state) = search.split_mut();
            released.extend(state.roll_back(tree));
        }
        self.slots.release(&released);
        released
    }

    /// Releases the slots of a tree that was replaced, and returns them.
    fn release_all(&mut self, old: &Tree) -> Vec<u32> {
        let released: Vec<u32> = old.indices().filter_map(|node| old.slot(node)).collect();
        self.slots.release(&released);
        released
    }

    /// Plays `action` at the root of tree `index` and keeps its subtree, restricted to the `legal` actions if given; without a subtree,
    /// `plant` creates the tree of the new position. Returns the released slots.
    fn advance_with(
        &mut self,
        index: usize,
        action: u16,
        legal: Option<&[u16]>,
        plant: impl FnOnce(&WorldConfig<W>, &mut SlotAllocator) -> Tree,
    ) -> Result<Vec<u32>, Error> {
        let old = self.tree(index)?.shared_tree();
        let Self { trees, config, slots, .. } = self;
        let search = &mut trees[index];
        let dropped = search.advance_to_child(action, config.evaluates_root(), legal);
        let released: Vec<u32> = if let Some(dropped) = dropped {
            dropped.into_iter().filter_map(|node| old.slot(node)).collect()
        } else {
            search.replace_tree(plant(config, slots), config.forced_depth);
            old.indices().filter_map(|node| old.slot(node)).collect()
        };
        search.search_state.advance_root();
        slots.release(&released);
        Ok(released)
    }
}
