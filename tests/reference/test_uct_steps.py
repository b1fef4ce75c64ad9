"""Nodes and steps of the UCT reference called one by one, with their default random generator."""

from __future__ import annotations

import math

import pytest
from tests.support.search_helpers import after

from pondertree.games import TicTacToe
from pondertree.reference.uct import MCTS, MCTSNode


def test_best_child_uses_ucb1_with_default_generator() -> None:
    """The figure of the classic UCT specification: a1 with 3 wins of 5, a2 with 2; then by the exploration bonus."""
    root = MCTSNode(TicTacToe(), visit_count=10)
    for visits, value in ((5, 3.0), (5, 2.0)):
        child = root.expand()
        child.visit_count, child.total_value = visits, value
    first, second = root.children.values()
    explore = math.sqrt(2 * math.log(10) / 5)
    assert first.score(10, 1.0) == pytest.approx(3 / 5 + explore)
    assert root.best_child(1.0) is first
    assert root.best_child() is first
    second.visit_count, second.total_value = 1, 0.0
    assert second.score(10, 1.0) == pytest.approx(math.sqrt(2 * math.log(10)))
    assert root.best_child(1.0) is second
    assert root.best_child(0.0) is first


def test_expand_visits_each_move_once_in_reproducible_random_order() -> None:
    orders = []
    for _ in range(2):
        root = MCTSNode(TicTacToe(), forced_depth_left=2)
        while root.list_actions():
            child = root.expand()
            assert child.parent is root
            assert child.forced_depth_left == 1
            assert child.state == root.state.play(child.action)
        orders.append(list(root.children))
        with pytest.raises(ValueError, match="fully expanded"):
            root.expand()
    assert sorted(orders[0]) == list(range(9))
    assert orders[0] == orders[1] != list(range(9))


def test_best_child_breaks_ties_at_random() -> None:
    root = MCTSNode(TicTacToe(), visit_count=9)
    while root.list_actions():
        root.expand().update(0.5)
    assert len({root.best_child(1.0).action for _ in range(60)}) > 4


def test_best_child_prefers_unvisited_children_and_needs_one() -> None:
    root = MCTSNode(TicTacToe())
    with pytest.raises(ValueError, match="no children"):
        root.best_child(1.0)
    first = root.expand()
    first.update(1.0)
    second = root.expand()
    assert root.best_child(1.0) is second
    second.update(-1.0)
    assert root.best_child(1.0) is first


@pytest.mark.parametrize(
    ("moves", "best"),
    [([0, 3, 1, 4], 2), ([0, 3, 1], 2), ([8, 0, 3, 1, 7], 2)],
    ids=["X wins", "O must block", "O wins"],
)
def test_manual_search_loop_finds_wins_and_blocks(moves: list[int], best: int) -> None:
    """The steps by the specification's names; the value is from the perspective of the chooser."""
    from pondertree import playout

    mcts, root = MCTS(), MCTSNode(after(TicTacToe(), moves))
    for iteration in range(600):
        node = mcts._select(root)
        if node.end is None:
            node = node.expand()
        value = playout(node.state, node.chooser, seed=iteration)
        mcts._backpropagate(node, value)
    assert mcts._best_action(root) == best
    assert root.visit_count == 600 == sum(child.visit_count for child in root.children.values())


def test_backpropagation_of_scalar_matches_specification() -> None:
    root = MCTSNode(TicTacToe())
    path = [root]
    for _ in range(3):
        path.append(path[-1].expand())
    MCTS()._backpropagate(path[-1], 0.75)
    expected = 0.75
    for node in reversed(path[1:]):
        assert (node.visit_count, node.total_value) == (1, expected)
        expected = -expected
    # At the root, which has no chooser, the value is for its own player to move.
    assert (root.visit_count, root.total_value) == (1, path[1].total_value)
