//! The columns of a window of a tree.

use numpy::{Element, PyArray1};
use pondertree_core::{node_sum, Edges, Node, Tree, WindowOptions, WindowRow, ROOT, UNPROVEN};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A row with its edge and its node.
struct Shown<'a> {
    row: WindowRow,
    /// The parent node and its edges; none for the root.
    above: Option<(&'a Node, Edges<'a>)>,
    node: Option<&'a Node>,
}

impl Shown<'_> {
    /// Returns a number of the edge; of the root its own.
    fn edge<T>(&self, of_edge: impl Fn(&Edges<'_>, usize) -> T, of_root: impl Fn() -> T) -> T {
        self.above.as_ref().map_or_else(of_root, |(_, edges)| of_edge(edges, usize::from(self.row.place)))
    }
}

/// Returns the columns of a window by name, one entry per row: the row of the parent (-1: the root) and the node (-1: none); action,
/// visits, sum, prior and proven result (2: none) of the edge, and its chooser (at the root: the player to move; player 0 for chance); whether the node is
/// terminal; the hidden edges, and whether the principal variation leads there.
pub fn columns<'py>(py: Python<'py>, tree: &Tree, options: &WindowOptions) -> PyResult<Bound<'py, PyDict>> {
    let rows = py.detach(|| tree.window(options));
    let shown = |(place, &row): (usize, &WindowRow)| {
        let parent = rows[row.parent as usize].node.filter(|_| place > 0).map(|node| tree.node(node));
        Shown { row, above: parent.map(|parent| (parent, tree.edges(parent))), node: row.node.map(|node| tree.node(node)) }
    };
    let shown: Vec<Shown<'_>> = rows.iter().enumerate().map(shown).collect();
    let root = tree.node(ROOT);
    let chooser = |one: &Shown<'_>| one.above.as_ref().map_or(root.owner(), |(parent, _)| parent.owner());
    let root_sum = || node_sum(tree, root, tree.root_visits);
    let columns = PyDict::new(py);
    add(&columns, "parent", &shown, |one| one.above.as_ref().map_or(-1, |_| i64::from(one.row.parent)))?;
    add(&columns, "node", &shown, |one| one.row.node.map_or(-1, i64::from))?;
    add(&columns, "action", &shown, |one| one.edge(|edges, place| edges.actions[place], || 0))?;
    add(&columns, "visits", &shown, |one| one.edge(|edges, place| edges.visits[place], || tree.root_visits))?;
    add(&columns, "sum", &shown, |one| one.edge(|edges, place| edges.sums[place], root_sum))?;
    add(&columns, "prior", &shown, |one| one.edge(|edges, place| edges.priors[place], || 1.0))?;
    add(&columns, "proven", &shown, |one| one.edge(|edges, place| edges.links[place].proven().unwrap_or(UNPROVEN), || root.proven))?;
    add(&columns, "chooser", &shown, chooser)?;
    add(&columns, "terminal", &shown, |one| one.node.is_some_and(|node| node.terminal))?;
    add(&columns, "hidden", &shown, |one| one.row.hidden)?;
    add(&columns, "on_line", &shown, |one| one.row.is_on_line)?;
    Ok(columns)
}

fn add<T: Element>(columns: &Bound<'_, PyDict>, name: &str, shown: &[Shown<'_>], of: impl Fn(&Shown<'_>) -> T) -> PyResult<()> {
    columns.set_item(name, PyArray1::from_iter(columns.py(), shown.iter().map(of)))
}
