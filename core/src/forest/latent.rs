//! Forests of a learned model: positions are hidden states under slots, and the model's responses are validated first.

use std::sync::{Mutex, PoisonError};

use super::external::check_position;
use super::{chunk_size, threads_for, Forest, Row};
use crate::error::Error;
use crate::games::Latent;
use crate::runtime::parallel_vec::parallel_extend;
use crate::search::config::{WorldConfig, LARGEST_REWARD};
use crate::search::expand_latent::ModelResponse;
use crate::search::priors::{check_logits, priors, PolicyKind};
use crate::search::tree_search::TreeSearch;
use crate::tree::{Tree, ROOT};

/// The root of a tree: the position given by the caller, the model's evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Root<'a> {
    /// The player to move.
    pub to_play: u8,
    /// The legal actions.
    pub legal: &'a [u16],
    /// A logit per action.
    pub logits: &'a [f32],
    /// The value for the player to move.
    pub value: f64,
}

/// Validates a root and creates its tree.
fn root_tree(config: &WorldConfig<Latent>, root: Root<'_>, row: usize, slot: u32) -> Result<Tree, Error> {
    check_root(config, root, row)?;
    let mut tree = Tree::new(config.shape());
    let node = tree.add_node(root.to_play);
    tree.add_edges(node, root.legal);
    let logits = root.legal.iter().map(|&action| root.logits[usize::from(action)]);
    priors(logits, PolicyKind::Logits, tree.priors_mut(node)).map_err(|text| Error::Evaluation(format!("row {row}: {text}")))?;
    tree.node_mut(node).raw_value = root.value;
    tree.set_slot(node, slot);
    tree.root_visits = 1;
    Ok(tree)
}

/// Validates a root.
fn check_root(config: &WorldConfig<Latent>, root: Root<'_>, row: usize) -> Result<(), Error> {
    check_position(config, root.to_play, root.legal, "legal_actions", ": at least one action must be legal")
        .map_err(|text| Error::InvalidArgument(format!("row {row}: {text}")))?;
    let actions = config.num_actions;
    let wrong = |text: String| Err(Error::Evaluation(format!("row {row}: {text}")));
    if root.logits.len() != actions {
        return wrong(format!("policy_logits has {} numbers: it must have {actions}", root.logits.len()));
    }
    check_number(root.value).or_else(|text| wrong(format!("value is {text}")))
}

impl Forest<Latent> {
    /// Plants a tree for each root and key; returns the slots of the roots. If one is invalid, none is planted.
    ///
    /// # Errors
    /// `Error::InvalidArgument` or `Error::Evaluation` name the row.
    pub fn plant_all(&mut self, roots: &[(Root<'_>, u64)]) -> Result<Vec<u32>, Error> {
        let first = self.trees.len();
        let threads = threads_for(roots.len(), 400 + 12 * self.config.num_actions, self.threads);
        let size = chunk_size(roots.len(), threads);
        let slots: Vec<u32> = roots.iter().map(|_| self.slots.allocate()).collect();
        let config = &self.config;
        let wrong: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        parallel_extend(&mut self.trees, roots.len(), (size, threads), |index, (): &mut ()| {
            let (root, key) = roots[index];
            let tree = root_tree(config, root, first + index, slots[index]).unwrap_or_else(|error| {
                let mut earliest = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                if earliest.as_ref().is_none_or(|&(row, _)| index < row) {
                    *earliest = Some((index, error));
                }
                Tree::new(config.shape())
            });
            TreeSearch::new(tree, (), key, 0)
        });
        if let Some((_, error)) = wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.trees.truncate(first);
            self.slots.release(&slots);
            return Err(error);
        }
        Ok(slots)
    }

    /// Replaces tree `index` by one of another root; returns its slot and the released slots.
    ///
    /// # Errors
    /// As `plant`; `Error::InvalidArgument` if there is no such tree.
    pub fn reset(&mut self, index: usize, root: Root<'_>, key: u64) -> Result<(u32, Vec<u32>), Error> {
        let old = self.tree(index)?.shared_tree();
        let mut fresh = root_tree(&self.config, root, index, u32::MAX)?;
        let slot = self.slots.allocate();
        fresh.set_slot(ROOT, slot);
        self.trees[index] = TreeSearch::new(fresh, (), key, 0);
        Ok((slot, self.release_all(&old)))
    }

    /// Plays `action` at the root of tree `index` and keeps the subtrees of the new root's legal moves; its priors and value are new.
    /// Returns the slot of the new root and the released slots.
    ///
    /// # Errors
    /// As `plant`; `Error::InvalidAction` if the root has no such move.
    pub fn advance(&mut self, index: usize, action: u16, root: Root<'_>) -> Result<(u32, Vec<u32>), Error> {
        let tree = self.tree(index)?.tree();
        if !tree.edges(tree.node(ROOT)).actions.contains(&action) {
            return Err(Error::InvalidAction(format!("action {action} is not legal at the root of tree {index}")));
        }
        let mut fresh = root_tree(&self.config, root, index, u32::MAX)?;
        let own = fresh.priors_mut(ROOT).to_vec();
        if self.turn_after(index, action)?.is_some_and(|turn| turn != root.to_play) {
            // The model predicted another player to move: the values of the subtree have the wrong perspective.
            let slot = self.slots.allocate();
            fresh.set_slot(ROOT, slot);
            let search = self.tree_mut(index)?;
            let old = search.shared_tree();
            search.replace_tree(fresh, 0);
            search.search_state.advance_root();
            return Ok((slot, self.release_all(&old)));
        }
        let released = self.advance_with(index, action, Some(root.legal), |_, slots| {
            let slot = slots.allocate();
            fresh.set_slot(ROOT, slot);
            fresh
        })?;
        let (tree, _) = self.tree_mut(index)?.split_mut();
        tree.replace_root_edges(root.legal, &own);
        let node = tree.node_mut(ROOT);
        (node.raw_value, node.to_play) = (root.value, root.to_play);
        Ok((tree.slot(ROOT).unwrap_or(u32::MAX), released))
    }

    /// Returns the player to move after `action` at the root of tree `index`, if the tree has its node.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn turn_after(&self, index: usize, action: u16) -> Result<Option<u8>, Error> {
        let tree = self.tree(index)?.tree();
        let edges = tree.edges(tree.node(ROOT));
        let place = edges.actions.iter().position(|&other| other == action);
        Ok(place.and_then(|place| edges.links[place].child()).map(|child| tree.node(child).to_play))
    }

