"""Evaluators that run inside the engine, without Python. On games written in Python they do the same work in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.games.playout import simulate_leaves
from pondertree.random import fold
from pondertree.validation import shown


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every move is as good as any other, every position worth 0."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Zeros."""
        logits = np.zeros((len(states), states[0].num_actions if states else 0), dtype=np.float32)
        return logits, np.zeros((len(states), states[0].num_players if states else 0))


@dataclass(frozen=True, slots=True)
class Rollout:
    """Every move is as good as any other; a position is worth what a random playout says."""

    seed: int = 0

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """One playout each: values per player."""
        logits = np.zeros((len(states), states[0].num_actions if states else 0), dtype=np.float32)
        leaves = [(state, 0, fold(fold(0, self.seed), row)) for row, state in enumerate(states)]
        return logits, np.array(simulate_leaves(leaves))


class Function:
    """A function of observations whose policy is not of the default kind.

    A function that returns (policy_logits, values) is an evaluator as it is. One that returns (probabilities, values)
    has to say so, and a function has no better place to say it.
    """

    def __init__(
        self,
        function: Callable[[NDArray[np.float32]], tuple[Any, Any]],
        policy: str = "probabilities",
        version: int = 0,
    ) -> None:
        if not callable(function):
            raise InvalidArgumentError(f"function must be a function of observations, not {shown(function)}")
        self.function = function
        self.policy = check_policy_kind(policy)
        self.version = version
        """To be changed whenever the answers change, so that a `Cached` around it forgets the old ones."""

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
        """What the function says."""
        return self.function(observations)

    def __repr__(self) -> str:
        return f"Function({getattr(self.function, '__name__', self.function)!s}, policy={self.policy!r})"
