"""Plain functions as evaluators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.check import shown
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.protocol import check_policy_kind


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
