//! Many trees searched together. Each is exactly as if it were alone; they share threads, slots and batches.

use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::expand;
use crate::gather::Answer;
use crate::game::Game;
use crate::parts::Parts;
use crate::search::{Stop, TreeSearch};
use crate::slots::Slots;
use crate::tree::{Tree, ROOT};
use crate::world::{Compiled, External, World};

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
    /// The key of the simulation's random numbers.
    pub key: u64,
}

/// A forest of one world.
#[derive(Debug)]
pub struct Forest<W: World> {
    /// What the search is made of.
    pub parts: Parts,
    threads: usize,
    trees: Vec<TreeSearch<W>>,
    slots: Slots,
    /// The rows `gather` has handed out for `step` and not yet had an answer to (external worlds).
    stepping: Vec<Row>,
}

impl<W: World> Forest<W> {
    /// An empty forest.
    ///
    /// # Errors
    /// `Error::InvalidArgument` for parts that no search can be made of.
    pub fn new(parts: Parts, threads: usize) -> Result<Self, Error> {
        parts.check()?;
        if threads == 0 {
            return Err(Error::InvalidArgument("threads must be at least 1, not 0".into()));
        }
        Ok(Self { parts, threads, trees: Vec::new(), slots: Slots::default(), stepping: Vec::new() })
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

    fn tree_mut(&mut self, index: usize) -> Result<&mut TreeSearch<W>, Error> {
        let count = self.trees.len();
        self.trees.get_mut(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))
    }

