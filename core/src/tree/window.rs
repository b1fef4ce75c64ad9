//! A bounded part of a tree for display: the most visited positions, whatever the size of the tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{NodeIndex, Tree, ROOT};

/// What a window shows.
#[derive(Clone, Debug, Default)]
pub struct WindowOptions {
    /// Upper bound of the rows.
    pub max_rows: usize,
    /// Positions with fewer visits are left out, except children of `opened` nodes.
    pub min_visits: u32,
    /// Nodes whose children are shown before others, however few visits they have.
    pub opened: Vec<NodeIndex>,
    /// Nodes whose children are not shown.
    pub closed: Vec<NodeIndex>,
    /// The principal variation.
    pub line: Vec<u16>,
    /// Whether the principal variation is shown in any case.
    pub follow: bool,
}

/// A position in a window: the root, or an opened edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowRow {
    /// The row of the parent, an earlier one; 0 for the root.
    pub parent: u32,
    /// The place of the edge in its parent node.
    pub place: u16,
    /// The node; none for a leaf that has no node yet.
    pub node: Option<NodeIndex>,
    /// Opened edges of the node that are not in the window.
    pub hidden: u32,
    /// Whether the principal variation leads here.
    pub is_on_line: bool,
}

/// An edge that may become a row; the highest comes first: by class (2: of the principal variation, 1: below an opened node) and
/// visits, then earlier rows, then earlier places.
type Candidate = (u64, Reverse<(u32, u16)>);

impl Tree {
    /// Returns the most visited positions, parents before children; the first row is the root. O(edges of the shown nodes).
    #[must_use]
    pub fn window(&self, options: &WindowOptions) -> Vec<WindowRow> {
        let mut rows = vec![WindowRow { parent: 0, place: 0, node: Some(ROOT), hidden: 0, is_on_line: true }];
        let mut depths = vec![0];
        let mut queue = BinaryHeap::new();
        // Candidates below this one cannot become rows any more.
        let mut least: Option<Candidate> = None;
        let mut next = 0;
        loop {
            if let Some(node) = rows[next].node {
                let (header, edges) = (self.node(node), self.edges(self.node(node)));
                let (is_opened, is_closed) = (options.opened.contains(&node), options.closed.contains(&node));
                let follows = options.line.get(depths[next]).filter(|_| rows[next].is_on_line && options.follow);
                rows[next].hidden = u32::from(header.opened);
                for place in 0..usize::from(header.opened).min(edges.visits.len()) {
                    let (visits, is_on_line) = (edges.visits[place], follows == Some(&edges.actions[place]));
                    if is_on_line || !is_closed && (is_opened || visits >= options.min_visits.max(1)) {
                        let class = if is_on_line { 2 } else { u64::from(is_opened) };
                        let candidate = (class << 32 | u64::from(visits), Reverse((next as u32, place as u16)));
                        if least.is_none_or(|least| candidate > least) {
                            queue.push(candidate);
                        }
                    }
                }
            }
            if queue.len() > 2 * options.max_rows {
                let mut all = queue.into_vec();
                let (_, &mut last, _) = all.select_nth_unstable_by_key(options.max_rows, |&candidate| Reverse(candidate));
                all.truncate(options.max_rows);
                (least, queue) = (Some(last), all.into());
            }
            let Some(best) = queue.pop().filter(|_| rows.len() < options.max_rows) else { return rows };
            let (_, Reverse((parent, place))) = best;
            let above = rows[parent as usize];
            let node = above.node.unwrap_or(ROOT);
            let edges = self.edges(self.node(node));
            let depth = depths[parent as usize];
            let is_on_line = above.is_on_line && options.line.get(depth) == Some(&edges.actions[usize::from(place)]);
            rows[parent as usize].hidden -= 1;
            rows.push(WindowRow { parent, place, node: edges.links[usize::from(place)].child(), hidden: 0, is_on_line });
            depths.push(depth + 1);
            next += 1;
        }
    }
}