    /// Gathers the leaves to evaluate, by tree and in gathering order, and allocates their slots.
    ///
    /// # Errors
    /// As `gather`.
    pub fn gather_leaves(&mut self) -> Result<Vec<Row>, Error> {
        self.gather()?;
        Ok(self.waiting_with_slots())
    }

    fn waiting_with_slots(&mut self) -> Vec<Row> {
        let mut rows = Vec::with_capacity(self.trees.len());
        for tree in &mut self.trees {
            for leaf in tree.search_state.pending.iter_mut().filter(|leaf| leaf.slot == u32::MAX) {
                leaf.slot = self.slots.allocate();
            }
        }
        self.each_waiting(|row| rows.push(row));
        rows
    }

    /// Applies the model's response to the gathered rows, in their order. An invalid one leaves the forest unchanged, batch included.
    /// With `gather`, gathers the next leaves in the same pass, while each tree is cached.
    ///
    /// # Errors
    /// `Error::Evaluation` names the row.
    pub fn step_model(&mut self, response: ModelResponse<'_>, gather: bool) -> Result<Vec<Row>, Error> {
        self.check_model(response)?;
        let mut at = 0;
        let mut per_tree = Vec::with_capacity(self.trees.len());
        for tree in &self.trees {
            let end = at + tree.search_state.pending.len();
            per_tree.push(response.rows(at, end, self.config.num_actions));
            at = end;
        }
        self.for_each_short(self.all(), &per_tree, |search, config, response| {
            if search.search_state.has_batch() {
                let (tree, state) = search.split_mut();
                state.apply_model(tree, config, |row| response.row(row, config.num_actions));
                if gather && state.wants_more(tree, config) {
                    state.gather(tree, config, 1);
                }
            }
        });
        Ok(self.waiting_with_slots())
    }

    fn check_model(&self, response: ModelResponse<'_>) -> Result<(), Error> {
        let (rows, actions) = (self.num_waiting(self.all()), self.config.num_actions);
        let lengths = [
            ("reward", response.rewards.len(), rows),
            ("discount", response.discounts.map_or(rows, <[f64]>::len), rows),
            ("policy_logits", response.logits.len(), rows * actions),
            ("value", response.values.len(), rows),
        ];
        if let Some((name, given, right)) = lengths.into_iter().find(|(_, given, right)| given != right) {
            return Err(Error::Evaluation(format!("{name} has {given} numbers: {rows} rows need {right}")));
        }
        for row in 0..rows {
            check_number(response.rewards[row]).map_err(|wrong| row_error("reward", row, &wrong))?;
            check_number(response.values[row]).map_err(|wrong| row_error("value", row, &wrong))?;
            if let Some(discounts) = response.discounts {
                self.check_discount(discounts[row], row)?;
            }
            let logits = &response.logits[row * actions..(row + 1) * actions];
            let (broken, possible) = check_logits(logits);
            if broken {
                let action = logits.iter().position(|logit| logit.is_nan() || *logit == f32::INFINITY).unwrap_or(0);
                let number = python_repr(f64::from(logits[action]));
                return Err(Error::Evaluation(format!(
                    "policy_logits of row {row}, action {action} is {number}: as float32 a logit must be a finite number or -inf"
                )));
            }
            if !possible {
                return Err(Error::Evaluation(format!("row {row}: policy_logits is -inf for every action: at least one must be finite")));
            }
        }
        Ok(())
    }

    fn check_discount(&self, discount: f64, row: usize) -> Result<(), Error> {
        if !(-1.0..=1.0).contains(&discount) {
            return Err(row_error("discount", row, &format!("{}: it must be from -1 to 1", python_repr(discount))));
        }
        if discount < 0.0 && self.config.num_players == 1 {
            return Err(Error::Evaluation(format!(
                "row {row}: discount is {discount}: a negative one changes the player, and num_players is 1"
            )));
        }
        Ok(())
    }
}

/// The error of a number of a row, worded as the checks in Python.
fn row_error(name: &str, row: usize, wrong: &str) -> Error {
    Error::Evaluation(format!("{name} of row {row} is {wrong}"))
}

/// Formats a number as Python does.
fn python_repr(number: f64) -> String {
    if number.is_nan() {
        "nan".into()
    } else {
        format!("{number:?}")
    }
}

/// Validates a reward or value; the error is a message.
pub(super) fn check_number(number: f64) -> Result<(), String> {
    if !number.is_finite() {
        return Err(format!("{}: it must be a finite number", python_repr(number)));
    }
    if number.abs() > LARGEST_REWARD {
        return Err(format!("{}: it may be at most {LARGEST_REWARD:e} in size", python_repr(number)));
    }
    Ok(())
}
