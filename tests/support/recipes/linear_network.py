"""Linear networks in NumPy: a matrix of policy logits and a vector of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError
from pondertree.evaluators.outputs import as_float32
from pondertree.evaluators.protocol import check_policy_kind


class LinearNetwork:
    """A linear policy and value: `weights [D, num_actions]` and `value_weights [D]` for observations of D numbers.

    Thread-safe.
    """

    def __init__(self, weights: Any, value_weights: Any, *, policy: str = "logits") -> None:
        self.weights = as_float32(weights, "weights")
        self.value_weights = as_float32(value_weights, "value_weights")
        self.policy = check_policy_kind(policy)
        self.version = 0

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(policy [B, num_actions], values [B])."""
        flat = observations.reshape(len(observations), -1)
        if flat.shape[1] != len(self.weights):
            raise EvaluationError(f"an observation has {flat.shape[1]} numbers: weights is for {len(self.weights)}")
        return flat @ self.weights, np.tanh(flat @ self.value_weights)
