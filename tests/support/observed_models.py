"""Models whose observations and hidden states are numbers, and helpers of MuZero's tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.support.models import TableModel

import pondertree


def numbered(*numbers: int) -> list[Any]:
    """Returns observations for the models of `tests.support.models`, which read the first number."""
    return [np.array([number]) for number in numbers]


@dataclass(frozen=True)
class Seeing(TableModel):
    """A table for observations of games that records them."""

    seen: list[Any] = field(default_factory=list)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        self.seen.append(np.array(observations))
        keys = [hash(row.tobytes()) % 1_000_003 for row in np.asarray(observations, dtype=np.float32)]
        hidden = np.array(keys, dtype=np.int64)[:, None]
        _, logits, values, _ = self.rows(hidden)
        return hidden, logits, values


def assert_same_tree(game: pondertree.Node, predicted: pondertree.Node) -> int:
    """Compares moves, visits and values down to the ends of the game; returns the number of nodes."""
    count, stack = 0, [(game, predicted)]
    while stack:
        one, other = stack.pop()
        count += 1
        assert one.visit_count == other.visit_count
        if one.is_terminal:
            continue
        assert one.q_value == pytest.approx(other.q_value, abs=1e-12)
        tried = [action for action, child in one.children.items() if child.visit_count]
        assert tried == [action for action, child in other.children.items() if child.visit_count]
        stack.extend((one.children[action], other.children[action]) for action in tried)
    return count
