"""Training targets: pruned visit counts, n-step returns, and operations on ragged lists of legal actions.

The policy target of Gumbel search is its improved policy. That of PUCT is its visits without forced playouts
(policy-target pruning, Wu 2019, section 3.2).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.data.records import GameRecord
from pondertree.result import SearchResult


def pruned_policy(result: SearchResult, legal: NDArray[np.uint16], c_puct: float, forced: float) -> NDArray[np.float32]:
    """Returns the pruned visit distribution of a PUCT search over the legal actions."""
    actions, visits, sums, priors, *_ = result.edges
    pruned = np.zeros(len(result.visits), dtype=np.float64)
    pruned[actions] = pruned_visits(visits.astype(np.float64), sums, priors.astype(np.float64), c_puct, forced)
    shares = pruned[legal]
    return np.asarray(shares / shares.sum(), dtype=np.float32)


def pruned_visits(
    visits: NDArray[np.float64], sums: NDArray[np.float64], priors: NDArray[np.float64], c_puct: float, forced: float
) -> NDArray[np.float64]:
    """Subtracts forced visits as long as each move's PUCT score stays below that of the most visited move.

    At most sqrt(forced * P * N) visits of a move were forced. A move left with a single visit loses it.
    """
    total = visits.sum()
    best = int(np.argmax(visits))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(visits > 0, sums / visits, 0.0)
        explore = c_puct * priors * np.sqrt(total + 1.0)
        goal = q[best] + explore[best] / (1.0 + visits[best])
        # The fewest visits that keep Q + explore / (1 + n) at or below the goal.
        needed = np.where(goal > q, np.ceil(explore / np.maximum(goal - q, 1e-12) - 1.0), visits)
    allowed = np.ceil(np.sqrt(forced * priors * total))
    pruned = np.clip(needed, np.maximum(visits - allowed, 0.0), visits)
    pruned[pruned <= 1.0] = 0.0
    pruned[best] = visits[best]
    return pruned


#: The offset of positions whose return does not bootstrap.
NO_BOOTSTRAP = -1


@dataclass(frozen=True, slots=True)
class Returns:
    """Discounted returns of N positions, up to bootstrapping."""

    rewards: NDArray[np.float32]
    """Reward of each move for its player [N]."""
    known: NDArray[np.float32]
    """Discounted rewards for the player to move, up to the bootstrap position [N]."""
    bootstrap_offset: NDArray[np.int64]
    """Moves from each position to the one whose value it bootstraps from; `NO_BOOTSTRAP` for none [N]."""
    ends: bool
    """Whether the game ended with the last move, without truncation or resignation."""

    def values(self, found: NDArray[np.float32], discount: float) -> NDArray[np.float32]:
        """Returns the value targets of whole games, concatenated; `found` are the root values of their positions."""
        later = np.arange(len(found)) + np.maximum(self.bootstrap_offset, 0)
        return self.values_with(found[later], discount)

    def values_with(self, later: NDArray[np.float32], discount: float) -> NDArray[np.float32]:
        """Returns the value targets, bootstrapping from `later`, one value per position."""
        offset = self.bootstrap_offset
        rest = np.where(offset == NO_BOOTSTRAP, 0.0, discount ** np.maximum(offset, 0) * later)
        return (self.known + rest).astype(np.float32)


def returns_of(game: GameRecord, players: NDArray[np.uint8], discount: float, steps: int) -> Returns:
    """Computes the n-step returns of a game with `players` to move.

    In a game without rewards the last move brings the result as its reward; after truncation or resignation the values
    still are the result, but no move brings it. In a game of rewards each return sums `steps` rewards (0: all) and then
    bootstraps; in a truncated episode at the latest from its last position.
    """
    count = len(game.moves)
    ends = not (game.cut or game.resigned)
    none = np.full(count, NO_BOOTSTRAP, dtype=np.int64)
    if not len(game.rewards):
        results = game.returns[players].astype(np.float32)
        moves_left = np.arange(count - 1, -1, -1)
        rewards = np.zeros(count, dtype=np.float32)
        if ends:
            rewards[-1] = results[-1]
        return Returns(rewards, (results * discount**moves_left).astype(np.float32), none, ends)
    known = np.zeros(count, dtype=np.float64)
    bootstrap_offset = none.copy()
    places = np.arange(count)
    reach = steps or count
    # From each position, the end of the rewards that its return sums.
    stop = np.minimum(places + reach, count if ends else count - 1)
    worth = game.rewards.astype(np.float64)
    for step in range(min(reach, count)):
        counts = places + step < stop
        known[counts] += discount**step * worth[places[counts] + step]
    left = stop < count
    bootstrap_offset[left] = (stop - places)[left]
    return Returns(game.rewards.astype(np.float32), known.astype(np.float32), bootstrap_offset, ends)


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
