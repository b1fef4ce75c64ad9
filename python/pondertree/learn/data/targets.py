"""What a search teaches: the policy that is learned from its root.

Gumbel search gives its improved policy. PUCT gives its visits, less those that were only spent to explore: forced
playouts are taken off again (policy-target pruning, Wu 2019, section 3.2).
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
    """The visits of a PUCT search over the legal actions, less what was forced; it sums to 1."""
    actions, visits, sums, priors, *_ = result.edges
    kept = np.zeros(len(result.visits), dtype=np.float64)
    kept[actions] = pruned_visits(visits.astype(np.float64), sums, priors.astype(np.float64), c_puct, forced)
    shares = kept[legal]
    return np.asarray(shares / shares.sum(), dtype=np.float32)


def pruned_visits(
    visits: NDArray[np.float64], sums: NDArray[np.float64], priors: NDArray[np.float64], c_puct: float, forced: float
) -> NDArray[np.float64]:
    """Visits, less as many forced ones as leave each move's score below that of the move visited most.

    So many were forced at most: sqrt(forced * P * N). A move that is left with one visit, which says nothing, loses it.
    """
    total = visits.sum()
    best = int(np.argmax(visits))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(visits > 0, sums / visits, 0.0)
        explore = c_puct * priors * np.sqrt(total + 1.0)
        goal = q[best] + explore[best] / (1.0 + visits[best])
        # As few visits as keep Q + explore / (1 + n) at or below the goal.
        needed = np.where(goal > q, np.ceil(explore / np.maximum(goal - q, 1e-12) - 1.0), visits)
    allowed = np.ceil(np.sqrt(forced * priors * total))
    kept = np.clip(needed, np.maximum(visits - allowed, 0.0), visits)
    kept[kept <= 1.0] = 0.0
    kept[best] = visits[best]
    return kept


#: Nothing is left to the value of a later position.
NOTHING = -1


@dataclass(frozen=True, slots=True)
class Returns:
    """What is known of positions from what came after them."""

    rewards: NDArray[np.float32]
    """What the move brings the player who makes it."""
    known: NDArray[np.float32]
    """Discounted rewards for the player to move, up to the position whose value counts for the rest."""
    ahead: NDArray[np.int64]
    """How many moves later that position is; `NOTHING` where all is known."""
    ends: bool
    """Whether the game ended behind the last move, and was not only broken off."""

    def values(self, found: NDArray[np.float32], discount: float) -> NDArray[np.float32]:
        """The value of each position of whole games, one behind another, `found` being what their searches found."""
        later = np.arange(len(found)) + np.maximum(self.ahead, 0)
        return self.values_with(found[later], discount)

    def values_with(self, later: NDArray[np.float32], discount: float) -> NDArray[np.float32]:
        """The value of each position, with those of the positions `ahead` of them."""
        rest = np.where(self.ahead == NOTHING, 0.0, discount ** np.maximum(self.ahead, 0) * later)
        return (self.known + rest).astype(np.float32)


def returns_of(game: GameRecord, players: NDArray[np.uint8], discount: float, steps: int) -> Returns:
    """The returns of a game in which `players` were to move.

    A game without rewards has one, its result, with the last move; if it was only broken off, its positions know the
    result (a player gave up, or the game was too long and counts as a draw), but no move brings it. A game of rewards
    counts `steps` of them (all with 0) and leaves the rest to the value that was found then. Where an episode was only
    too long, that is at the latest its last position, beyond which nobody looked.
    """
    count = len(game.moves)
    ends = not (game.cut or game.resigned)
    nothing = np.full(count, NOTHING, dtype=np.int64)
    if not len(game.rewards):
        results = game.returns[players].astype(np.float32)
        moves_left = np.arange(count - 1, -1, -1)
        rewards = np.zeros(count, dtype=np.float32)
        if ends:
            rewards[-1] = results[-1]
        return Returns(rewards, (results * discount**moves_left).astype(np.float32), nothing, ends)
    known = np.zeros(count, dtype=np.float64)
    ahead = nothing.copy()
    places = np.arange(count)
    reach = steps or count
    # The first position that an episode does not count any more, as seen from each.
    stop = np.minimum(places + reach, count if ends else count - 1)
    worth = game.rewards.astype(np.float64)
    for step in range(min(reach, count)):
        counts = places + step < stop
        known[counts] += discount**step * worth[places[counts] + step]
    left = stop < count
    ahead[left] = (stop - places)[left]
    return Returns(game.rewards.astype(np.float32), known.astype(np.float32), ahead, ends)


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
