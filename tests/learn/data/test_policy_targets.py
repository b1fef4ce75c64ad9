"""Policy-target pruning of forced playouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support.networks import table

from pondertree.evaluators import Function
from pondertree.games import TicTacToe
from pondertree.learn.data.policy_targets import pruned_visits
from pondertree.presets import AlphaZero


@given(
    visits=st.lists(st.integers(0, 200), min_size=2, max_size=9).filter(lambda visits: max(visits) > 1),
    data=st.data(),
)
def test_pruning_removes_only_forced_visits(visits: list[int], data: Any) -> None:
    count = len(visits)
    n = np.array(visits, dtype=np.float64)
    q = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=count, max_size=count)))
    p = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count)))
    p /= p.sum()
    retained = pruned_visits(n, q * n, p, 1.5, 2.0)
    best = int(np.argmax(n))
    assert retained[best] == n[best]
    assert ((retained >= 0) & (retained <= n)).all()
    forced = np.ceil(np.sqrt(2.0 * p * n.sum()))
    goal = q[best] + 1.5 * p[best] * np.sqrt(n.sum() + 1.0) / (1.0 + n[best])
    for place in range(count):
        if place == best:
            continue
        # At most the forced visits are removed, except a single remaining visit.
        assert retained[place] >= n[place] - forced[place] - 1e-9 or retained[place] == 0.0
        if retained[place] > max(n[place] - forced[place], 0.0) and retained[place] > 1.0:
            # The removal is maximal: with one visit fewer the score would exceed the best move's.
            assert q[place] + 1.5 * p[place] * np.sqrt(n.sum() + 1.0) / retained[place] > goal - 1e-9


def test_forced_playouts_add_visits_that_pruning_removes() -> None:
    """Three moves, one of them bad and visited only because of forced playouts."""
    retained = pruned_visits(
        np.array([60.0, 10.0, 30.0]), np.array([30.0, -9.0, 14.0]), np.array([0.5, 0.3, 0.2]), 1.0, 2.0
    )
    assert retained[0] == 60.0
    assert retained[1] == 2.0  # ceil(0.3 sqrt(101) / (0.5 + 5.02 / 61 + 0.9) - 1) = 2, and 10 - ceil(sqrt(60)) = 2
    assert 20 < retained[2] <= 30.0
    evaluator = Function(lambda observations: table(observations, 9), policy="logits")
    for forced in (0.0, 4.0):
        result = AlphaZero(evaluator, 400, 0.3, seed=1, solve=False, forced_playouts=forced).run(TicTacToe())
        tried = [(child.visit_count, child.prior) for child in result.root.children.values() if child.visit_count]
        owed = [visits < math.floor(math.sqrt(4.0 * prior * 400)) for visits, prior in tried]
        assert any(owed) == (forced == 0.0)
