"""Policy-target pruning of forced playouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.networks import table

from pondertree import random
from pondertree.config import Puct
from pondertree.evaluators import Function
from pondertree.games import TicTacToe
from pondertree.learn.data.policy_targets import LegalActions, pruned_visits
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
    retained = pruned_visits(n, q * n, p, Puct(1.5, forced_playouts=2.0))
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
        np.array([60.0, 10.0, 30.0]),
        np.array([30.0, -9.0, 14.0]),
        np.array([0.5, 0.3, 0.2]),
        Puct(1.0, forced_playouts=2.0),
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


WORDS = st.integers(0, (1 << 64) - 1)
LISTS = st.lists(st.lists(st.integers(0, 4671), min_size=1, max_size=9, unique=True), min_size=1, max_size=8)


def legal_actions(lists: list[list[int]]) -> LegalActions:
    return LegalActions(
        np.array([len(one) for one in lists]), np.array([action for one in lists for action in one], dtype=np.uint16)
    )


@given(keys=st.lists(WORDS, min_size=1, max_size=5), word=WORDS, purpose=st.integers(0, 200))
def test_array_random_numbers_match_scalar_generator(keys: list[int], word: int, purpose: int) -> None:
    many = np.array(keys, dtype=np.uint64)
    assert random.fold_array(many, [word] * len(keys)).tolist() == [random.fold(key, word) for key in keys]
    expected = [random.Random(key, purpose).uniform() for key in keys]
    assert random.uniform_array(many, purpose).tolist() == expected


@given(lists=LISTS, data=st.data(), temperature=st.sampled_from([1.0, 0.5, 2.0]))
def test_sampled_actions_match_row_by_row_reference(
    lists: list[list[int]], data: st.DataObject, temperature: float
) -> None:
    legal = legal_actions(lists)
    total = sum(map(len, lists))
    weights = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=total, max_size=total)))
    weights[legal.ends - 1] += 0.01
    shares = legal.normalised(weights)
    which = np.array(data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists))))
    numbers = np.array(data.draw(st.lists(st.floats(0.0, 0.999), min_size=int(which.sum()), max_size=int(which.sum()))))
    drawn = legal.sample(shares, which, numbers, temperature).tolist()
    assert len(drawn) == which.sum()
    parts = [part for part, chosen in zip(legal.split(shares), which, strict=True) if chosen]
    for action, actions, part, number in zip(
        drawn, [one for one, chosen in zip(lists, which, strict=True) if chosen], parts, numbers, strict=True
    ):
        powers = part.astype(np.float64) ** (1.0 / temperature)
        ends = np.cumsum(powers) / powers.sum()
        place = actions.index(action)
        assert part[place] > 0.0 or number == 0.0
        assert (ends[place - 1] if place else 0.0) <= number + 1e-9
        assert number <= ends[place] + 1e-9


@given(lists=LISTS)
def test_normalised_weights_sum_to_one_per_position(lists: list[list[int]]) -> None:
    legal = legal_actions(lists)
    weights = np.arange(1.0, 1.0 + len(legal.actions))
    for part, actions, alone in zip(legal.split(legal.normalised(weights)), lists, legal.split(weights), strict=True):
        assert part.sum() == pytest.approx(1.0, abs=1e-6)
        assert part.tolist() == legal_actions([actions]).normalised(alone).tolist()
    assert legal.rows.tolist() == [row for row, actions in enumerate(lists) for _ in actions]
