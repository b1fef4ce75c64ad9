"""Invariants, random games and tree helpers of the UCT reference tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.support.solvers import best_play, solve

from pondertree.reference.uct import MCTSNode, Result
from pondertree.testing.tabular import TabularGame, TabularState

ORDERS: Any = ["alternate", "random", "double"]


orders = st.sampled_from(ORDERS)


seeds = st.integers(0, 100_000)


def nodes_of(root: MCTSNode) -> list[MCTSNode]:
    found = [root]
    for node in found:
        found.extend(node.children.values())
    return found


def check_tree(result: Result) -> None:
    """Checks the invariants of every search tree."""
    root = result.root
    legal = root.state.legal_actions()
    assert result.action in legal
    assert list(result.visits) == list(result.values) == list(result.policy) == list(result.q) == list(legal)
    assert sum(result.visits.values()) == result.simulations == root.visit_count
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert all(share >= 0.0 for share in result.policy.values())
    for node in nodes_of(root):
        assert node.in_flight == 0
        assert math.isfinite(node.total_value)
        below = sum(child.visit_count for child in node.children.values())
        if node.parent is None:
            assert node.visit_count == below
        else:
            assert node.visit_count >= 1
            assert node.parent.children[node.action or 0] is node
            assert node.state == node.parent.state.play(node.action or 0)
            if node.rewards is None:
                assert abs(node.total_value) <= node.visit_count
        if node.end is not None:
            assert not node.children
        elif node.parent is not None:
            # A proven node keeps the visits of descents that stopped at it.
            assert node.visit_count == 1 + below or (node.proven is not None and node.visit_count > below)
        for child in node.children.values():
            assert child.forced_depth_left == max(node.forced_depth_left - 1, 0)


def check_proofs(root: MCTSNode) -> None:
    """Checks that every proven node has its exact value, and a distance that some line of play attains.

    With forced moves only the value is exact: a losing move is kept and one that allows a win is pruned, so the
    distance of a lost node may be one ply too short.
    """
    for node in nodes_of(root):
        if node.proven is None:
            continue
        value, plies = solve(node.state)  # type: ignore[arg-type]
        assert node.proven == value
        if root.forced_depth_left > 0:
            continue
        # A proof stops at the first win, which need not be the shortest, so no distance is below the exact
        # one. A draw needs all moves, so its distance is exact.
        assert node.distance == plies if value == 0 else node.distance >= plies


games = st.builds(
    TabularGame,
    seed=seeds,
    players=st.sampled_from([1, 2, 2, 2, 3]),
    branching=st.sampled_from([(1, 2), (1, 4), (3, 3)]),
    depth=st.sampled_from([(1, 2), (1, 6), (2, 9)]),
    turn_order=orders,
    rewards=st.sampled_from([False, False, True]),
    zero_sum=st.sampled_from([True, True, False]),
)


@dataclass(frozen=True)
class End:
    """A terminal state with the result of player 0; player 1 is to move."""

    result: float
    to_play: int = 1
    is_terminal: bool = True
    num_players: int = 2
    num_actions: int = 8

    def legal_actions(self) -> list[int]:
        return []

    def play(self, action: int) -> Any:
        raise AssertionError("played on after the end")

    def returns(self) -> list[float]:
        return [self.result, 0.0 - self.result]


@dataclass(frozen=True)
class Tree2:
    """A two-player game: `name` ends in the player to move, `moves` are the successors in order."""

    name: str
    moves: dict[str, Any] = field(hash=False)
    is_terminal: bool = False
    num_players: int = 2
    num_actions: int = 8

    @property
    def to_play(self) -> int:
        return int(self.name[-1])

    def legal_actions(self) -> list[int]:
        return list(range(len(self.moves)))

    def play(self, action: int) -> Any:
        return list(self.moves.values())[action]

    def returns(self) -> list[float]:
        return [0.0, 0.0]


WIN, DRAW, LOSS = End(1.0), End(0.0), End(-1.0)


def long_way(player: int, plies: int, end: Any) -> Any:
    """A line of forced moves with alternating players."""
    for ply in reversed(range(plies)):
        end = Tree2(f"way{(player + ply) % 2}", {"on": end})
    return end


def worth(state: TabularState, action: int) -> float:
    """Returns the value of an action for the player to move under optimal play."""
    child = state.play(action)
    rewards = child.rewards() if state.game.rewards else [0.0] * state.num_players  # type: ignore[attr-defined]
    return float(rewards[state.to_play] + best_play(child)[state.to_play])
