//! Forests of games written in Python: positions are slots, and their steps are validated before they are stored.

use super::Forest;
use crate::error::Error;
use crate::forest::rows::{Row, SlotAllocator};
use crate::games::PythonGame;
use crate::search::batch::{check_values, StepResult};
use crate::search::chance;
use crate::search::config::{SearchConfig, WorldConfig, LARGEST_REWARD};
use crate::search::tree_search::TreeSearch;
use crate::tree::{Tree, CHANCE, ROOT};

/// Creates a tree that consists of its root, at a chance node with these probabilities.
fn root_tree(config: &WorldConfig<PythonGame>, slot: u32, to_play: u8, legal: &[u16], probabilities: &[f64]) -> Tree {
    let mut tree = Tree::new(config.shape());
    let root = tree.add_node(to_play);
    if to_play == CHANCE {
        chance::add_outcomes(&mut tree, root, legal, probabilities.iter().copied());
    } else {
        tree.add_edges(root, legal);
    }
    tree.set_slot(root, slot);
    tree
}

/// Checks the player to move and the legal actions, which the caller knows as `name`, of a position that is not terminal.
pub(super) fn check_position(config: &SearchConfig, to_play: u8, legal: &[u16], name: &str, if_empty: &str) -> Result<(), String> {
    if usize::from(to_play) >= config.num_players {
        return Err(format!("to_play is {to_play}: it must be from 0 to {}", config.num_players - 1));
    }
    if legal.is_empty() {
        return Err(format!("{name} is empty{if_empty}"));
    }
    if let Some(action) = legal.iter().find(|&&action| usize::from(action) >= config.num_actions) {
        return Err(format!("{name} has {action}: actions must be below num_actions = {}", config.num_actions));
    }
    if !legal.is_sorted_by(|first, second| first < second) {
        let mut sorted = legal.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{name} has {} twice", pair[0]));
        }
    }
    Ok(())
}

impl Forest<PythonGame> {
    /// Plants a tree for an external position; returns its slot.
    ///
    /// # Errors
    /// `Error::GameContract` if `legal` is not a set of actions.
    pub fn plant(&mut self, to_play: u8, legal: &[u16], key: u64) -> Result<u32, Error> {
        let tree = self.checked_tree(to_play, legal, &[])?;
        self.trees.push(TreeSearch::new(tree, (), key, self.config.forced_depth));
        self.root_slot(self.trees.len() - 1)
    }

    fn checked_tree(&mut self, to_play: u8, legal: &[u16], probabilities: &[f64]) -> Result<Tree, Error> {
        let checked = self.check_position(to_play, legal, probabilities);
        checked.map_err(|text| Error::GameContract(format!("at the root {text}")))?;
        Ok(root_tree(&self.config, self.slots.allocate(), to_play, legal, probabilities))
    }

    fn check_position(&self, to_play: u8, legal: &[u16], probabilities: &[f64]) -> Result<(), String> {
        if to_play == CHANCE {
            return chance::check_outcomes(legal, probabilities);
        }
        check_position(&self.config, to_play, legal, "legal_actions()", " although the game is not over")
    }

    /// Replaces tree `index` by one of another position, which may be a chance node with `probabilities`; returns its slot and the
    /// released slots.
    ///
    /// # Errors
    /// As `plant`; `Error::InvalidArgument` if there is no such tree.
    pub fn reset(&mut self, index: usize, to_play: u8, legal: &[u16], probabilities: &[f64], key: u64) -> Result<(u32, Vec<u32>), Error> {
        let old = self.tree(index)?.shared_tree();
        let tree = self.checked_tree(to_play, legal, probabilities)?;
        self.trees[index] = TreeSearch::new(tree, (), key, self.config.forced_depth);
        Ok((self.root_slot(index)?, self.release_all(&old)))
    }

