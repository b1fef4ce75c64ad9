"""What came of each position of a game: rewards, results, and what is left to the value of a later position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.records import GameRecord

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
