"""The newest positions in memory, from which batches are drawn, newer ones more often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ponderosa.learn.config_sections import ReplayConfig
from ponderosa.learn.game_spec import GameSpec
from ponderosa.learn.observations import Seen, seen_in, widths
from ponderosa.learn.records import GameRecord

#: Rows set aside at first; memory grows by doubling up to the window.
FIRST_ROWS = 4096
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
        self._num_actions = spec.info.num_actions
        self._config = config
        self._begin = 0
        self._length = 0
        self.seen = 0
        """Positions that ever came in."""
        rows = min(FIRST_ROWS, config.window)
        planes, numbers = widths(spec)
        self._planes = np.zeros((rows, planes), dtype=np.uint64)
        self._numbers = np.zeros((rows, numbers), dtype=np.float32)
        self._actions = np.full((rows, 8), self._num_actions, dtype=np.uint16)
        self._policy = np.zeros((rows, 8), dtype=np.float32)
        self._results = np.zeros(rows, dtype=np.float32)
        self._values = np.zeros(rows, dtype=np.float32)

    def __len__(self) -> int:
        return self._length

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
        self._widen(int(counts[full].max()))
        # Actions and policies lie one behind another; those of a position fill the first places of its row.
        filled = np.arange(self._actions.shape[1]) < counts[full][:, None]
        learned = np.repeat(full, counts)
        actions = np.full(filled.shape, self._num_actions, dtype=np.uint16)
        actions[filled] = np.concatenate([game.actions for game in games])[learned]
        policy = np.zeros(filled.shape, dtype=np.float32)
        policy[filled] = np.concatenate([game.policy for game in games])[learned]
        columns = {
            "_planes": np.concatenate([seen.planes for seen, _ in found])[full],
            "_numbers": np.concatenate([seen.numbers for seen, _ in found])[full],
            "_actions": actions,
            "_policy": policy,
            "_results": np.concatenate(
                [game.returns[players] for game, (_, players) in zip(games, found, strict=True)]
            )[full],
            "_values": np.concatenate([game.values for game in games])[full],
        }
        rows = len(actions)
        kept = min(rows, self._config.window)
        places = self._places(kept)
        for name, column in columns.items():
            getattr(self, name)[places] = column[rows - kept :]
        return rows

    def sample(self, size: int, numbers: np.random.Generator) -> TrainingBatch:
        """Draws positions, with the density of a straight line that rises towards the newest."""
        fresh = self._config.fresh
        share = numbers.random(size)
        if fresh > 0.0:
            # The distribution function is (1 - fresh) x + fresh x², x from the oldest, 0, to the newest, 1.
            share = (np.sqrt((1.0 - fresh) ** 2 + 4.0 * fresh * share) - (1.0 - fresh)) / (2.0 * fresh)
        chosen = np.minimum((share * self._length).astype(np.int64), self._length - 1)
        return self.take(chosen)

    def take(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        """The positions of these places, 0 being the oldest."""
        rows = (self._begin + chosen) % len(self._results)
        return TrainingBatch(
            Seen(self._planes[rows], self._numbers[rows]),
            self._actions[rows].astype(np.int64),
            self._policy[rows],
            self._results[rows],
            self._values[rows],
        )

    def saved(self) -> dict[str, NDArray[Any]]:
        """What cannot be found in the games: nothing."""
        return {}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Goes on from what `saved` gave, when the games are in again."""

    def _places(self, count: int) -> NDArray[np.int64]:
        """Room for `count` more positions, at most as many as the window has; the oldest make way."""
        rows = len(self._results)
        while self._length + count > rows and rows < self._config.window:
            rows = min(2 * rows, self._config.window)
            self._grow(rows)
        places = (self._begin + self._length + np.arange(count)) % rows
        too_many = max(self._length + count - rows, 0)
        self._begin = (self._begin + too_many) % rows
        self._length += count - too_many
        return places

    def _grow(self, rows: int) -> None:
        """More rows. Until the window is full it begins at 0, so that nothing has to be moved."""
        for name in ("_planes", "_numbers", "_actions", "_policy", "_results", "_values"):
            old = getattr(self, name)
            new = np.zeros((rows, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _widen(self, count: int) -> None:
        """Room for positions with so many legal actions."""
        width = self._actions.shape[1]
        if count <= width:
            return
        more = -(-count // 8) * 8 - width
        self._actions = np.pad(self._actions, ((0, 0), (0, more)), constant_values=self._num_actions)
        self._policy = np.pad(self._policy, ((0, 0), (0, more)))
