"""Counter-based random numbers: every number is a function of (seed, call, row, simulation, purpose).

A search can be replayed from any point and in any order. `core/src/runtime/random.rs` is the same code in Rust; the
tests of both pin the same numbers, and a change here changes every recorded search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN: Final = 0x9E37_79B9_7F4A_7C15

# Purposes of streams; no two purposes share numbers.
SELECT: Final = 1  # ties between scores, and the order of unvisited moves
PLAYOUT: Final = 2  # random playouts
ANSWER: Final = 3  # the choice of the move to play
NOISE: Final = 4  # Dirichlet noise at the root
GUMBEL: Final = 5  # Gumbel numbers at the root
OUTCOME: Final = 6  # sampled outcomes of chance nodes


def mix(z: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits with good avalanche."""
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
    return z ^ (z >> 31)


def fold(key: int, word: int) -> int:
    """Returns the key with one word mixed in. Not commutative: the order of words matters."""
    return mix((key & MASK) ^ mix((word + GOLDEN) & MASK))


def tree_key(seed: int, call: int, row: int) -> int:
    """Returns the key of tree `row` of the `call`-th search with `seed`."""
    return fold(fold(fold(0, seed), call), row)


class Random:
    """The stream of random numbers (SplitMix64) of a key and a purpose."""

    __slots__ = ("state",)

    def __init__(self, key: int, purpose: int) -> None:
        self.state = fold(key, purpose)

    def next_u64(self) -> int:
        """Returns the next 64 bits."""
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def below(self, n: int) -> int:
        """Returns a number from 0 to `n - 1`, by multiply and shift (Lemire 2019, without the rejection)."""
        return ((self.next_u64() >> 32) * n) >> 32

    def choose(self, n: int) -> int:
        """Returns a number like `below`; for n = 1 nothing is drawn."""
        return 0 if n == 1 else self.below(n)

    def uniform(self) -> float:
        """Returns a number in [0, 1) with 53 bits."""
        return (self.next_u64() >> 11) * (1.0 / (1 << 53))


def draw(weights: Sequence[float], random: Random) -> int:
    """Returns the index of a weight, drawn in proportion. Weights are not negative and not all 0; 0 is never drawn."""
    threshold = random.uniform() * add_up(weights)
    running = 0.0
    chosen = 0
    for index, weight in enumerate(weights):
        if weight > 0.0:
            chosen = index
        running += weight
        if running > threshold:
            break
    return chosen


def add_up(numbers: Iterable[float]) -> float:
    """Returns the sum, added left to right as the engine does: `sum` compensates from Python 3.12 on."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def mix_array(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Applies the finaliser of SplitMix64 elementwise."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))


def fold_array(
    keys: NDArray[np.uint64] | Sequence[int], words: NDArray[np.uint64] | Sequence[int]
) -> NDArray[np.uint64]:
    """Returns the keys with one word mixed into each."""
    words = np.atleast_1d(np.asarray(words, dtype=np.uint64))
    return mix_array(np.asarray(keys, dtype=np.uint64) ^ mix_array(words + np.uint64(GOLDEN)))


def uniform_array(keys: NDArray[np.uint64], purpose: int) -> NDArray[np.float64]:
    """Returns the first number in [0, 1) of the stream of each key."""
    bits = mix_array(fold_array(keys, [purpose]) + np.uint64(GOLDEN))
    return (bits >> np.uint64(11)).astype(np.float64) / (1 << 53)
