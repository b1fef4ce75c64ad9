"""n-step returns: results by player to move, rewards, bootstrapping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.returns import NO_BOOTSTRAP, returns_of


def record(moves: int, **fields: Any) -> GameRecord:
    values = fields.pop("values", np.zeros(moves))
    return GameRecord(
        number=0,
        opening=np.zeros(0, np.uint16),
        moves=np.zeros(moves, np.uint16),
        values=np.asarray(values, np.float32),
        versions=np.zeros(moves, np.int64),
        full=np.ones(moves, np.bool_),
        counts=np.ones(moves, np.uint16),
        actions=np.zeros(moves, np.uint16),
        policy=np.ones(moves, np.float32),
        **{"returns": np.zeros(1, np.float32), **fields},
    )


def test_result_alternates_sign_with_player() -> None:
    game = record(3, returns=np.array([1.0, -1.0], np.float32))
    returns = returns_of(game, np.array([0, 1, 0], np.uint8), 1.0, 0)
    assert returns.known.tolist() == [1.0, -1.0, 1.0]
    assert returns.rewards.tolist() == [0.0, 0.0, 1.0]
    assert returns.bootstrap_offset.tolist() == [NO_BOOTSTRAP] * 3
    assert returns.ends


@pytest.mark.parametrize("how", ["cut", "resigned"])
def test_truncated_game_has_result_without_last_reward(how: str) -> None:
    game = record(3, returns=np.array([-1.0, 1.0], np.float32), **{how: True})
    returns = returns_of(game, np.array([0, 1, 0], np.uint8), 1.0, 0)
    assert returns.known.tolist() == [-1.0, 1.0, -1.0]
    assert returns.rewards.tolist() == [0.0, 0.0, 0.0]
    assert not returns.ends


def test_discount_shrinks_result_of_earlier_positions() -> None:
    returns = returns_of(record(3, returns=np.array([1.0, -1.0], np.float32)), np.array([0, 1, 0], np.uint8), 0.5, 0)
    assert returns.known.tolist() == [0.25, -0.5, 1.0]


def test_two_step_returns_match_hand_computation() -> None:
    game = record(4, values=[10, 20, 30, 40], rewards=np.array([1, 2, 3, 4], np.float32))
    returns = returns_of(game, np.zeros(4, np.uint8), 0.5, 2)
    assert returns.known.tolist() == [2.0, 3.5, 5.0, 4.0]
    assert returns.bootstrap_offset.tolist() == [2, 2, NO_BOOTSTRAP, NO_BOOTSTRAP]
    assert returns.values(game.values, 0.5).tolist() == [2.0 + 0.25 * 30, 3.5 + 0.25 * 40, 5.0, 4.0]
    cut = record(4, values=[10, 20, 30, 40], rewards=np.array([1, 2, 3, 4], np.float32), cut=True)
    returns = returns_of(cut, np.zeros(4, np.uint8), 0.5, 2)
    # Beyond the last position nothing is known: it bootstraps from its own value, not from 0.
    assert returns.values(cut.values, 0.5).tolist() == [2.0 + 0.25 * 30, 3.5 + 0.25 * 40, 3.0 + 0.5 * 40, 40.0]


@settings(max_examples=80, deadline=None)
@given(
    rewards=st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=12),
    steps=st.integers(0, 6),
    discount=st.sampled_from([1.0, 0.9, 0.5]),
    cut=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_n_step_returns_match_explicit_sum(
    rewards: list[float], steps: int, discount: float, cut: bool, seed: int
) -> None:
    count = len(rewards)
    values = np.random.default_rng(seed).normal(size=count).astype(np.float32)
    game = record(count, values=values, rewards=np.array(rewards, np.float32), cut=cut)
    found = returns_of(game, np.zeros(count, np.uint8), discount, steps).values(game.values, discount)
    for place in range(count):
        total, step, worth = 0.0, place, 1.0
        while step < count and (steps == 0 or step < place + steps) and not (cut and step == count - 1):
            total += worth * rewards[step]
            worth *= discount
            step += 1
        if step < count:
            total += worth * float(values[step])
        assert found[place] == pytest.approx(total, rel=1e-4, abs=1e-4)
