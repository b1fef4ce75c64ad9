"""The pool of hidden states in PyTorch: tensors that stay on their device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from numpy.typing import NDArray


class TorchBackend:
    """Rows in a tensor without gradients.

    It is not made in inference mode: what is read goes into the user's code, and there a tensor of inference mode
    cannot be used wherever gradients are on.
    """

    takes_slices = False

    def __init__(self, device: Any) -> None:
        self._device = device

    def send(self, slots: NDArray[Any]) -> Any:
        """As int64 on the device. So few bytes are taken over at once: pinning them first would take twice as long."""
        return torch.from_numpy(np.ascontiguousarray(slots, dtype=np.int64)).to(self._device, non_blocking=True)

    def empty(self, like: Any, capacity: int) -> Any:
        """Room for rows."""
        with torch.inference_mode(False):
            return torch.empty((capacity, *like.shape[1:]), dtype=like.dtype, device=self._device)

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Longer or wider."""
        with torch.inference_mode(False):
            grown = torch.empty((capacity, *rows.shape[1:]), dtype=dtype, device=self._device)
            grown[: len(rows)] = rows
            return grown

    def gather(self, rows: Any, slots: Any) -> Any:
        """A copy."""
        return rows.index_select(0, slots)

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """In place."""
        # Cheaper than `no_grad`, and the same here: what has no history gives the pool none.
        if written.requires_grad:
            written = written.detach()
        return rows.index_copy_(0, slots, written if written.dtype == rows.dtype else written.to(rows.dtype))


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
