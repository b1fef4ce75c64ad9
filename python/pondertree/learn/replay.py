"""The newest positions in memory, from which batches are drawn, newer ones more often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.config_sections import ReplayConfig
from pondertree.learn.game_spec import GameSpec
from pondertree.learn.observations import Seen, seen_in, widths
from pondertree.learn.records import GameRecord
from pondertree.learn.ring import Ring

#: Games that are taken in together.
AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Positions to learn from, B of them, with at most K legal actions."""

    seen: Seen
    """What the network sees, packed."""
    actions: NDArray[np.int64]
    """The legal actions [B, K]; behind the last one `num_actions`, which is none."""
    policy: NDArray[np.float32]
    """What the policy should be, over these [B, K]."""
    results: NDArray[np.float32]
    """Results of the games, for the player to move [B]."""
    values: NDArray[np.float32]
    """Values that the searches found, for the player to move [B]."""


class Replay:
    """A window over the positions of the games, oldest first."""

    def __init__(self, spec: GameSpec, config: ReplayConfig) -> None:
        self._spec = spec
        self._config = config
        self.seen = 0
        """Positions that ever came in."""
        planes, numbers = widths(spec)
        self._ring = Ring(
            config.window,
            {
                "planes": np.zeros(planes, dtype=np.uint64),
                "numbers": np.zeros(numbers, dtype=np.float32),
                "actions": np.full(8, spec.info.num_actions, dtype=np.uint16),
                "policy": np.zeros(8, dtype=np.float32),
                "results": np.zeros((), dtype=np.float32),
                "values": np.zeros((), dtype=np.float32),
            },
        )

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, games: Iterable[GameRecord]) -> int:
        """Takes in the positions of games that had a full search; how many."""
        games = [game for game in games if game.full.any()]
        added = sum(self._take_in(games[first : first + AT_ONCE]) for first in range(0, len(games), AT_ONCE))
        self.seen += added
        return added

    def _take_in(self, games: Sequence[GameRecord]) -> int:
        found = [seen_in(game, self._spec) for game in games]
        full = np.concatenate([game.full for game in games])
        counts = np.concatenate([game.counts for game in games])
        for name in ("actions", "policy"):
            self._ring.widen(name, -(-int(counts[full].max()) // 8) * 8)
        # Actions and policies lie one behind another; those of a position fill the first places of its row.
        filled = np.arange(self._ring.columns["actions"].shape[1]) < counts[full][:, None]
        learned = np.repeat(full, counts)
        actions = np.full(filled.shape, self._spec.info.num_actions, dtype=np.uint16)
        actions[filled] = np.concatenate([game.actions for game in games])[learned]
        policy = np.zeros(filled.shape, dtype=np.float32)
        policy[filled] = np.concatenate([game.policy for game in games])[learned]
        results = [game.returns[players] for game, (_, players) in zip(games, found, strict=True)]
        self._ring.append(
            {
                "planes": np.concatenate([seen.planes for seen, _ in found])[full],
                "numbers": np.concatenate([seen.numbers for seen, _ in found])[full],
                "actions": actions,
                "policy": policy,
                "results": np.concatenate(results)[full],
                "values": np.concatenate([game.values for game in games])[full],
            }
        )
        return len(actions)

    def sample(self, size: int, numbers: np.random.Generator) -> TrainingBatch:
        """Draws positions, with the density of a straight line that rises towards the newest."""
        fresh = self._config.fresh
        share = numbers.random(size)
        if fresh > 0.0:
            # The distribution function is (1 - fresh) x + fresh x², x from the oldest, 0, to the newest, 1.
            share = (np.sqrt((1.0 - fresh) ** 2 + 4.0 * fresh * share) - (1.0 - fresh)) / (2.0 * fresh)
        chosen = np.minimum((share * len(self)).astype(np.int64), len(self) - 1)
        return self.take(chosen)

    def take(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        """The positions of these places, 0 being the oldest."""
        planes, numbers, actions, policy, results, values = (
            self._ring.take(name, chosen) for name in ("planes", "numbers", "actions", "policy", "results", "values")
        )
        return TrainingBatch(Seen(planes, numbers), actions.astype(np.int64), policy, results, values)

    def saved(self) -> dict[str, NDArray[Any]]:
        """What cannot be found in the games: nothing."""
        return {}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Goes on from what `saved` gave, when the games are in again."""
