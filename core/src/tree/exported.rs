//! A tree as plain columns with one entry per node or edge: the format of pickles and files.
//!
//! Nodes are in arena order: the root first, a child behind its parent. Edges are grouped by node in the same order, opened edges
//! first. Derived fields are omitted.

use super::columns::{Columns, RewardDiscount};
use super::node::UNKNOWN;
use super::{Backup, Link, Node, Shape, Tree, CHANCE, ROOT, UNPROVEN};
use crate::error::Error;

/// Calls `$then!` with the columns of a tree: documentation, name, name in files, type, and entries per node or edge.
#[macro_export]
macro_rules! tree_columns {
    ($then:ident) => {
        $then! {
            nodes {
                /// The value of each node for the player to move.
                node_value "node_value": f64 = |_| 1,
                /// Number of edges.
                node_edges "node_edges": u16 = |_| 1,
                /// Number of opened edges.
                node_opened "node_opened": u16 = |_| 1,
                /// Number of edges that are opened in stored order before edges are scored.
                node_ordered_prefix "node_eager": u8 = |_| 1,
                /// Player to move, or 255 for chance.
                node_to_play "node_to_play": u8 = |_| 1,
                /// 1 if terminal.
                node_end "node_end": u8 = |_| 1,
                /// The proven result for the player to move, or 2.
                node_proven "node_proven": i8 = |_| 1,
                /// Plies to the end of the game where a result is proven.
                node_distance "node_distance": u16 = |_| 1,
                /// The slot of each node, `u32::MAX` without one.
                node_slot "node_slot": u32 = |shape| usize::from(shape.slots),
                /// Rewards of the move to each node.
                node_rewards "node_rewards": f64 = |shape| shape.reward_width,
                /// The values of each node per player.
                node_values "node_values": f64 = |shape| usize::from(shape.player_values) * shape.players,
                /// Reward of the move to each node (learned models).
                node_reward "node_reward": f64 = |shape| usize::from(shape.model_columns),
                /// Discount of its value (learned models).
                node_discount "node_discount": f64 = |shape| usize::from(shape.model_columns),
                /// Prior mass of the actions without an edge (learned models).
                node_tail "node_tail": f32 = |shape| usize::from(shape.model_columns),
            }
            edges {
                /// Action of each edge.
                edge_action "edge_action": u16 = |_| 1,
                /// N.
                edge_visits "edge_visits": u32 = |_| 1,
                /// W for the chooser.
                edge_value "edge_value": f64 = |_| 1,
                /// P.
                edge_prior "edge_prior": f32 = |_| 1,
                /// Child node, or -1.
                edge_child "edge_child": i32 = |_| 1,
                /// The proven result for the chooser, or 2.
                edge_proven "edge_proven": i8 = |_| 1,
                /// Tag.
                edge_tag "edge_category": u8 = |_| 1,
                /// Leaves in flight.
                edge_in_flight "edge_in_flight": u16 = |shape| usize::from(shape.count_in_flight),
            }
        }
    };
}

