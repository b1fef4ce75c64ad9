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
    # Each slot is named once and lies within, so that XLA need neither order the writes nor check them.
    return rows.at[slots].set(written.astype(rows.dtype), mode="promise_in_bounds", unique_indices=True)


class JaxBackend:
    """Rows in an array that nobody else has. Compiled anew for each number of rows; both kernels are tiny."""

    takes_slices = False

    def __init__(self) -> None:
        self._take = jax.jit(_take)
        # Donated, the old array is written in place; otherwise each write would copy the whole pool.
        self._write = jax.jit(_write, donate_argnums=0)

    def send(self, slots: NDArray[Any]) -> Any:
        """As int32, JAX's usual integers."""
        return np.asarray(slots, dtype=np.int32)

    def empty(self, like: Any, capacity: int) -> Any:
        """Room for rows. (JAX has no memory without contents.)"""
        return jnp.zeros((capacity, *like.shape[1:]), dtype=like.dtype, device=like.device)

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Longer or wider."""
        rest = jnp.zeros((capacity - len(rows), *rows.shape[1:]), dtype=dtype, device=rows.device)
        return jnp.concatenate([rows.astype(dtype), rest])

    def gather(self, rows: Any, slots: Any) -> Any:
        """A copy."""
        return self._take(rows, slots)

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """The array that takes the old one's place."""
        return self._write(rows, slots, written)
