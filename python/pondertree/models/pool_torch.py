"""PyTorch backend of the hidden-state pool: tensors that stay on their device."""

from __future__ import annotations

from typing import Any

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