    /// Returns the slot of the root of tree `index`.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn root_slot(&self, index: usize) -> Result<u32, Error> {
        Ok(self.tree(index)?.tree().slot(ROOT).unwrap_or(u32::MAX))
    }

    /// Plays `action` at the root of tree `index`; without a subtree, plants a tree from `to_play` and `legal`, at a chance node with
    /// `probabilities`. Returns the slot of the new root and the released slots.
    ///
    /// # Errors
    /// As `plant`; `Error::InvalidAction` if the root has no such move.
    pub fn advance(
        &mut self,
        index: usize,
        action: u16,
        to_play: u8,
        legal: &[u16],
        probabilities: &[f64],
    ) -> Result<(u32, Vec<u32>), Error> {
        let tree = self.tree(index)?.tree();
        if !tree.edges(tree.node(ROOT)).actions.contains(&action) {
            return Err(Error::InvalidAction(format!("action {action} is not legal at the root of tree {index}")));
        }
        let checked = self.check_position(to_play, legal, probabilities);
        checked.map_err(|text| Error::GameContract(format!("after action {action} {text}")))?;
        let plant = |config: &_, slots: &mut SlotAllocator| root_tree(config, slots.allocate(), to_play, legal, probabilities);
        let released = self.advance_with(index, action, None, plant)?;
        Ok((self.root_slot(index)?, released))
    }

    /// Returns the next row to step, gathering leaves if none is left; None if the batch has no more.
    ///
    /// # Errors
    /// As `gather`.
    pub fn next_row(&mut self) -> Result<Option<Row>, Error> {
        Ok(self.next_rows()?.first().copied())
    }

    /// Returns all rows to step before leaves are gathered again, gathering leaves if none is left; none if the batch has no more.
    ///
    /// # Errors
    /// As `gather`.
    pub fn next_rows(&mut self) -> Result<&[Row], Error> {
        if self.stepped == self.rows.len() && (!self.has_batch() || self.batch_can_grow()) {
            self.gather()?;
        }
        Ok(&self.rows[self.stepped..])
    }

    /// Stores the step of the row that `next_row` returned. An invalid step leaves the forest unchanged.
    ///
    /// # Errors
    /// `Error::GameContract` names the row; `Error::Usage` if no row waits.
    pub fn step(&mut self, result: &StepResult<'_>) -> Result<(), Error> {
        let Some(row) = self.rows.get(self.stepped) else {
            return Err(Error::Usage("no row waits for step".into()));
        };
        self.check_step(result).map_err(|text| Error::GameContract(format!("row {}: {text}", self.stepped)))?;
        let (tree, state) = self.trees[row.tree as usize].split_mut();
        state.step(tree, &self.config, *result);
        self.stepped += 1;
        Ok(())
    }

    fn check_step(&self, result: &StepResult<'_>) -> Result<(), String> {
        let players = self.config.num_players;
        let finite = |name: &str, numbers: &[f64]| {
            if numbers.len() != players {
                return Err(format!("{name} has {} numbers: one for each of the {players} players is right", numbers.len()));
            }
            match numbers.iter().find(|number| !number.is_finite()) {
                Some(number) => Err(format!("{name} has {number}: every number must be finite")),
                None => Ok(()),
            }
        };
        if self.config.has_rewards {
            finite("rewards()", result.rewards)?;
            if let Some(reward) = result.rewards.iter().find(|reward| reward.abs() > LARGEST_REWARD) {
                return Err(format!("rewards() has {reward:?}: a reward may be at most {LARGEST_REWARD:e} in size"));
            }
        }
        let Some(returns) = result.returns else {
            self.check_position(result.to_play, result.legal, result.probabilities)?;
            if result.values.is_empty() {
                return Ok(());
            }
            finite("the result of a playout", result.values)?;
            return match self.config.has_rewards {
                true => check_values(result.values).map_err(|error| error.to_string()),
                false => self.check_returns(result.values),
            };
        };
        finite("returns()", returns)?;
        if usize::from(result.to_play) >= players {
            return Err(format!("to_play is {}: it must be from 0 to {}", result.to_play, players - 1));
        }
        self.check_returns(returns)
    }

    /// Checks the results of a finished game, or of a playout.
    fn check_returns(&self, returns: &[f64]) -> Result<(), String> {
        if let Some(wrong) = returns.iter().find(|number| number.abs() > 1.0) {
            return Err(format!("returns() has {wrong}: results are from -1 to 1 (a game of points pays them by rewards())"));
        }
        let sum: f64 = returns.iter().sum();
        if self.config.zero_sum && !self.config.has_rewards && sum.abs() > 1e-9 {
            return Err(format!(
                "returns() is {returns:?}, which sums to {sum}: a zero-sum game's sum to 0 (set zero_sum = False if this one is not)"
            ));
        }
        Ok(())
    }
}
