//! Single steps: one recorded simulation of one tree, in searches with and without a trace.

use super::Forest;
use crate::error::Error;
use crate::games::World;
use crate::search::path::TraceRow;

impl<W: World> Forest<W> {
    /// Lets tree `index` alone run one simulation, and records it. The simulation belongs to a search of `planned` ones: to the one
    /// of as many that is under way, or to a new one.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn begin_step(&mut self, index: usize, planned: u64) -> Result<(), Error> {
        let state = &self.tree(index)?.search_state;
        let is_under_way = state.simulations < state.planned_limit && state.planned_limit - state.limit_start == planned;
        if !is_under_way {
            self.allow(index, planned)?;
        }
        for (other, search) in self.trees.iter_mut().enumerate() {
            search.search_state.simulation_limit = search.search_state.simulations + u64::from(other == index);
        }
        self.config.set_trace(true);
        Ok(())
    }

    /// Ends a step and returns its record; None if it ran no simulation. `keep` keeps it in the trace of a search that has one.
    ///
    /// # Errors
    /// `Error::InvalidArgument` if there is no such tree.
    pub fn end_step(&mut self, index: usize, keep: bool) -> Result<Option<TraceRow>, Error> {
        self.config.set_trace(keep);
        let state = &mut self.tree_mut(index)?.search_state;
        let row = state.trace.last().filter(|row| row.simulation + 1 == state.simulation_limit).cloned();
        state.simulation_limit = state.simulations;
        if !keep {
            state.trace = Vec::new();
        }
        Ok(row)
    }
}
