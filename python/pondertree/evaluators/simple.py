"""Simple evaluators: uniform policies with a constant or a random playout as value, and plain functions.

The first two run inside the engine on compiled games, without Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.games.playout import simulate_leaves
from pondertree.random import fold


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform policy, value 0."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Returns zeros."""
        logits = np.zeros((len(states), states[0].num_actions if states else 0), dtype=np.float32)
        return logits, np.zeros((len(states), states[0].num_players if states else 0))


@dataclass(frozen=True, slots=True)
class Rollout:
    """Uniform policy; the value is the result of a random playout."""

    seed: int = 0

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Plays one playout from each state; returns values per player."""
        logits = np.zeros((len(states), states[0].num_actions if states else 0), dtype=np.float32)
        leaves = [(state, 0, fold(fold(0, self.seed), row)) for row, state in enumerate(states)]
        return logits, np.array(simulate_leaves(leaves))


class Function:
    """A function of observations that returns (probabilities, values).

    A function that returns (policy_logits, values) is an evaluator without this adapter.
    """

    def __init__(
        self,
        function: Callable[[NDArray[np.float32]], tuple[Any, Any]],
        policy: str = "probabilities",
        version: int = 0,
    ) -> None:
        validation.function(function, "function", "function of observations")
        self.function = function
        self.policy = check_policy_kind(policy)
        self.version = version
        """Change it whenever outputs change: it invalidates the entries of a `Cached` wrapper."""

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
        """Calls the function."""
        return self.function(observations)

    def __repr__(self) -> str:
        return f"Function({getattr(self.function, '__name__', self.function)!s}, policy={self.policy!r})"
