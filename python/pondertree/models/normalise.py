"""The scale of hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np

from pondertree.models.arrays import library_of, namespace_of

#: The least range that is stretched to 1: a row whose numbers are all alike stays finite.
LEAST = 1e-5


def min_max(hidden: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Hidden states [B, ...] with each row scaled to [0, 1], the range of encoded actions (MuZero, appendix G).

    `axes`: over which the least and the greatest number are sought, by default all but the first. For images
    [B, C, H, W], (2, 3) scales each channel by itself. For arrays of NumPy, PyTorch or JAX; gradients pass.
    """
    if library_of(hidden) is None:
        hidden = np.asarray(hidden, dtype=np.float64)
    xp = namespace_of(hidden)
    over = tuple(range(1, hidden.ndim)) if axes is None else axes
    least = xp.amin(hidden, axis=over, keepdims=True)
    span = xp.amax(hidden, axis=over, keepdims=True) - least
    return (hidden - least) / xp.clip(span, LEAST, None)
