"""The legal actions of many positions, one position after another, and numbers that belong to them."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LegalActions:
    """The legal actions of N positions. What is computed for one of them does not depend on the others."""

    def __init__(self, counts: NDArray[np.int64], actions: NDArray[np.uint16]) -> None:
        self.counts = counts
        """Legal actions of each position [N]."""
        self.actions = actions
        """All of them [L]."""
        self.ends = np.cumsum(counts)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The position that each belongs to [L]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def shares(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Weights of the actions [L] as shares that sum to 1 in each position."""
        sums = np.add.reduceat(weights, self.ends - self.counts)
        return np.asarray(weights / np.repeat(sums, self.counts), dtype=np.float32)

    def parts(self, numbers: NDArray[Any]) -> list[NDArray[Any]]:
        """Numbers of the actions [L], those of each position by themselves."""
        ends = self.ends.tolist()
        return [numbers[first:end] for first, end in itertools.pairwise([0, *ends])]

    def drawn(
        self, shares: NDArray[np.float32], which: NDArray[np.bool_], uniform: NDArray[np.float64], temperature: float
    ) -> NDArray[np.uint16]:
        """An action by its share [L] for each of the positions `which` [N]; `uniform` are their random numbers."""
        counts, chosen = self.counts[which], which[self.rows]
        # A row for each position, with zeros behind its last action.
        filled = np.arange(counts.max(initial=1)) < counts[:, None]
        table = np.zeros(filled.shape)
        table[filled] = shares[chosen]
        if temperature != 1.0:
            with np.errstate(divide="ignore"):
                logits = np.log(table) / temperature
            table = np.exp(logits - logits.max(axis=1, keepdims=True))
        ends = np.cumsum(table, axis=1)
        drawn = np.minimum((ends <= (uniform * ends[:, -1])[:, None]).sum(axis=1), counts - 1)
        found: NDArray[np.uint16] = self.actions[(self.ends - self.counts)[which] + drawn]
        return found
