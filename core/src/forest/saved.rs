//! Trees of a forest as columns, and their restoration: continued searches trust their trees, so every node is validated.

use super::rows::SlotAllocator;
use super::Forest;
use crate::error::Error;
use crate::games::analysis::Analyzed;
use crate::games::{Compiled, Latent, PythonGame, World};
use crate::search::batch::MAX_VALUE;
use crate::search::config::WorldConfig;
use crate::search::saved::SearchColumns;
use crate::search::snapshot::SnapshotColumns;
use crate::search::tree_search::TreeSearch;
use crate::tree::{owner, Tree, ROOT, UNPROVEN};

/// The number of different actions and outcomes.
const MAX_ACTIONS: usize = 1 << 16;

/// Upper bound of the visits of an edge of a restored tree: room for more.
const MAX_VISITS: u32 = u32::MAX - (1 << 24);

fn refuse<T>(text: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::InvalidArgument(format!("these are not the columns of a search: {text}")))
}

/// Checks what a search relies on at every node.
fn check_tree<W: World>(tree: &Tree, config: &WorldConfig<W>) -> Result<(), String> {
    let actions = config.num_actions;
    let mut last_node = vec![u32::MAX; if W::HAS_CHANCE { MAX_ACTIONS } else { actions }];
    let max_sum = MAX_VALUE * f64::from(MAX_VISITS);
    if tree.root_visits > MAX_VISITS || tree.node(ROOT).terminal {
        return Err("the root is terminal, or has more visits than a search can continue with".into());
    }
    for index in tree.indices() {
        let node = tree.node(index);
        let edges = tree.edges(node);
        let value = node.raw_value;
        if (node.num_edges == 0) != node.terminal && (node.terminal || node.proven == UNPROVEN) {
            return Err(format!("node {index} has {} edges, terminal {}", node.num_edges, node.terminal));
        }
        let (reward, discount) = tree.reward_discount(index);
        let numbers = [value, reward].into_iter().chain(tree.returns(index).iter().copied()).chain(tree.rewards(index).iter().copied());
        if numbers.into_iter().any(|number| number.abs() > MAX_VALUE) || discount.abs() > 1.0 {
            return Err(format!("values of node {index} are too large"));
        }
        if node.is_chance() && (!W::HAS_CHANCE || index == ROOT) {
            return Err(format!("node {index} is a chance node"));
        }
        for (place, &action) in edges.actions.iter().enumerate() {
            let wrong = |what: &str| Err(format!("action {action} of node {index} {what}"));
            match last_node.get_mut(usize::from(action)).filter(|_| node.is_chance() || usize::from(action) < actions) {
                None => return wrong(&format!("is not below num_actions = {actions}")),
                Some(last) if *last == index => return wrong("is given twice"),
                Some(last) => *last = index,
            }
            let (visits, child) = (edges.visits[place], edges.links[place].child());
            let fits = match place < usize::from(node.opened) {
                // The analysis of a root opens moves that it proves, without a visit.
                true => match child {
                    Some(child) => visits > 0 || tree.node(child).is_exact(),
                    None => visits > 0 && !W::HAS_SLOTS,
                },
                false => visits == 0 && child.is_none(),
            };
            if !fits {
                return wrong("is opened without visits or position, or has them without being opened");
            }
            if visits > MAX_VISITS || edges.sums[place].abs() > max_sum || edges.in_flight.get(place).is_some_and(|&count| count > 0) {
                return wrong("has too many visits, too large values, or leaves in flight");
            }
        }
    }
    Ok(())
}

