//! Move ordering: killers and history of quiet moves, and the order of a node's edges.
//!
//! An alpha-beta search updates both at cutoffs, which a tree search has not. Here a quiet move raises its history score if a
//! simulation through it brings more than its position's mean value, and becomes a killer once its own mean is higher than that
//! after `killer_visits` visits. Tables change when leaves are applied, in order, and never while they are gathered.

use crate::games::analysis::{MoveHint, MoveOrdering, OrderingContext, Priority};
use crate::games::Action;
use crate::search::path::Step;
use crate::search::score::node_value;
use crate::tree::{NodeIndex, OrderedEdge, Tree, ROOT};

/// Upper bound of the ply of a restored root.
const MAX_PLY: u64 = 1 << 20;

/// Killers and history of one search.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryTable {
    /// Killers by ply from the first root of the tree, the latest first.
    killers: Vec<[Option<Action>; 2]>,
    /// History score of each action, by player; empty before the first update.
    history: [Vec<f64>; 2],
    /// Ply of the current root.
    root_ply: usize,
}

impl HistoryTable {
    /// Returns killers and history for a position `depth` plies below the root where `player` moves.
    pub(crate) fn context(&self, depth: usize, player: u8) -> OrderingContext<'_> {
        let killers = self.killers.get(self.root_ply + depth).copied().unwrap_or_default();
        OrderingContext { killers, history: &self.history[usize::from(player & 1)] }
    }

    /// Updates the table from a simulation that was backed up along `path` with `value` for player 0.
    pub(crate) fn update(&mut self, tree: &Tree, ordering: &MoveOrdering, num_actions: usize, path: &[Step], value: f64) {
        let mut before: Option<Step> = None;
        for (depth, &step) in path.iter().enumerate() {
            let (visits, sum, link) = tree.edge(step.edge);
            let mean = match before {
                None => node_value(tree, tree.node(ROOT)),
                Some(before) => {
                    // The mean of the move that leads here, for the opponent.
                    let (visits, sum, _) = tree.edge(before.edge);
                    -sum / f64::from(visits)
                }
            };
            before = Some(step);
            if ordering.quiet >> link.tag() & 1 == 0 {
                continue;
            }
            let action = tree.action(step.edge);
            if (if step.chooser == 0 { value } else { -value }) > mean {
                let history = &mut self.history[usize::from(step.chooser & 1)];
                if history.is_empty() {
                    history.resize(num_actions, 0.0);
                }
                history[usize::from(action)] += 1.0;
            }
            if visits >= ordering.killer_visits && sum / f64::from(visits) > mean {
                self.add_killer(self.root_ply + depth, action);
            }
        }
    }

    fn add_killer(&mut self, ply: usize, action: Action) {
        if self.killers.len() <= ply {
            self.killers.resize(ply + 1, [None; 2]);
        }
        let killers = &mut self.killers[ply];
        if killers[0] != Some(action) {
            *killers = [Some(action), killers[0]];
        }
    }

    /// Returns the ply of the root, two killers per ply (-1: none), and the history scores of both players.
    pub(crate) fn to_columns(&self) -> (u64, Vec<i32>, [Vec<f64>; 2]) {
        let killers = self.killers.iter().flatten().map(|killer| killer.map_or(-1, i32::from)).collect();
        (self.root_ply as u64, killers, self.history.clone())
    }

    /// Builds the table of these columns; the error is a message.
    pub(crate) fn from_columns(root_ply: u64, killers: &[i32], history: [&[f64]; 2], actions: usize) -> Result<Self, &'static str> {
        if root_ply > MAX_PLY || killers.len() as u64 > 4 * MAX_PLY || !killers.len().is_multiple_of(2) {
            return Err("killers are of more plies than a game has, or not two for each");
        }
        let is_scores = |scores: &[f64]| scores.is_empty() || (scores.len() == actions && scores.iter().all(|score| score.is_finite()));
        if !history.into_iter().all(is_scores) {
            return Err("history must be empty or a finite score for each action");
        }
        let killer = |number: i32| u16::try_from(number).ok();
        Ok(Self {
            killers: killers.chunks_exact(2).map(|pair| [killer(pair[0]), killer(pair[1])]).collect(),
            history: history.map(<[f64]>::to_vec),
            root_ply: root_ply as usize,
        })
    }

    /// Moves the root on by one ply and halves the history scores.
    pub(crate) fn advance(&mut self) {
        self.root_ply += 1;
        self.history.iter_mut().flatten().for_each(|score| *score /= 2.0);
    }
}

/// Orders the edges of a new node that has its priors: by tag, then by prior.
pub(crate) fn order_edges(tree: &mut Tree, ordering: &MoveOrdering, node: NodeIndex, hints: &[MoveHint]) {
    let edges = tree.edges(tree.node(node));
    let of_place = |(place, &action): (usize, &u16)| {
        let hint = hints.get(place).copied().unwrap_or(ordering.default);
        (OrderedEdge { action, prior: edges.priors[place], tag: hint.tag }, hint.weight)
    };
    let mut weighted: Vec<(OrderedEdge, f64)> = edges.actions.iter().enumerate().map(of_place).collect();
    // Stable: ties stay in the order of the game.
    weighted.sort_by(|(a, _), (b, _)| a.tag.cmp(&b.tag).then(b.prior.total_cmp(&a.prior)));
    if ordering.priority == Priority::Prior {
        let total = weighted.iter().fold(0.0, |total, (one, weight)| total + f64::from(one.prior) * weight);
        if total > 0.0 {
            weighted.iter_mut().for_each(|(one, weight)| one.prior = (f64::from(one.prior) * *weight / total) as f32);
        }
    }
    let moves: Vec<OrderedEdge> = weighted.into_iter().map(|(one, _)| one).collect();
    let prefix = match ordering.priority {
        Priority::Strict => moves.len(),
        Priority::Tactical => moves.iter().take_while(|one| ordering.tactical >> one.tag & 1 == 1).count(),
        Priority::Prior => 0,
    };
    tree.order_edges(node, &moves, prefix.min(usize::from(u8::MAX)) as u8);
}
