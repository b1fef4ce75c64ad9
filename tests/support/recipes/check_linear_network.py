"""The evaluator of the recipe. `tests/end_to_end/test_recipes.py` runs it in its copy."""

from __future__ import annotations

import numpy as np
import pytest

import pondertree
from pondertree.evaluators import Cached, LinearNetwork  # type: ignore[attr-defined]
from pondertree.games import ConnectFour


def test_linear_network_matches_the_same_function() -> None:
    numbers = np.random.default_rng(1)
    weights, values = numbers.normal(size=(126, 7)).astype(np.float32), numbers.normal(size=126).astype(np.float32)

    def function(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = observations.reshape(len(observations), -1)
        return flat @ weights, np.tanh(flat @ values)

    for evaluator in (LinearNetwork(weights, values), Cached(LinearNetwork(weights, values))):
        results = [pondertree.AlphaZero(one, 100, seed=1).run(ConnectFour()) for one in (evaluator, function)]
        assert results[0].visits.tolist() == results[1].visits.tolist()


def test_linear_network_refuses_observations_of_another_game() -> None:
    with pytest.raises(pondertree.EvaluationError, match="126 numbers"):
        pondertree.AlphaZero(LinearNetwork(np.zeros((9, 7)), np.zeros(9)), 10).run(ConnectFour())