    /// Allows tree `index` `simulations` more than it has had.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn allow(&mut self, index: usize, simulations: u64) -> Result<(), Error> {
        let walker = &mut self.tree_mut(index)?.walker;
        walker.target = walker.simulations.saturating_add(simulations);
        Ok(())
    }

    /// Whether some tree wants more simulations.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.trees.iter().any(|tree| tree.wants_more(&self.parts))
    }

    /// Simulations done by all trees, and wanted by all.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.trees.iter().fold((0, 0), |(done, wanted), tree| (done + tree.walker.simulations, wanted + tree.walker.target))
    }

    fn each_in_parallel(&mut self, work: impl Fn(&mut TreeSearch<W>, &Parts) + Sync) {
        let parts = &self.parts;
        let workers = self.threads.min(self.trees.len());
        if workers <= 1 {
            self.trees.iter_mut().for_each(|tree| work(tree, parts));
            return;
        }
        let queue = Mutex::new(self.trees.iter_mut());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| loop {
                    // A poisoned lock means another worker panicked; the scope hands that panic on.
                    let Some(tree) = queue.lock().ok().and_then(|mut trees| trees.next()) else { break };
                    work(tree, parts);
                });
            }
        });
    }

    /// Runs every tree inside the engine until none wants more or `stop` says so.
    pub fn run(&mut self, stop: Stop<'_>) {
        let threads_per_tree = if self.trees.len() == 1 { self.threads } else { 1 };
        self.each_in_parallel(|tree, parts| {
            if !stop() {
                tree.run(parts, threads_per_tree, stop);
            }
        });
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
        self.each_in_parallel(|tree, parts| {
            if !tree.walker.full_batch && (tree.wants_more(parts) || !tree.walker.pending.is_empty()) {
                let (grown, walker) = tree.parts_mut();
                walker.gather(grown, parts);
                if !W::EXTERNAL {
                    for leaf in &mut walker.pending {
                        leaf.value = parts.leaf.value::<W>(&mut leaf.state, leaf.key);
                    }
                }
            }
        });
        if W::EXTERNAL {
            for (index, tree) in self.trees.iter_mut().enumerate() {
                let (grown, walker) = tree.parts_mut();
                let Some(leaf) = walker.pending.last_mut().filter(|leaf| leaf.node.is_none()) else { continue };
                let Some(last) = leaf.path.last() else { continue };
                leaf.slot = self.slots.take();
                self.stepping.push(Row {
                    tree: index as u32,
                    slot: leaf.slot,
                    parent_slot: grown.slot(last.node).unwrap_or(u32::MAX),
                    action: grown.action(last.edge),
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
    /// Leaves whose playout reached an end by itself are not among them.
    #[must_use]
    pub fn waiting(&self) -> Vec<Row> {
        let rows = |(index, tree): (usize, &TreeSearch<W>)| {
            let row = |leaf: &crate::search::Pending<W::State>| {
                let last = leaf.path.last();
                Row {
                    tree: index as u32,
                    slot: leaf.slot,
                    parent_slot: last.and_then(|step| tree.tree().slot(step.node)).unwrap_or(u32::MAX),
                    action: last.map_or(0, |step| tree.tree().action(step.edge)),
                    key: leaf.key,
                }
            };
            tree.walker.pending.iter().filter(|leaf| leaf.value.is_none()).map(row).collect::<Vec<_>>()
        };
        self.trees.iter().enumerate().flat_map(rows).collect()
    }

    /// Who chose the move that led to each waiting leaf: seed 3's perspective player.
    #[must_use]
    pub fn waiting_choosers(&self) -> Vec<u8> {
        let leaves = self.trees.iter().flat_map(|tree| tree.walker.pending.iter().filter(|leaf| leaf.value.is_none()));
        leaves.map(|leaf| leaf.path.last().map_or(0, |step| step.chooser)).collect()
    }

    /// Whether a batch is under way.
    #[must_use]
    pub fn has_batch(&self) -> bool {
        !self.stepping.is_empty() || self.trees.iter().any(|tree| !tree.walker.pending.is_empty())
    }

    /// Whether some tree can gather more into the batch under way (external worlds, between `step` and `apply`).
    #[must_use]
    pub fn batch_can_grow(&self) -> bool {
        self.trees.iter().any(|tree| !tree.walker.full_batch && tree.wants_more(&self.parts))
    }

    fn each_waiting(&self, mut visit: impl FnMut(&TreeSearch<W>, &crate::search::Pending<W::State>)) {
        for tree in &self.trees {
            for leaf in tree.walker.pending.iter().filter(|leaf| leaf.value.is_none()) {
                visit(tree, leaf);
            }
        }
    }

    /// Backs up values, one per waiting row (for the player to move there) or one per row and player.
    /// A wrong value leaves the forest as it was, batch included.
    ///
    /// # Errors
    /// `Error::Evaluation` names what is wrong; `Error::Usage` if rows are still to be stepped.
    pub fn apply(&mut self, values: &[f64]) -> Result<(), Error> {
        if !self.stepping.is_empty() {
            return Err(Error::Usage(format!("{} rows wait for step: answer them before apply", self.stepping.len())));
        }
        let mut movers = Vec::new();
        self.each_waiting(|tree, leaf| {
            movers.push(leaf.node.map_or_else(|| W::to_play(&leaf.state), |node| tree.tree().node(node).to_play));
        });
        let spread = spread_values(values, &movers, &self.parts)?;
        let players = self.parts.players;
        let mut rows = spread.chunks_exact(players);
        for tree in &mut self.trees {
            if tree.walker.pending.is_empty() && !tree.walker.full_batch {
                continue;
            }
            let (grown, walker) = tree.parts_mut();
            let mut all = Vec::with_capacity(walker.pending.len() * players);
            for leaf in &walker.pending {
                match leaf.value {
                    Some(value) => all.extend([value, -value]),
                    None => all.extend(rows.next().unwrap_or(&[])),
                }
            }
            walker.apply(grown, &self.parts, &all);
        }
        Ok(())
    }

    /// Takes back the batch under way, if any; the slots it had are free again and returned.
    pub fn roll_back(&mut self) -> Vec<u32> {
        self.stepping.clear();
        let mut released = Vec::new();
        for tree in &mut self.trees {
            let (grown, walker) = tree.parts_mut();
            released.extend(walker.roll_back(grown));
        }
        self.slots.give_back(&released);
        released
    }

    /// Plays `action` at the root of tree `index` and keeps the part of the tree below it. `plant` makes a fresh tree of the
    /// position after the move where nothing is known of it yet. The slots released are returned.
    fn advance_with(&mut self, index: usize, action: u16, plant: impl FnOnce(&Parts, &mut Slots) -> (Tree, u32)) -> Result<Vec<u32>, Error> {
        let Self { trees, parts, slots, .. } = self;
        let count = trees.len();
        let search =
            trees.get_mut(index).ok_or_else(|| Error::InvalidArgument(format!("tree {index} does not exist: this forest has {count}")))?;
        let old = search.snapshot();
        let dropped = search.keep_child(action, false);
        let released: Vec<u32> = if let Some(dropped) = dropped {
            dropped.into_iter().filter_map(|node| old.slot(node)).collect()
        } else {
            search.replant(plant(parts, slots).0);
            old.indices().filter_map(|node| old.slot(node)).collect()
        };
        search.walker.target = search.walker.simulations;
        slots.give_back(&released);
        Ok(released)
    }
}

/// Turns evaluator values into one number per row and player.
fn spread_values(values: &[f64], movers: &[u8], parts: &Parts) -> Result<Vec<f64>, Error> {
    let (rows, players) = (movers.len(), parts.players);
    let one_each = values.len() == rows && (players == 1 || (players == 2 && parts.zero_sum));
    if !one_each && values.len() != rows * players {
        let shape = if players == 1 || (players == 2 && parts.zero_sum) { format!("[{rows}] or [{rows}, {players}]") } else { format!("[{rows}, {players}]") };
        return Err(Error::Evaluation(format!("values has {} numbers: it must have the shape {shape}", values.len())));
    }
    crate::gather::check_values(values)?;
    if !one_each || players == 1 {
        return Ok(values.to_vec());
    }
    let pair = |(&value, &mover): (&f64, &u8)| if mover == 0 { [value, -value] } else { [-value, value] };
    Ok(values.iter().zip(movers).flat_map(pair).collect())
}

impl<G: Game> Forest<Compiled<G>> {
    /// Plants a tree for `state`.
    ///
    /// # Errors
    /// `Error::GameOver` if the game is over there.
    pub fn plant(&mut self, state: G, key: u64) -> Result<(), Error> {
        let tree = self.fresh(&state)?;
        self.trees.push(TreeSearch::new(tree, state, key));
        Ok(())
    }

    fn fresh(&self, state: &G) -> Result<Tree, Error> {
        if state.outcome().is_some() {
            return Err(Error::GameOver("the game is over in this state: there is nothing to search".into()));
        }
        let mut tree = Tree::new(self.parts.shape());
        expand::root::<Compiled<G>>(&mut tree, &self.parts, state, &mut Vec::new());
        Ok(tree)
    }

    /// Puts `state` in the place of tree `index`, with a new key.
    ///
    /// # Errors
    /// `Error::GameOver` if the game is over there; `Error::InvalidArgument` if there is no such tree.
    pub fn reset(&mut self, index: usize, state: G, key: u64) -> Result<(), Error> {
        let tree = self.fresh(&state)?;
        *self.tree_mut(index)? = TreeSearch::new(tree, state, key);
        Ok(())
    }

    /// Plays `action` at the root of tree `index`, keeping what is known below it.
    ///
    /// # Errors
    /// `Error::InvalidAction` if it is not legal there, `Error::GameOver` if it ends the game.
    pub fn advance(&mut self, index: usize, action: u16) -> Result<(), Error> {
        let mut next = self.tree(index)?.walker.root.clone();
        if !next.is_legal(action) {
            return Err(Error::InvalidAction(format!("action {action} is not legal at the root of tree {index}")));
        }
        next.play(action);
        let fresh = self.fresh(&next)?;
        self.advance_with(index, action, |_, _| (fresh, 0))?;
        self.tree_mut(index)?.walker.root = next;
        Ok(())
    }

    /// The position of each waiting leaf, in the order of `waiting`.
    pub fn waiting_states(&self) -> Vec<&G> {
        let leaves = self.trees.iter().flat_map(|tree| tree.walker.pending.iter().filter(|leaf| leaf.value.is_none()));
        leaves.map(|leaf| &leaf.state).collect()
    }
}

impl Forest<External> {
    /// Plants a tree for a position outside, whose legal actions and mover are given; its slot.
    ///
    /// # Errors
    /// `Error::GameContract` if `legal` is not a set of actions.
    pub fn plant(&mut self, to_play: u8, legal: &[u16], key: u64) -> Result<u32, Error> {
        let (tree, slot) = self.fresh(to_play, legal)?;
        self.trees.push(TreeSearch::new(tree, (), key));
        Ok(slot)
    }

    fn fresh(&mut self, to_play: u8, legal: &[u16]) -> Result<(Tree, u32), Error> {
        self.check_position(to_play, legal).map_err(|text| Error::GameContract(format!("at the root {text}")))?;
        let slot = self.slots.take();
        let mut tree = Tree::new(self.parts.shape());
        let root = tree.add_node(to_play, self.parts.forced_depth);
        tree.add_edges(root, legal);
        tree.set_slot(root, slot);
        Ok((tree, slot))
    }

    fn check_position(&self, to_play: u8, legal: &[u16]) -> Result<(), String> {
        if usize::from(to_play) >= self.parts.players {
            return Err(format!("to_play is {to_play}: it must be from 0 to {}", self.parts.players - 1));
        }
        if legal.is_empty() {
            return Err("legal_actions() is empty although the game is not over".into());
        }
        if let Some(action) = legal.iter().find(|&&action| usize::from(action) >= self.parts.num_actions) {
            return Err(format!("legal_actions() has {action}: actions must be below num_actions = {}", self.parts.num_actions));
        }
        let mut sorted = legal.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("legal_actions() has {} twice", pair[0]));
        }
        Ok(())
    }

    /// Puts another position in the place of tree `index`: its slot and the slots released.
    ///
    /// # Errors
    /// As `plant`; `Error::InvalidArgument` if there is no such tree.
    pub fn reset(&mut self, index: usize, to_play: u8, legal: &[u16], key: u64) -> Result<(u32, Vec<u32>), Error> {
        let old = self.tree(index)?.snapshot();
        let (tree, slot) = self.fresh(to_play, legal)?;
        *self.tree_mut(index)? = TreeSearch::new(tree, (), key);
        let released: Vec<u32> = old.indices().filter_map(|node| old.slot(node)).collect();
        self.slots.give_back(&released);
        Ok((slot, released))
    }

    /// The slot of the position at the root of tree `index`.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn root_slot(&self, index: usize) -> Result<u32, Error> {
        Ok(self.tree(index)?.tree().slot(ROOT).unwrap_or(u32::MAX))
    }

    /// The slot of the position behind `action` at the root of tree `index`, if it has been looked at.
    ///
    /// # Errors
    /// `Error::InvalidAction` if the root has no such move.
    pub fn child_slot(&self, index: usize, action: u16) -> Result<Option<u32>, Error> {
        let tree = self.tree(index)?.tree();
        let edges = tree.edges(tree.node(ROOT));
        let place = edges.actions.iter().position(|&a| a == action);
        let place = place.ok_or_else(|| Error::InvalidAction(format!("action {action} is not legal at the root of tree {index}")))?;
        Ok(edges.links[place].child().and_then(|child| tree.slot(child)))
    }

    /// Plays `action` at the root of tree `index`. Where nothing is known below it, a fresh tree is planted from `to_play` and `legal`:
    /// the slot of the new root, and the slots released.
    ///
    /// # Errors
    /// As `plant` and `child_slot`.
    pub fn advance(&mut self, index: usize, action: u16, to_play: u8, legal: &[u16]) -> Result<(u32, Vec<u32>), Error> {
        self.child_slot(index, action)?;
        self.check_position(to_play, legal).map_err(|text| Error::GameContract(format!("after action {action} {text}")))?;
        let released = self.advance_with(index, action, |parts, slots| {
            let slot = slots.take();
            let mut tree = Tree::new(parts.shape());
            let root = tree.add_node(to_play, parts.forced_depth);
            tree.add_edges(root, legal);
            tree.set_slot(root, slot);
            (tree, slot)
        })?;
        Ok((self.root_slot(index)?, released))
    }

    /// Takes the outside's word on the rows `gather` returned, in their order. A wrong word leaves the forest as it was.
    ///
    /// # Errors
    /// `Error::GameContract` names the row and what is wrong; `Error::Usage` if the number of answers is.
    pub fn step(&mut self, answers: &[Answer<'_>]) -> Result<(), Error> {
        if answers.len() != self.stepping.len() {
            return Err(Error::Usage(format!("step has {} answers for {} rows", answers.len(), self.stepping.len())));
        }
        for (row, answer) in answers.iter().enumerate() {
            self.check_answer(answer).map_err(|text| Error::GameContract(format!("row {row}: {text}")))?;
        }
        for (row, answer) in std::mem::take(&mut self.stepping).into_iter().zip(answers) {
            let (grown, walker) = self.trees[row.tree as usize].parts_mut();
            walker.step(grown, &self.parts, *answer);
        }
        Ok(())
    }

    fn check_answer(&self, answer: &Answer<'_>) -> Result<(), String> {
        let players = self.parts.players;
        let finite = |name: &str, numbers: &[f64]| {
            if numbers.len() != players {
                return Err(format!("{name} has {} numbers: one for each of the {players} players is right", numbers.len()));
            }
            match numbers.iter().find(|number| !number.is_finite()) {
                Some(number) => Err(format!("{name} has {number}: every number must be finite")),
                None => Ok(()),
            }
        };
        if self.parts.has_rewards {
            finite("rewards()", answer.rewards)?;
        }
        let Some(returns) = answer.returns else { return self.check_position(answer.to_play, answer.legal) };
        finite("returns()", returns)?;
        if usize::from(answer.to_play) >= players {
            return Err(format!("to_play is {}: it must be from 0 to {}", answer.to_play, players - 1));
        }
        let sum: f64 = returns.iter().sum();
        if self.parts.zero_sum && !self.parts.has_rewards && sum.abs() > 1e-9 {
            return Err(format!("returns() is {returns:?}, which sums to {sum}: a zero-sum game's sum to 0 (set zero_sum = False if this one is not)"));
        }
        Ok(())
    }
}

/// A tree shared with whoever looks at it.
pub type Snapshot = Arc<Tree>;
