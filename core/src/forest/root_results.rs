//! Root results of all trees as arrays with one row per tree.

use super::Forest;
use crate::games::World;
use crate::search::root_answer;
use crate::search::tree_search::TreeSearch;
use crate::tree::ROOT;

impl<W: World> Forest<W> {
    /// Returns the action to play in each tree, at a temperature for each (0 if missing).
    #[must_use]
    pub fn actions(&self, temperatures: &[f64]) -> Vec<i64> {
        let mut actions = vec![0; self.len()];
        self.read_each(&mut actions, |index, search, action| {
            let place = self.choose(search, temperatures.get(index).copied().unwrap_or(0.0));
            *action = i64::from(search.tree().edges(search.tree().node(ROOT)).actions[place]);
        });
        actions
    }

    /// Returns the policy of each tree over all actions, [trees, num_actions].
    #[must_use]
    pub fn policies(&self) -> Vec<f64> {
        self.by_action(|search| self.policy(search))
    }

    /// Returns the visits of each action in each tree, [trees, num_actions].
    #[must_use]
    pub fn visits(&self) -> Vec<i64> {
        self.by_action(|search| search.tree().edges(search.tree().node(ROOT)).visits.iter().map(|&visits| i64::from(visits)).collect())
    }

    /// Returns the value of each root for its player to move.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.trees().map(|search| root_answer::value(search.tree())).collect()
    }

    /// Returns the number of actions at each root, these actions, and the policy over them, both concatenated.
    #[must_use]
    pub fn root_policies(&self) -> (Vec<i64>, Vec<u16>, Vec<f64>) {
        let mut policies = vec![Vec::new(); self.len()];
        self.read_each(&mut policies, |_, search, policy| *policy = self.policy(search));
        let actions = self.trees().flat_map(|search| search.tree().edges(search.tree().node(ROOT)).actions.iter().copied()).collect();
        let counts = policies.iter().map(|policy| policy.len() as i64).collect();
        (counts, actions, policies.concat())
    }

    fn choose(&self, search: &TreeSearch<W>, temperature: f64) -> usize {
        let (state, gumbel_policy) = (&search.search_state, search.gumbel_policy(&self.config));
        root_answer::choose(search.tree(), temperature, state.key, state.simulations, &[], gumbel_policy.as_ref())
    }

    fn policy(&self, search: &TreeSearch<W>) -> Vec<f64> {
        root_answer::policy(search.tree(), 1.0, self.choose(search, 0.0), search.gumbel_policy(&self.config).as_ref())
    }

    /// Scatters numbers of the root's edges by action.
    fn by_action<T: Clone + Default + Send>(&self, numbers: impl Fn(&TreeSearch<W>) -> Vec<T> + Sync) -> Vec<T> {
        let actions = self.config.num_actions;
        let mut rows = vec![T::default(); self.len() * actions];
        let mut places: Vec<&mut [T]> = rows.chunks_exact_mut(actions).collect();
        self.read_each(&mut places, |_, search, row| {
            for (&action, number) in search.tree().edges(search.tree().node(ROOT)).actions.iter().zip(numbers(search)) {
                row[usize::from(action)] = number;
            }
        });
        rows
    }
}
