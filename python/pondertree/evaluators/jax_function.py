"""JAX networks (Flax, Haiku, Equinox or plain JAX): a function of parameters and observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import EvaluationError
from pondertree.evaluators.outputs import as_float32, flat_policy, next_power_of_two, pad_rows, two_outputs
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.optional import require


class Jax:
    """A function, such as Flax's `model.apply`, and its parameters.

    `apply(params, observations [B, ...]) -> (policy_logits [B, num_actions], values [B])`. For chess a policy may also
    be its 73 planes of 8 x 8 squares.

    The function is compiled once for each shape, so batches are padded with zeros to a power of two: a search whose
    batches have all sizes up to 256 compiles nine times, not 256 times. `params` may be replaced between searches;
    then change `version` if there is a `Cached` wrapper. With `jit=False` the function is not compiled, nor are batches
    padded.

    Thread-safe.
    """

    def __init__(self, apply: Callable[..., Any], params: Any, *, policy: str = "logits", jit: bool = True) -> None:
        jax = require("jax", "jax", "this evaluator")
        validation.function(apply, "apply", "function of (params, observations)")
        self.params = params
        self.policy = check_policy_kind(policy)
        self.jit = validation.flag(jit, "jit")
        self.version = 0
        """Change it whenever `params` change: it invalidates the entries of a `Cached` wrapper."""
        self._name = getattr(apply, "__qualname__", type(apply).__name__)
        self._apply = jax.jit(apply) if self.jit else apply
        self._array = jax.numpy.asarray

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(policy [B, num_actions], values [B, ...])."""
        rows = len(observations)
        batch = pad_rows(np.asarray(observations), next_power_of_two(rows) if self.jit else rows)
        policy, values = two_outputs(self._apply(self.params, self._array(batch)), self._name)
        policy, values = _numbers(policy, "policy_logits", len(batch)), _numbers(values, "values", len(batch))
        return flat_policy(policy)[:rows], values[:rows]

    def __repr__(self) -> str:
        return f"Jax({self._name}, policy={self.policy!r})"


def _numbers(given: Any, name: str, rows: int) -> NDArray[np.float32]:
    """Converts an output to float32; NumPy has no bfloat16."""
    array = np.asarray(given)
    if array.dtype.kind == "c" or array.shape[:1] != (rows,):
        raise EvaluationError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: "
            f"it must be real numbers, one row for each of the {rows} positions"
        )
    return as_float32(array, name)