macro_rules! declare {
    (
        nodes { $($(#[$node_doc:meta])* $node:ident $node_name:literal: $node_type:ty = $node_width:expr,)* }
        edges { $($(#[$edge_doc:meta])* $edge:ident $edge_name:literal: $edge_type:ty = $edge_width:expr,)* }
    ) => {
        /// A tree as columns. `num_nodes` is the length of `node_value`, the number of edges that of `edge_action`.
        #[derive(Clone, Debug)]
        pub struct TreeColumns {
            /// What the tree stores.
            pub shape: Shape,
            /// N of the root.
            pub root_visits: u32,
            /// The root and every opened edge.
            pub positions: u32,
            $($(#[$node_doc])* pub $node: Vec<$node_type>,)*
            $($(#[$edge_doc])* pub $edge: Vec<$edge_type>,)*
        }

        impl TreeColumns {
            /// Checks that lengths fit and all numbers are finite.
            fn check_numbers(&self) -> Result<(), String> {
                let (nodes, edges) = (self.node_value.len(), self.edge_action.len());
                let check = |name: &str, length: usize, right: usize| match length == right {
                    true => Ok(()),
                    false => Err(format!("{name} has {length} entries: there must be {right}")),
                };
                let each = |width: fn(Shape) -> usize| width(self.shape);
                $(check($node_name, self.$node.len(), nodes * each($node_width))?;)*
                $(check($edge_name, self.$edge.len(), edges * each($edge_width))?;)*
                $(check_each($node_name, &self.$node, |number| (number as f64).is_finite())?;)*
                $(check_each($edge_name, &self.$edge, |number| (number as f64).is_finite())?;)*
                check("edge_action", edges, self.node_edges.iter().map(|&count| usize::from(count)).sum())
            }
        }
    };
}

tree_columns!(declare);

impl Tree {
    /// Returns the tree as columns.
    #[must_use]
    pub fn to_columns(&self) -> TreeColumns {
        let nodes: Vec<Node> = self.indices().map(|index| *self.node(index)).collect();
        let edges = || nodes.iter().map(|node| self.edges(node));
        let columns = &self.columns;
        TreeColumns {
            shape: self.shape,
            root_visits: self.root_visits,
            positions: self.positions,
            node_value: nodes.iter().map(|node| node.raw_value).collect(),
            node_edges: nodes.iter().map(|node| node.num_edges).collect(),
            // A node proven by its analysis has lost its edges.
            node_opened: nodes.iter().map(|node| node.opened.min(node.num_edges)).collect(),
            node_ordered_prefix: nodes.iter().map(|node| u16::from(node.ordered_prefix).min(node.num_edges) as u8).collect(),
            node_to_play: nodes.iter().map(|node| node.to_play).collect(),
            node_end: nodes.iter().map(|node| u8::from(node.terminal)).collect(),
            node_proven: nodes.iter().map(|node| node.proven).collect(),
            node_distance: nodes.iter().map(|node| node.distance).collect(),
            node_slot: columns.slots.clone(),
            node_rewards: columns.rewards.clone(),
            node_values: columns.returns.clone(),
            node_reward: columns.reward_discounts.iter().map(|both| both.reward).collect(),
            node_discount: columns.reward_discounts.iter().map(|both| both.discount).collect(),
            node_tail: columns.pruned_prior_mass.clone(),
            edge_action: edges().flat_map(|edges| edges.actions).copied().collect(),
            edge_visits: edges().flat_map(|edges| edges.visits).copied().collect(),
            edge_value: edges().flat_map(|edges| edges.sums).copied().collect(),
            edge_prior: edges().flat_map(|edges| edges.priors).copied().collect(),
            edge_child: edges().flat_map(|edges| edges.links).map(|link| link.child().map_or(-1, |child| child as i32)).collect(),
            edge_proven: edges().flat_map(|edges| edges.links).map(|link| link.proven().unwrap_or(UNPROVEN)).collect(),
            edge_tag: edges().flat_map(|edges| edges.links).map(|link| link.tag()).collect(),
            edge_in_flight: edges().flat_map(|edges| edges.in_flight).copied().collect(),
        }
    }

    /// Builds the tree of these columns.
    ///
    /// # Errors
    /// `Error::InvalidArgument` names the first invalid column.
    pub fn from_columns(columns: &TreeColumns) -> Result<Self, Error> {
        columns.check().map_err(|text| Error::InvalidArgument(format!("these are not the columns of a tree: {text}")))?;
        let shape = columns.shape;
        let mut tree = Self::new(shape);
        let mut first = 0;
        for (index, &count) in columns.node_edges.iter().enumerate() {
            let edges = first..first + usize::from(count);
            let node = tree.add_node(columns.node_to_play[index]);
            tree.add_edges(node, &columns.edge_action[edges.clone()]);
            tree.priors_mut(node).copy_from_slice(&columns.edge_prior[edges.clone()]);
            let header = tree.node_mut(node);
            (header.raw_value, header.terminal, header.proven) =
                (columns.node_value[index], columns.node_end[index] == 1, columns.node_proven[index]);
            (header.distance, header.opened, header.ordered_prefix) =
                (columns.node_distance[index], columns.node_opened[index], columns.node_ordered_prefix[index]);
            header.has_proven_edge = columns.edge_proven[edges.clone()].iter().any(|&proven| proven != UNPROVEN);
            header.max_untried_prior = UNKNOWN;
            let header = *header;
            for (place, at) in edges.clone().enumerate() {
                let mut link = Link::NONE.with_tag(columns.edge_tag[at]);
                if let Ok(child) = u32::try_from(columns.edge_child[at]) {
                    link = link.with_child(child);
                }
                if columns.edge_proven[at] != UNPROVEN {
                    link = link.with_proven(columns.edge_proven[at]);
                }
                let edge = header.edge(place);
                tree.set_edge(edge, columns.edge_visits[at], columns.edge_value[at], link);
                if shape.count_in_flight {
                    tree.add_in_flight(edge, columns.edge_in_flight[at] as i16);
                }
            }
            first = edges.end;
        }
        let reward_discounts = columns.node_reward.iter().zip(&columns.node_discount);
        tree.columns = Columns {
            slots: columns.node_slot.clone(),
            rewards: columns.node_rewards.clone(),
            returns: columns.node_values.clone(),
            reward_discounts: reward_discounts.map(|(&reward, &discount)| RewardDiscount { reward, discount }).collect(),
            pruned_prior_mass: columns.node_tail.clone(),
        };
        (tree.root_visits, tree.positions) = (columns.root_visits, columns.positions);
        Ok(tree)
    }
}

/// Checks that `is_right` holds for each entry.
fn check_each<T: Copy + std::fmt::Display>(name: &str, entries: &[T], mut is_right: impl FnMut(T) -> bool) -> Result<(), String> {
    match entries.iter().position(|&entry| !is_right(entry)) {
        Some(at) => Err(format!("entry {at} of {name} is {}", entries[at])),
        None => Ok(()),
    }
}

fn is_result(proven: i8) -> bool {
    (-1..=1).contains(&proven) || proven == UNPROVEN
}

impl TreeColumns {
    /// Validates the columns.
    fn check(&self) -> Result<(), String> {
        let shape = self.shape;
        let nodes = self.node_value.len();
        if !(1..=255).contains(&shape.players) || shape.max_edges > usize::from(u16::MAX) {
            return Err("the shape is out of range".into());
        }
        if !(0.0..=1.0).contains(&shape.discount) || (shape.backup == Backup::Max && shape.players != 1) {
            return Err(format!(
                "planning has the discount {} and backup {:?} for {} players",
                shape.discount, shape.backup, shape.players
            ));
        }
        if shape.reward_width != 0 && (shape.model_columns || shape.reward_width != shape.players) {
            return Err("the shape has rewards for some players alone, or twice".into());
        }
        if nodes == 0 || nodes >= Link::INDEX as usize {
            return Err(format!("node_value has {nodes} entries"));
        }
        self.check_numbers()?;
        check_each("node_to_play", &self.node_to_play, |player| usize::from(player) < shape.players || player == CHANCE)?;
        let mut players = self.node_to_play.iter();
        check_each("node_edges", &self.node_edges, |count| players.next() == Some(&CHANCE) || usize::from(count) <= shape.max_edges)?;
        check_each("node_end", &self.node_end, |end| end <= 1)?;
        check_each("node_proven", &self.node_proven, is_result)?;
        check_each("edge_proven", &self.edge_proven, is_result)?;
        check_each("edge_category", &self.edge_tag, |tag| tag < 16)?;
        check_each("edge_prior", &self.edge_prior, |prior| prior >= 0.0)?;
        self.check_links()
    }

    /// Checks that the links form a tree and that sums of visits do not overflow.
    fn check_links(&self) -> Result<(), String> {
        let mut has_parent = vec![false; self.node_value.len()];
        let mut first = 0;
        for (index, &count) in self.node_edges.iter().enumerate() {
            let edges = first..first + usize::from(count);
            first = edges.end;
            if self.node_opened[index] > count || u16::from(self.node_ordered_prefix[index]) > count {
                return Err(format!("node_opened or node_eager of node {index} is more than its {count} edges"));
            }
            let visits: u64 = self.edge_visits[edges.clone()].iter().map(|&visits| u64::from(visits)).sum();
            if visits > u64::from(u32::MAX) || (index == ROOT as usize && visits > u64::from(self.root_visits)) {
                return Err(format!("edge_visits of node {index} add up to {visits}"));
            }
            for at in edges {
                let Ok(child) = usize::try_from(self.edge_child[at]) else {
                    check_each("edge_child", &self.edge_child[at..=at], |child| child == -1)?;
                    continue;
                };
                // A child has a higher index than its parent, which excludes cycles.
                if child <= index || child >= has_parent.len() || std::mem::replace(&mut has_parent[child], true) {
                    return Err(format!("entry {at} of edge_child is {child}, which is no node below node {index}, or has another parent"));
                }
            }
        }
        if self.node_edges[ROOT as usize] == 0 {
            return Err("the root has no edges".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            max_edges: 4,
            players: 3,
            count_in_flight: true,
            slots: true,
            reward_width: 3,
            player_values: true,
            discount: 0.5,
            ..Shape::default()
        }
    }

    fn grown() -> Tree {
        let mut tree = Tree::new(shape());
        let root = tree.add_node(0);
        tree.add_edges(root, &[5, 9, 1]);
        tree.priors_mut(root).copy_from_slice(&[0.5, 0.25, 0.25]);
        let edge = tree.open(root, tree.node(root).edge(1));
        let child = tree.add_node(2);
        tree.set_child(edge, child);
        tree.set_rewards(child, &[1.0, 2.0, 3.0]);
        tree.set_returns(child, &[0.25, 0.5, -1.0]);
        tree.set_slot(child, 7);
        tree.visit(edge, 0.75);
        tree.set_proven(edge, -1);
        tree.set_tag(edge, 3);
        tree.add_in_flight(edge, 2);
        tree.root_visits = 1;
        tree.positions = 2;
        tree
    }

    #[test]
    fn columns_round_trip() {
        let columns = grown().to_columns();
        let again = Tree::from_columns(&columns).expect("sound columns").to_columns();
        assert_eq!(format!("{columns:?}"), format!("{again:?}"));
    }

    #[test]
    fn restored_tree_has_as_much_room() {
        let mut tree = grown();
        for _ in 0..500 {
            let node = tree.add_node(1);
            tree.add_edges(node, &[1, 2, 3]);
            // As a node that its analysis proves: its edges stay in the arena.
            tree.node_mut(node).num_edges = 0;
        }
        let mark = tree.mark();
        for _ in 0..200 {
            let node = tree.add_node(0);
            tree.add_edges(node, &[1, 2, 3, 4]);
        }
        tree.truncate(mark);
        let mut again = Tree::from_columns(&tree.to_columns()).expect("sound columns");
        assert_ne!(again.bytes(), tree.bytes());
        again.grow_to(tree.extent());
        assert_eq!(again.extent(), tree.extent());
        for (nodes, bytes) in [1, 2, 9, 100, 1000].into_iter().flat_map(|nodes| (0..200_000).step_by(97).map(move |bytes| (nodes, bytes))) {
            assert_eq!(again.has_room(nodes, bytes, usize::MAX), tree.has_room(nodes, bytes, usize::MAX), "{nodes} nodes, {bytes} bytes");
        }
    }

    #[test]
    fn claimed_extent_is_limited() {
        let mut tree = grown();
        tree.grow_to([u64::MAX; 8]);
        assert!(tree.bytes() < 1 << 30);
    }

    #[test]
    fn damaged_columns_are_refused() {
        type Damage = fn(&mut TreeColumns);
        let damages: [(&str, Damage); 14] = [
            ("edge_child", |columns| columns.edge_child[0] = 0),
            ("edge_child", |columns| columns.edge_child[0] = 2),
            ("edge_child", |columns| columns.edge_child[0] = -2),
            ("edge_child", |columns| columns.edge_child[1] = 1),
            ("node_opened", |columns| columns.node_opened[0] = 4),
            ("edge_action", |columns| columns.node_edges[1] = 1),
            ("node_edges", |columns| columns.node_edges.truncate(1)),
            ("node_to_play", |columns| columns.node_to_play[1] = 3),
            ("node_proven", |columns| columns.node_proven[0] = 3),
            ("edge_prior", |columns| columns.edge_prior[0] = f32::NAN),
            ("edge_visits", |columns| columns.edge_visits[0] = 2),
            ("node_slot", |columns| columns.shape.slots = false),
            ("shape", |columns| columns.shape.players = 0),
            ("node_value", |columns| columns.node_value.clear()),
        ];
        for (name, damage) in damages {
            let mut columns = grown().to_columns();
            damage(&mut columns);
            let error = Tree::from_columns(&columns).expect_err("damaged columns");
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
    }
}
