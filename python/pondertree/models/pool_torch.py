"""PyTorch backend of the hidden-state pool: tensors that stay on their device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


class TorchBackend:
    """Rows in a tensor without gradients.

    It is allocated outside inference mode: rows are passed to the model, and inference tensors cannot be used where
    gradients are enabled.
    """

    takes_slices = False

    def __init__(self, device: Any) -> None:
        self._device = device

    def send(self, slots: NDArray[Any]) -> Any:
        """Copies to the device as int64; for so few bytes, pinning would double the time."""
        return torch.from_numpy(np.ascontiguousarray(slots, dtype=np.int64)).to(self._device, non_blocking=True)

    def empty(self, like: Any, capacity: int) -> Any:
        """Allocates rows."""
        with torch.inference_mode(False):
            return torch.empty((capacity, *like.shape[1:]), dtype=like.dtype, device=self._device)

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Copies rows into a longer or wider tensor."""
        with torch.inference_mode(False):
            grown = torch.empty((capacity, *rows.shape[1:]), dtype=dtype, device=self._device)
            grown[: len(rows)] = rows
            return grown

    def gather(self, rows: Any, slots: Any) -> Any:
        """Copies rows."""
        return rows.index_select(0, slots)

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """Writes in place."""
        # Cheaper than `no_grad`; a detached tensor gives the pool no history either.
        if written.requires_grad:
            written = written.detach()
        return rows.index_copy_(0, slots, written if written.dtype == rows.dtype else written.to(rows.dtype))
