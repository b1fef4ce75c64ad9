"""JAX models (Flax, Haiku, Equinox or plain JAX): two functions of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pondertree import validation
from pondertree.errors import EvaluationError
from pondertree.evaluators.outputs import next_power_of_two, pad_rows
from pondertree.models.responses import ROOT, STEP_DISCOUNT, root_parts, step_parts
from pondertree.optional import require


class JaxModel:
    """Two functions and their parameters.

    `initial(params, observations [B, ...]) -> (hidden_state, policy_logits [B, num_actions], value [B])` and
    `recurrent(params, hidden_states, actions [B]) -> (hidden_state, reward [B], policy_logits, value[, discount])`. A
    hidden state is an array [B, ...] or a pytree of them.

    The functions are compiled once for each shape, so batches are padded with zeros to a power of two: a search whose
    batches have all sizes up to 256 compiles nine times, not 256 times. `params` may be replaced between searches. With
    `jit=False` the functions are not compiled, nor are batches padded.

    Thread-safe.
    """

    #: The adapter moves actions to the device itself.
    sends_actions = True

    def __init__(
        self, initial: Callable[..., Any], recurrent: Callable[..., Any], params: Any, *, jit: bool = True
    ) -> None:
        jax = require("jax", "jax", "this model")
        for name, function in (("initial", initial), ("recurrent", recurrent)):
            validation.function(function, name, "function of (params, ...)")
        self.params = params
        self.jit = validation.flag(jit, "jit")
        self._name = getattr(recurrent, "__qualname__", type(recurrent).__name__)
        self._initial = jax.jit(initial) if self.jit else initial
        self._recurrent = jax.jit(recurrent) if self.jit else recurrent

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        """(hidden_state on the device, policy_logits [B, num_actions], value [B])."""
        rows = len(observations)
        batch = pad_rows(np.asarray(observations), self._padded_size(rows))
        return self._fetched(root_parts(self._initial(self.params, self._array(batch))), ROOT, rows)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """Returns (hidden_state on the device, reward [B], policy_logits [B, num_actions], value [B]), any discount."""
        rows = len(actions)
        size = self._padded_size(rows)
        sent = self._array(pad_rows(np.asarray(actions, dtype=np.int32), size))
        hidden = _resized(hidden_states, rows, size)
        return self._fetched(step_parts(self._recurrent(self.params, hidden, sent)), STEP_DISCOUNT, rows)

    def _padded_size(self, rows: int) -> int:
        return next_power_of_two(rows) if self.jit else rows

    def _array(self, array: Any) -> Any:
        import jax

        # Compiled functions move NumPy arrays to the device themselves, and faster; others would compute in NumPy.
        return array if self.jit else jax.numpy.asarray(array)

    def _fetched(self, parts: tuple[Any, ...], names: tuple[str, ...], rows: int) -> tuple[Any, ...]:
        """Removes padding and downloads all outputs except the hidden state as NumPy arrays."""
        import jax

        hidden, *rest = parts
        size = self._padded_size(rows)
        rest = [np.asarray(part) if part is not None else None for part in jax.device_get(rest)]
        if size == rows:
            return hidden, *rest
        for name, array in zip(names[1:], rest, strict=False):
            if array is not None and array.shape[:1] != (size,):
                raise EvaluationError(
                    f"{name} has shape {array.shape}: it must have one row for each of the {size} inputs"
                )
        return _resized(hidden, size, rows), *(None if array is None else array[:rows] for array in rest)

    def __repr__(self) -> str:
        return f"JaxModel({self._name}, jit={self.jit})"


def _resized(hidden: Any, rows: int, wanted: int) -> Any:
    """Pads hidden states with zeros, or truncates them, to `wanted` rows."""
    import jax

    def resize(array: Any) -> Any:
        if array.shape[:1] != (rows,):
            raise EvaluationError(f"hidden_state has shape {array.shape}: it must have {rows} rows")
        if wanted < rows:
            return array[:wanted]
        rest = jax.numpy.zeros((wanted - rows, *array.shape[1:]), dtype=array.dtype)
        return jax.numpy.concatenate([array, rest])

    return hidden if wanted == rows else jax.tree_util.tree_map(resize, hidden)
