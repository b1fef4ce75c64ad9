"""Hidden states in memory limits, and reservation of their pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pondertree

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

WIDTH = 16384
SLOT = 4 * WIDTH / 2**20
"""What one hidden state takes, in MiB."""


class Heavy:
    """A model with large hidden states."""

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        rows = len(observations)
        return np.zeros((rows, WIDTH), dtype=np.float32), np.zeros((rows, 4)), np.zeros(rows)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        rows = len(actions)
        return hidden_states + 1, np.zeros(rows), np.zeros((rows, 4)), np.zeros(rows)


def test_time_limited_run_reserves_no_slots() -> None:
    result = pondertree.MuZero(Heavy(), num_simulations=10_000_000, time_limit=0.1).run(observation=np.zeros(3))
    assert 0 < result.simulations < 10_000_000


@pytest.mark.parametrize("trees", [1, 3])
def test_max_memory_counts_hidden_states(trees: int) -> None:
    forest = pondertree.MuZero(Heavy(), max_memory=5, seed=1).forest(observation=[np.zeros(3)] * trees)
    for _ in range(3):
        forest.simulate(500)
        assert forest._world._pool.nbytes <= 5.0 * 2**20 + SLOT * 2**20 * trees  # type: ignore[attr-defined]
        for index, result in enumerate(forest.results()):
            assert 0 < result.simulations < 500
            assert int(result.visits.sum()) <= 5 / SLOT / trees
            forest.advance(index, result.action)


def test_search_without_model_or_evaluator_is_refused() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="model is None"):
        pondertree.MuZero(None)


def test_legal_actions_of_several_observations_are_one_list_each() -> None:
    search = pondertree.MuZero(Heavy(), 3, seed=1)
    several = search.run(observation=np.zeros((2, 3)), legal_actions=[None, [1]])
    assert [np.flatnonzero(result.visits).tolist() for result in several][1] == [1]
    with pytest.raises(pondertree.InvalidArgumentError, match="one list for several observations"):
        search.run(observation=[np.zeros(3)] * 2, legal_actions=[0, 1])
    with pytest.raises(pondertree.InvalidArgumentError, match="a mask has True and False"):
        search.run(observation=np.zeros(3), legal_actions=[1, 0, 1, 0])
