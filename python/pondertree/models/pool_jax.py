"""JAX backend of the hidden-state pool; a module of its own because PyTorch users have no JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


def _take(rows: Any, slots: Any) -> Any:
    return jnp.take(rows, slots, axis=0, mode="clip")


def _write(rows: Any, slots: Any, written: Any) -> Any:
    # Slots are distinct and in bounds, so that XLA need neither order nor check the writes.
    return rows.at[slots].set(written.astype(rows.dtype), mode="promise_in_bounds", unique_indices=True)


class JaxBackend:
    """Rows in a donated array. Its two small kernels are compiled for each number of rows."""

    takes_slices = False

    def __init__(self) -> None:
        self._take = jax.jit(_take)
        # The donated array is written in place; otherwise each write would copy the whole pool.
        self._write = jax.jit(_write, donate_argnums=0)

    def send(self, slots: NDArray[Any]) -> Any:
        """Converts to int32, JAX's default integers."""
        return np.asarray(slots, dtype=np.int32)

    def empty(self, like: Any, capacity: int) -> Any:
        """Allocates zeroed rows: JAX has no uninitialised memory."""
        return jnp.zeros((capacity, *like.shape[1:]), dtype=like.dtype, device=like.device)

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Copies rows into a longer or wider array."""
        rest = jnp.zeros((capacity - len(rows), *rows.shape[1:]), dtype=dtype, device=rows.device)
        return jnp.concatenate([rows.astype(dtype), rest])

    def gather(self, rows: Any, slots: Any) -> Any:
        """Copies rows."""
        return self._take(rows, slots)

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """Returns the array that replaces the donated one."""
        return self._write(rows, slots, written)
