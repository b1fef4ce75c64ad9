//! What a search learns of quiet moves while it runs (seed 4): killers by ply, and a history by player and action.
//!
//! An alpha-beta search learns from cutoffs; a tree search has none. Cursor a quiet move was good if a simulation through it
//! brought more than its position is worth on average (history), and is a killer once its own mean is higher than that after
//! a few visits. Everything changes when leaves are applied, in their order, and never while they are gathered.

use crate::games::analysis::{Knowledge, OrderingContext};
use crate::games::Action;
use crate::search::backup::Step;
use crate::tree::{Tree, ROOT};

/// Killers and history of one search.
#[derive(Clone, Debug, Default)]
pub struct HistoryTable {
    /// By ply from the first root of the tree: the latest first.
    killers: Vec<[Option<Action>; 2]>,
    /// By player: a score for each action, once there is one.
    history: [Vec<f64>; 2],
    /// The ply of the present root.
    root_ply: usize,
}

impl HistoryTable {
    /// What a position `depth` plies below the root, where `player` moves, is told.
    #[must_use]
    pub fn at(&self, depth: usize, player: u8) -> OrderingContext<'_> {
        let killers = self.killers.get(self.root_ply + depth).copied().unwrap_or_default();
        OrderingContext { killers, history: &self.history[usize::from(player & 1)] }
    }

    /// Learns from a simulation along `path` that brought `value` to player 0, after it was backed up.
    pub fn update(&mut self, tree: &Tree, knowledge: &Knowledge, num_actions: usize, path: &[Step], value: f64) {
        let mut before: Option<Step> = None;
        for (depth, &step) in path.iter().enumerate() {
            let (visits, sum, link) = tree.edge(step.edge);
            let mean = match before {
                None => mean_of_root(tree),
                Some(before) => {
                    // What the move that leads here is worth, seen from the other side.
                    let (visits, sum, _) = tree.edge(before.edge);
                    -sum / f64::from(visits)
                }
            };
            before = Some(step);
            if !is_quiet(link.tag()) {
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
            if visits >= knowledge.killer_visits && sum / f64::from(visits) > mean {
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

    /// The root has moved on by a ply: what is old fades.
    pub fn advance(&mut self) {
        self.root_ply += 1;
        self.history.iter_mut().flatten().for_each(|score| *score /= 2.0);
    }
}

/// Neither a mate, nor a queen, nor a capture: killers, checks, and the rest.
fn is_quiet(category: u8) -> bool {
    matches!(category, 3 | 4 | 6 | 7 | 8)
}

/// What the root is worth to the player to move there, by its evaluation and its moves.
fn mean_of_root(tree: &Tree) -> f64 {
    let edges = tree.edges(tree.node(ROOT));
    let sum = edges.sums.iter().fold(0.0, |sum, value| sum + value);
    let visits: u32 = edges.visits.iter().sum();
    (tree.node(ROOT).raw + sum) / (1.0 + f64::from(visits))
}
