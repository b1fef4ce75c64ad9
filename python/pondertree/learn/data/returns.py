"""Value targets: discounted n-step returns with bootstrapping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.data.records import GameRecord

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

    In a game without rewards the reward of the last move is the result; after truncation or resignation the values
    are still the result, but no reward is. In a game of rewards each return sums `steps` rewards (0: all) and then
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
    game_rewards = game.rewards.astype(np.float64)
    if reach >= count:
        known[: stop.max(initial=0)] = _discounted_sums(game_rewards[: stop.max(initial=0)], discount)
    else:
        for step in range(reach):
            counts = places + step < stop
            known[counts] += discount**step * game_rewards[places[counts] + step]
    left = stop < count
    bootstrap_offset[left] = (stop - places)[left]
    return Returns(game.rewards.astype(np.float32), known.astype(np.float32), bootstrap_offset, ends)


def _discounted_sums(rewards: NDArray[np.float64], discount: float) -> list[float]:
    """Returns the discounted sum of the rewards from each position on, in one pass."""
    sums = []
    total = 0.0
    for reward in reversed(rewards.tolist()):
        total = reward + discount * total
        sums.append(total)
    return sums[::-1]
