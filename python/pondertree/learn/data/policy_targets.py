"""Policies over the legal actions of many positions, and policy targets.

The target of PUCT is its visits without forced playouts (policy-target pruning, Wu 2019, section 3.2); that of Gumbel
search is its improved policy.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.config import Puct
from pondertree.result import SearchResult


class LegalActions:
    """The ragged lists of legal actions of N positions, L in total. Rows are computed independently of each other."""

    def __init__(self, counts: NDArray[np.int64], actions: NDArray[np.uint16]) -> None:
        self.counts = counts
        """Number of legal actions of each position [N]."""
        self.actions = actions
        """Legal actions of all positions, concatenated [L]."""
        self.ends = np.cumsum(counts)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The position of each action [L]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def normalised(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Normalises weights [L] to sum to 1 in each position."""
        sums = np.add.reduceat(weights, self.ends - self.counts)
        return np.asarray(weights / np.repeat(sums, self.counts), dtype=np.float32)

    def split(self, numbers: NDArray[Any]) -> list[NDArray[Any]]:
        """Splits values of actions [L] by position."""
        ends = self.ends.tolist()
        return [numbers[first:end] for first, end in itertools.pairwise([0, *ends])]

    def sample(
        self, shares: NDArray[np.float32], which: NDArray[np.bool_], uniform: NDArray[np.float64], temperature: float
    ) -> NDArray[np.uint16]:
        """Samples an action for the positions `which` [N] from probabilities [L], by their uniform random numbers."""
        counts, chosen = self.counts[which], which[self.rows]
        # One row per position, padded with zeros.
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


def pruned_policy(result: SearchResult, legal: NDArray[np.uint16], rule: Puct) -> NDArray[np.float32]:
    """Returns the pruned visit distribution of a search by a rule over the legal actions."""
    actions, visits, sums, priors, *_ = result.edges
    pruned = np.zeros(len(result.visits), dtype=np.float64)
    pruned[actions] = pruned_visits(visits.astype(np.float64), sums, priors.astype(np.float64), rule)
    shares = pruned[legal]
    return np.asarray(shares / shares.sum(), dtype=np.float32)


def pruned_visits(
    visits: NDArray[np.float64], sums: NDArray[np.float64], priors: NDArray[np.float64], rule: Puct
) -> NDArray[np.float64]:
    """Subtracts forced visits as long as each move's PUCT score stays below that of the most visited move.

    At most sqrt(`rule.forced_playouts` * P * N) visits of a move were forced. A move left with a single visit loses it.
    """
    total = visits.sum()
    best = int(np.argmax(visits))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(visits > 0, sums / visits, 0.0)
        explore = rule.exploration_weight(total + 1.0) * priors
        goal = q[best] + explore[best] / (1.0 + visits[best])
        # The fewest visits that keep Q + explore / (1 + n) at or below the goal.
        needed = np.where(goal > q, np.ceil(explore / np.maximum(goal - q, 1e-12) - 1.0), visits)
    allowed = np.ceil(np.sqrt(rule.forced_playouts * priors * total))
    pruned = np.clip(needed, np.maximum(visits - allowed, 0.0), visits)
    pruned[pruned <= 1.0] = 0.0
    pruned[best] = visits[best]
    return pruned
