//! Applying an evaluator's output to a batch: validated as a whole first, so that an invalid one changes nothing.

use std::ops::Range;

use super::Forest;
use crate::error::Error;
use crate::games::World;
use crate::search::config::SearchConfig;
use crate::search::priors::{check_dense, priors, Policy};

impl<W: World> Forest<W> {
    /// Backs up values in `trees`, one per waiting row (for the player to move) or one per row and player, and sets priors. Invalid
    /// output leaves the forest unchanged, batch included.
    ///
    /// # Errors
    /// `Error::Evaluation` names the row; `Error::Usage` if rows wait for `step`.
    pub fn apply(&mut self, trees: Range<usize>, policy: Policy<'_>, values: &[f64]) -> Result<(), Error> {
        self.refuse_unstepped("answer them before apply")?;
        let spread = spread_values(values, &self.waiting_movers(trees.clone()), &self.config)?;
        let priors = if self.config.rule.uses_priors() { self.priors(trees.clone(), policy)? } else { Vec::new() };
        // Split both among the trees, in order.
        let players = self.config.num_players;
        let (mut rows, mut moves) = (spread.as_slice(), priors.as_slice());
        let mut per_tree = Vec::with_capacity(trees.len());
        for tree in &self.trees[trees.clone()] {
            let waiting = tree.search_state.pending.iter().filter(|leaf| leaf.awaits_value()).count();
            let edges: usize = tree.search_state.waiting_nodes().map(|node| usize::from(tree.tree().node(node).num_edges)).sum();
            let (own_rows, other_rows) = rows.split_at(waiting * players);
            let (own_moves, other_moves) = moves.split_at(if moves.is_empty() { 0 } else { edges });
            (rows, moves) = (other_rows, other_moves);
            per_tree.push((own_rows, own_moves));
        }
        self.for_each_short(trees, &per_tree, |search, config, (values, priors)| {
            if !search.search_state.has_batch() {
                return;
            }
            let (tree, state) = search.split_mut();
            state.apply(tree, config, values, priors);
        });
        Ok(())
    }

    /// Returns the player to move at each waiting leaf.
    fn waiting_movers(&self, trees: Range<usize>) -> Vec<u8> {
        let mut movers = Vec::new();
        for tree in &self.trees[trees] {
            for leaf in tree.search_state.pending.iter().filter(|leaf| leaf.awaits_value()) {
                // A compiled position to evaluate may be the end of a playout from the leaf.
                let node = leaf.node.filter(|_| W::HAS_SLOTS);
                movers.push(node.map_or_else(|| W::to_play(&leaf.state), |node| tree.tree().node(node).to_play));
            }
        }
        movers
    }

    /// Returns the priors of the legal moves of all waiting rows, concatenated; empty if uniform.
    fn priors(&self, trees: Range<usize>, policy: Policy<'_>) -> Result<Vec<f32>, Error> {
        let nodes = || {
            self.trees[trees.clone()]
                .iter()
                .flat_map(|tree| tree.search_state.waiting_nodes().map(move |node| tree.tree().edges(tree.tree().node(node))))
        };
        let total: usize = nodes().map(|edges| edges.actions.len()).sum();
        let (rows, actions) = (|| nodes().count(), self.config.num_actions);
        let wrong = |count: usize, right: String| Err(Error::Evaluation(format!("policy_logits has {count} numbers: {right}")));
        match policy {
            Policy::Uniform => return Ok(Vec::new()),
            Policy::Dense(numbers, _) if numbers.len() != rows() * actions => {
                return wrong(numbers.len(), format!("it must have the shape [{}, {actions}]", rows()));
            }
            Policy::Legal(numbers, _) if numbers.len() != total => {
                return wrong(numbers.len(), format!("the rows have {total} legal actions"));
            }
            Policy::Dense(numbers, _) => check_dense(numbers, actions)?,
            Policy::Legal(..) => {}
        }
        let mut out = vec![0.0; total];
        let mut at = 0;
        for (row, edges) in nodes().enumerate() {
            let own = at..at + edges.actions.len();
            at = own.end;
            let written = match policy {
                Policy::Dense(numbers, kind) => {
                    let whole = &numbers[row * actions..(row + 1) * actions];
                    priors(edges.actions.iter().map(|&action| whole[usize::from(action)]), kind, &mut out[own])
                }
                Policy::Legal(numbers, kind) => priors(numbers[own.clone()].iter().copied(), kind, &mut out[own]),
                Policy::Uniform => Ok(()),
            };
            written.map_err(|text| Error::Evaluation(format!("row {row}: {text}")))?;
        }
        Ok(out)
    }
}

/// Expands evaluator values to one number per row and player.
fn spread_values(values: &[f64], movers: &[u8], config: &SearchConfig) -> Result<Vec<f64>, Error> {
    let (rows, players) = (movers.len(), config.num_players);
    let one_will_do = players == 1 || (players == 2 && config.zero_sum);
    let one_each = values.len() == rows && one_will_do;
    if !one_each && values.len() != rows * players {
        let one = if one_will_do { format!("[{rows}] or ") } else { String::new() };
        return Err(Error::Evaluation(format!("values has {} numbers: it must have the shape {one}[{rows}, {players}]", values.len())));
    }
    crate::search::batch::check_values(values)?;
    if !one_each || players == 1 {
        return Ok(values.to_vec());
    }
    let pair = |(&value, &mover): (&f64, &u8)| if mover == 0 { [value, -value] } else { [-value, value] };
    Ok(values.iter().zip(movers).flat_map(pair).collect())
}