/// Checks that every position of the tree follows from `root` by the rules of the game.
fn check_moves<G: Analyzed>(tree: &Tree, root: &G, num_actions: usize) -> Result<(), String> {
    let mut legal = Vec::new();
    let mut legal_at = vec![u32::MAX; if G::HAS_CHANCE { MAX_ACTIONS } else { num_actions }];
    let mut stack = vec![(ROOT, root.clone())];
    while let Some((index, state)) = stack.pop() {
        let node = tree.node(index);
        let result = if index == ROOT { None } else { state.outcome_in_search() };
        let to_play = if result.is_some() { owner(state.to_play()) } else { state.to_play() };
        let own = |result: i8| f64::from(if to_play == 0 { result } else { -result });
        if node.to_play != to_play || node.terminal != result.is_some() || result.is_some_and(|result| own(result) != node.raw_value) {
            return Err(format!("node {index} does not follow from the root by the rules of the game"));
        }
        if node.num_edges == 0 {
            continue;
        }
        state.legal_actions(&mut legal);
        legal.iter().for_each(|&action| legal_at[usize::from(action)] = index);
        let edges = tree.edges(node);
        for (place, &action) in edges.actions.iter().enumerate() {
            if legal_at[usize::from(action)] != index {
                return Err(format!("action {action} is not legal at node {index}"));
            }
            if place >= usize::from(node.opened) {
                continue;
            }
            let mut next = state.clone();
            next.play(action);
            match edges.links[place].child() {
                Some(child) => stack.push((child, next)),
                None if next.outcome_in_search().is_some() => return Err(format!("action {action} of node {index} ends the game")),
                None => {}
            }
        }
    }
    Ok(())
}

impl<W: World> Forest<W> {
    /// Returns tree `index` of a forest of one as columns, between two batches.
    ///
    /// # Errors
    /// `Error::Usage` in a batch; `Error::InvalidArgument` if there is no such tree.
    pub fn columns(&self, index: usize) -> Result<(SnapshotColumns, SearchColumns), Error> {
        let search = self.tree(index)?;
        if search.search_state.has_batch() || self.len() != 1 {
            return Err(Error::Usage("a tree is saved between two batches, and alone".into()));
        }
        let (snapshot, mut columns) = search.to_columns(&self.config);
        let (slots, free) = self.slots.to_columns(&snapshot.tree.node_slot);
        columns.counters[4] = slots;
        columns.free_slots = free;
        Ok((snapshot, columns))
    }

    /// Adds the tree of these columns to an empty forest, after `check` of its nodes.
    fn restore_with(
        &mut self,
        snapshot: SnapshotColumns,
        columns: &SearchColumns,
        root: W::State,
        check: impl FnOnce(&Tree) -> Result<(), String>,
    ) -> Result<(), Error> {
        if !self.is_empty() {
            return Err(Error::Usage("a tree is restored in a new forest".into()));
        }
        let slots = match SlotAllocator::from_columns(columns.counters.get(4).copied(), &columns.free_slots, &snapshot.tree.node_slot) {
            Some(slots) => slots,
            None => return refuse("node_slot and free_slots must have every slot once"),
        };
        let search = TreeSearch::from_columns(snapshot, columns, root, &self.config)?;
        check_tree(search.tree(), &self.config).and_then(|()| check(search.tree())).or_else(refuse)?;
        (self.slots, self.trees) = (slots, vec![search]);
        Ok(())
    }
}

impl<G: Analyzed> Forest<Compiled<G>> {
    /// Restores the tree of these columns, whose root is `state`, in an empty forest of the same configuration.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names what is invalid.
    pub fn restore(&mut self, snapshot: SnapshotColumns, columns: &SearchColumns, state: G) -> Result<(), Error> {
        let actions = self.config.num_actions;
        if state.dimensions().num_actions != actions || state.outcome().is_some() {
            return refuse("the root is terminal, or a position of another board");
        }
        let root = state.clone();
        self.restore_with(snapshot, columns, state, |tree| check_moves(tree, &root, actions))
    }
}

impl Forest<PythonGame> {
    /// Restores the tree of these columns in an empty forest of the same configuration; the caller replays and checks the positions.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names what is invalid.
    pub fn restore(&mut self, snapshot: SnapshotColumns, columns: &SearchColumns) -> Result<(), Error> {
        self.restore_with(snapshot, columns, (), |_| Ok(()))
    }
}

impl Forest<Latent> {
    /// Restores the tree of these columns in an empty forest of the same configuration.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names what is invalid.
    pub fn restore(&mut self, snapshot: SnapshotColumns, columns: &SearchColumns) -> Result<(), Error> {
        self.restore_with(snapshot, columns, (), |_| Ok(()))
    }
}
