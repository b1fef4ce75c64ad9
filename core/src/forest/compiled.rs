//! Forests of compiled games: the engine holds the states.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{chunk_size, threads_for, Forest};
use crate::error::Error;
use crate::games::analysis::Analyzed;
use crate::games::{Action, Compiled, Game};
use crate::runtime::parallel_vec::parallel_extend;
use crate::runtime::thread_pool::parallel_for;
use crate::search::config::WorldConfig;
use crate::search::expand;
use crate::search::tree_search::TreeSearch;
use crate::tree::{Tree, ROOT};

/// Returns `Error::InvalidArgument` for a state of other dimensions than the search's.
fn check_dimensions<G: Game>(state: &G, num_actions: usize) -> Result<(), Error> {
    let found = state.dimensions().num_actions;
    if found != num_actions {
        return Err(Error::InvalidArgument(format!("a state has {found} actions, but the states of this search have {num_actions}")));
    }
    Ok(())
}

const OVER: &str = "the game is over in this state: there is nothing to search";

/// Creates the tree of a nonterminal `state`, restricted to the legal moves in `among` if given.
fn fresh<G: Analyzed>(config: &WorldConfig<Compiled<G>>, state: &G, legal: &mut Vec<Action>, among: Option<&[Action]>) -> Tree {
    let mut tree = Tree::new(config.shape());
    expand::root::<Compiled<G>>(&mut tree, config, state, legal, among);
    tree
}

impl<G: Analyzed> Forest<Compiled<G>> {
    /// Plants a tree for each state and key. If one is refused, those before it are planted. `among` is empty or has the root actions of
    /// each tree, None for all; a restricted root is not analyzed, since a proof may begin with another move.
    ///
    /// # Errors
    /// `Error::GameOver` if the game is over in one; `Error::InvalidAction` where none of the actions is legal;
    /// `Error::InvalidArgument` if one has another number of actions than the search.
    pub fn plant_all(&mut self, states: Vec<(G, u64)>, among: &[Option<Vec<Action>>]) -> Result<(), Error> {
        states.iter().try_for_each(|(state, _)| check_dimensions(state, self.config.num_actions))?;
        let has_none = |(actions, (state, _)): (&Option<Vec<Action>>, &(G, u64))| {
            actions.as_ref().is_some_and(|actions| !actions.iter().any(|&action| state.is_legal(action)))
        };
        if let Some(index) = among.iter().zip(&states).position(has_none) {
            return Err(Error::InvalidAction(format!("none of the root's actions of state {index} is legal")));
        }
        let among = |index: usize| among.get(index).and_then(Option::as_deref);
        // Games with many actions have large positions.
        let threads = threads_for(states.len(), 400 + 4 * self.config.num_actions, self.threads);
        let size = chunk_size(states.len(), threads);
        let first_refused = AtomicUsize::new(states.len());
        parallel_for(threads, states.chunks(size).enumerate(), |(chunk, states)| {
            if let Some(place) = states.iter().position(|(state, _)| state.outcome().is_some()) {
                first_refused.fetch_min(chunk * size + place, Ordering::Relaxed);
            }
        });
        let count = first_refused.into_inner();
        let Self { trees, config, .. } = self;
        parallel_extend(trees, count, (size, threads), |index, legal| {
            let (state, key) = &states[index];
            let mut search = TreeSearch::new(fresh(config, state, legal, among(index)), state.clone(), *key, config.forced_depth);
            search.search_state.root_analyzed = among(index).is_some();
            search
        });
        if count < states.len() {
            return Err(Error::GameOver(OVER.into()));
        }
        Ok(())
    }

    fn fresh(&self, state: &G) -> Result<Tree, Error> {
        check_dimensions(state, self.config.num_actions)?;
        if state.outcome().is_some() {
            return Err(Error::GameOver(OVER.into()));
        }
        Ok(fresh(&self.config, state, &mut Vec::new(), None))
    }

    /// Replaces tree `index` by one of `state`, with a new key.
    ///
    /// # Errors
    /// `Error::GameOver` if the game is over there; `Error::InvalidArgument` if there is no such tree.
    pub fn reset(&mut self, index: usize, state: G, key: u64) -> Result<(), Error> {
        let (tree, forced_depth) = (self.fresh(&state)?, self.config.forced_depth);
        *self.tree_mut(index)? = TreeSearch::new(tree, state, key, forced_depth);
        Ok(())
    }

    /// Plays `action` at the root of tree `index` and keeps its subtree.
    ///
    /// # Errors
    /// `Error::InvalidAction` if it is not legal there, `Error::GameOver` if it ends the game.
    pub fn advance(&mut self, index: usize, action: u16) -> Result<(), Error> {
        let mut next = self.tree(index)?.search_state.root.clone();
        if !next.is_legal(action) {
            return Err(Error::InvalidAction(format!("action {action} is not legal at the root of tree {index}")));
        }
        next.play(action);
        let fresh = self.fresh(&next)?;
        self.advance_with(index, action, None, |_, _| fresh)?;
        self.tree_mut(index)?.search_state.root = next;
        Ok(())
    }

    /// Restricts the root of tree `index` to `actions` until it is advanced or reset; their subtrees stay.
    ///
    /// # Errors
    /// `Error::InvalidAction` if none of them is among the root's moves, `Error::Usage` before it has priors, or in a batch.
    pub fn restrict(&mut self, index: usize, actions: &[u16]) -> Result<(), Error> {
        let search = self.tree_mut(index)?;
        if search.search_state.has_batch() || search.tree().root_visits == 0 {
            return Err(Error::Usage("the moves of a root are restricted when it has its priors, between two batches".into()));
        }
        let tree = search.tree();
        if !tree.edges(tree.node(ROOT)).actions.iter().any(|action| actions.contains(action)) {
            return Err(Error::InvalidAction(format!("none of the actions {actions:?} is a move at the root of tree {index}")));
        }
        search.restrict_root(actions);
        Ok(())
    }

    /// Skips the analysis of tree `index`'s root, which takes time.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn skip_root_analysis(&mut self, index: usize) -> Result<(), Error> {
        self.tree_mut(index)?.search_state.root_analyzed = true;
        Ok(())
    }

    /// Returns the position of each waiting leaf, in the order of `waiting`.
    pub fn waiting_states(&self) -> Vec<&G> {
        let leaves = self.trees.iter().flat_map(|tree| tree.search_state.pending.iter().filter(|leaf| leaf.awaits_value()));
        leaves.map(|leaf| &leaf.state).collect()
    }
}
