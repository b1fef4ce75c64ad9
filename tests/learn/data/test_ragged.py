"""Vectorised operations on legal actions and random numbers match their scalar references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondertree import random
from pondertree.learn.data.ragged import LegalActions

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
