"""The counter-based random numbers of `reference/random.py`, many at a time: the same numbers, tests compare them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pondertree.reference.random import GOLDEN


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64, of each."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))


def fold(keys: NDArray[np.uint64] | Sequence[int], words: NDArray[np.uint64] | Sequence[int]) -> NDArray[np.uint64]:
    """Adds a word to each key."""
    words = np.atleast_1d(np.asarray(words, dtype=np.uint64))
    return mix(np.asarray(keys, dtype=np.uint64) ^ mix(words + np.uint64(GOLDEN)))


def uniform(keys: NDArray[np.uint64], purpose: int) -> NDArray[np.float64]:
    """The first number in [0, 1) of each key's stream for a purpose."""
    bits = mix(fold(keys, [purpose]) + np.uint64(GOLDEN))
    return (bits >> np.uint64(11)).astype(np.float64) / (1 << 53)
