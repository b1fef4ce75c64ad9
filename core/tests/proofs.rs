//! Proven results on trees made by hand: the shortest of several wins, the longest of several losses.

use pondertree_core::search::backup::{hand_up, Step};
use pondertree_core::search::root_answer;
use pondertree_core::tree::{NodeIndex, Shape, Tree, ROOT, UNPROVEN};

fn shape() -> Shape {
    Shape { max_edges: 4, players: 2, count_in_flight: false, slots: false, rewards: 0, discounts: false, returns: false }
}

/// Gives `parent` one edge a child; every child is proven `value` for the player who moves there, at the distances given.
fn hang(tree: &mut Tree, parent: NodeIndex, value: i8, distances: &[u16]) -> Vec<Step> {
    let actions: Vec<u16> = (0..distances.len() as u16).collect();
    tree.add_edges(parent, &actions);
    tree.node_mut(parent).opened = actions.len() as u16;
    let chooser = tree.node(parent).to_play;
    let mut steps = Vec::new();
    for (place, &distance) in distances.iter().enumerate() {
        let child = tree.add_node(1 - chooser, 0);
        let edge = tree.node(parent).edge(place);
        tree.set_child(edge, child);
        tree.visit(edge, f64::from(-value));
        let node = tree.node_mut(child);
        node.proven = value;
        node.distance = distance;
        steps.push(Step { node: parent, edge, chooser });
    }
    steps
}

fn prove(tree: &mut Tree, steps: &[Step]) {
    // All but the last are noted first, as leaves in flight would note them; the last one decides the node.
    let (last, others) = steps.split_last().expect("an edge");
    for step in others {
        let child = tree.edge(step.edge).2.child().expect("a child");
        let value = -tree.node(child).proven;
        tree.set_proven(step.edge, value);
    }
    hand_up(tree, &[*last], |_, _| {});
}

#[test]
fn the_shortest_of_several_wins() {
    for distances in [[4, 2, 6], [2, 4, 6], [6, 4, 2]] {
        let mut tree = Tree::new(shape());
        tree.add_node(0, 0);
        let steps = hang(&mut tree, ROOT, -1, &distances);
        prove(&mut tree, &steps);
        assert_eq!((tree.node(ROOT).proven, tree.node(ROOT).distance), (1, 3));
        let shortest = distances.iter().position(|&distance| distance == 2).expect("there is one");
        for key in 0..20 {
            assert_eq!(root_answer::choose(&tree, 1.0, key, 3, &[], None), shortest);
        }
    }
}

#[test]
fn the_longest_of_several_losses() {
    let mut tree = Tree::new(shape());
    tree.add_node(0, 0);
    let steps = hang(&mut tree, ROOT, 1, &[1, 5, 3]);
    prove(&mut tree, &steps);
    assert_eq!((tree.node(ROOT).proven, tree.node(ROOT).distance), (-1, 6));
    for key in 0..20 {
        assert_eq!(root_answer::choose(&tree, 1.0, key, 3, &[], None), 1);
    }
}

#[test]
fn one_move_that_is_not_decided_leaves_the_node_open() {
    let mut tree = Tree::new(shape());
    tree.add_node(0, 0);
    let steps = hang(&mut tree, ROOT, 1, &[1, 5]);
    hand_up(&mut tree, &steps[..1], |_, _| {});
    assert_eq!(tree.node(ROOT).proven, UNPROVEN);
}

#[test]
fn the_expected_line_takes_the_shortest_win() {
    let mut tree = Tree::new(shape());
    tree.add_node(0, 0);
    let steps = hang(&mut tree, ROOT, 1, &[0]);
    let child = tree.edge(steps[0].edge).2.child().expect("a child");
    let below = hang(&mut tree, child, -1, &[4, 2, 6]);
    tree.node_mut(child).proven = UNPROVEN;
    prove(&mut tree, &below);
    assert_eq!(tree.node(child).distance, 3);
    assert_eq!(root_answer::principal_variation(&tree, 0), vec![0, 1]);
}
