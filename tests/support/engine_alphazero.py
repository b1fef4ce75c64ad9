"""Networks and comparisons of the AlphaZero engine tests."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree.random import fold
from pondertree.reference import alphazero

MATE_IN_ONE = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"


@dataclass(frozen=True)
class Table:
    """A network whose policy and values are a function of the state; few `levels` make many ties."""

    kind: str = "logits"
    levels: int = 1001
    seed: int = 0
    ruled_out: bool = False
    """Some legal moves get prior 0, but never the first one."""

    @property
    def policy(self) -> str:
        return "probabilities" if self.kind == "probabilities" else "logits"

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        """Evaluates states for the reference and the engine."""
        keys = [fold(self.seed, key_of(state.observation())) for state in states]
        players = states[0].num_players
        one_number_will_do = players == 1 or (players == 2 and not hasattr(states[0], "rewards"))
        values = np.array([[self.value(fold(key, player)) for player in range(players)] for key in keys])
        policy = np.array([self.numbers(key, states[0].num_actions) for key in keys])
        if self.ruled_out:
            for row, state in zip(policy, states, strict=True):
                others = state.legal_actions()[1:]
                row[others] = np.where(row[others] <= row.min() + 0.1, self.never, row[others])
        return None if self.kind == "even" else policy, values[:, 0] if one_number_will_do else values

    @property
    def never(self) -> float:
        return 0.0 if self.kind == "probabilities" else -math.inf

    def value(self, key: int) -> float:
        return (key % self.levels) / (self.levels - 1) * 2.0 - 1.0

    def numbers(self, key: int, count: int) -> Any:
        parts = np.random.default_rng(key).integers(self.levels, size=count) / (self.levels - 1)
        return parts if self.kind == "probabilities" else 4.0 * parts - 2.0


def key_of(observation: Any) -> int:
    return zlib.crc32(np.asarray(observation, dtype=np.float32).tobytes())


def compare_nodes(engine: pondertree.Node, root: alphazero.Node, *, zero_sum: bool) -> None:
    """Compares all nodes: order, visits, sums, noised and clean priors, proofs, nothing in flight."""
    assert engine.visit_count == root.visit_count
    assert engine.total_value == pytest.approx(root.total_value, abs=1e-9)
    stack = [(engine, root)]
    while stack:
        ours, theirs = stack.pop()
        assert ours.proven == theirs.proven
        assert ours.to_play == theirs.to_play
        assert list(ours.children) == list(theirs.children)
        if theirs.proven is not None:
            assert ours.distance == theirs.distance
        if theirs.children:
            assert ours.raw_value == theirs.raw_value
        for action, child in theirs.children.items():
            mine = ours.children[action]
            assert mine.prior == child.prior
            if ours.parent is None:
                assert mine.clean_prior == child.clean_prior
            assert (mine.visit_count, mine.in_flight, child.in_flight) == (child.visit_count, 0, 0)
            assert mine._edge["sum"] == child.total_for_chooser
            if child.position is not None:
                exactly = 0.0 if zero_sum else 1e-9
                assert mine.total_value == pytest.approx(child.total_value, rel=0.0, abs=exactly)
                stack.append((mine, child))
