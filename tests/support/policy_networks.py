"""Policy networks and evaluators of chess for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pondertree.chess import Pesto
from pondertree.random import fold


class FakeNetwork:
    """A policy network defined by a function; records the requested positions."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.requests: list[str] = []

    def evaluate(self, state: Any) -> Any:
        self.requests.append(state.fen())
        return self.function(state)


def pseudo_random(state: Any) -> tuple[dict[int, float], float]:
    """Pseudo-random priors and value, a function of the legal moves."""
    legal = state.legal_actions()
    key = fold(7, sum(action * action for action in legal))
    return {action: 1.0 + fold(key, action) % 997 for action in legal}, key % 1009 / 1008


class PythonPesto:
    """A `Pesto` that is evaluated in Python instead of inside the engine."""

    def __init__(self, pesto: Pesto) -> None:
        self.pesto = pesto

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, np.ndarray]:
        return None, self.pesto.values(states)
