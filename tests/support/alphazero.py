"""Networks and tree helpers of the AlphaZero reference tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from pondertree.random import fold
from pondertree.reference.alphazero import (
    Node,
    Result,
)


class Network:
    """A random policy and random values, keyed by a tabular state."""

    def __init__(self, policy: str = "logits") -> None:
        self.policy = policy
        self.sizes: list[int] = []

    def evaluate_states(self, states: Any) -> tuple[list[list[float]], list[list[float]]]:
        self.sizes.append(len(states))
        policies, values = [], []
        for state in states:
            unit = [fold(state.key, action) % 1001 / 1000 for action in range(state.num_actions)]
            policies.append(unit if self.policy == "probabilities" else [4.0 * u - 2.0 for u in unit])
            first = fold(state.key, 10**6) % 2001 / 1000 - 1
            others = [fold(state.key, 10**6 + p) % 2001 / 1000 - 1 for p in range(1, state.num_players)]
            values.append([first, -first] if state.zero_sum else [first, *others])
        return policies, values


def nodes_of(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found.extend(child for child in node.children.values() if child.position is not None)
    return found


def check_tree(result: Result) -> None:
    """Checks the invariants of every search tree."""
    root = result.root
    legal = list(root.state.legal_actions())
    assert result.action in legal
    assert list(result.visits) == list(result.values) == list(result.policy) == list(result.q) == legal
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert math.isfinite(result.value)
    for node in nodes_of(root):
        assert node.in_flight == 0
        below = sum(child.visit_count for child in node.children.values())
        if node.end is not None:
            assert not node.children
        elif node.children:
            assert sorted(node.children) == sorted(node.state.legal_actions())
            # A proven node keeps the visits of descents that stopped at it.
            assert node.visit_count == 1 + below or (node.proven is not None and node.visit_count > below)
            assert sum(child.prior for child in node.children.values()) == pytest.approx(1.0, abs=1e-6)
            assert sum(child.clean_prior for child in node.children.values()) == pytest.approx(1.0, abs=1e-6)
            opened = [child.position is not None for child in node.children.values()]
            assert opened == sorted(opened, reverse=True)
        if node.rewards is None:
            assert abs(node.q_value) <= 1.0
        if node.chooser_value is None and node.children:
            # The sums of the parent, negated if the player changes, are those of the node.
            assert node.mean_value * (1 + below) == pytest.approx(
                node.raw_value + sum(child.total_for_chooser for child in node.children.values())
            )
            if node.proven is None:
                assert node.q_value == pytest.approx(node.mean_value)


@dataclass
class Fixed:
    """The same policy everywhere, and the same value for the player to move."""

    logits: list[float]
    value: float = 0.0
    policy: str = field(default="logits")

    def evaluate_states(self, states: Any) -> tuple[list[list[float]], list[float]]:
        return [self.logits] * len(states), [self.value] * len(states)
