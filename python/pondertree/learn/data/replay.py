"""The replay buffer of policy-value training, with recency-weighted sampling, and the ring buffer below all replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.config import GameSpec, ReplayConfig
from pondertree.learn.data.observations import PackedObservations, packed_observations, packed_widths
from pondertree.learn.data.records import Floats, GameRecord

#: Games added in one pass.
CHUNK = 256
#: Rows allocated initially.
FIRST_ROWS = 4096


class RingBuffer:
    """A ring buffer of columns with the newest `capacity` rows, oldest first; allocated by doubling."""

    def __init__(self, capacity: int, empty: Mapping[str, NDArray[Any]]) -> None:
        """`empty` maps the name of each column to an empty row."""
        self._capacity = capacity
        self._empty = dict(empty)
        self._begin = 0
        self._length = 0
        rows = min(FIRST_ROWS, capacity)
        self.columns = {name: self._rows(row, rows) for name, row in self._empty.items()}

    @staticmethod
    def _rows(row: NDArray[Any], count: int) -> NDArray[Any]:
        return np.broadcast_to(row, (count, *row.shape)).copy()

    def __len__(self) -> int:
        return self._length

    def append(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Appends rows, given by column; overwrites the oldest beyond the capacity."""
        count = min(len(next(iter(rows.values()))), self._capacity)
        allocated = len(self.columns[next(iter(self.columns))])
        while self._length + count > allocated and allocated < self._capacity:
            # Before the capacity is reached the oldest row is at 0, so growing moves no rows.
            more = min(2 * allocated, self._capacity) - allocated
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, self._rows(self._empty[name], more)])
            allocated += more
        places = (self._begin + self._length + np.arange(count)) % allocated
        for name, column in self.columns.items():
            column[places] = rows[name][-count:]
        dropped = max(self._length + count - allocated, 0)
        self._begin = (self._begin + dropped) % allocated
        self._length += count - dropped

    def places(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the storage indices of rows, 0 being the oldest."""
        places: NDArray[np.int64] = (self._begin + chosen) % len(next(iter(self.columns.values())))
        return places

    def gather(self, name: str, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """Returns rows of a column."""
        return self.columns[name][self.places(chosen)]

    def widen(self, name: str, width: int) -> None:
        """Widens the rows of a column to `width`."""
        column, row = self.columns[name], self._empty[name]
        fill = row.flat[0]
        more = width - column.shape[1]
        if more > 0:
            self.columns[name] = np.pad(column, ((0, 0), (0, more)), constant_values=fill)
            self._empty[name] = np.full(width, fill, dtype=row.dtype)


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """A batch of B positions with at most K legal actions."""

    seen: PackedObservations
    """Packed observations."""
    actions: NDArray[np.int64]
    """Legal actions [B, K], padded with `num_actions`."""
    policy: Floats
    """Policy targets over them [B, K]."""
    results: Floats
    """Game results for the player to move [B]."""
    values: Floats
    """Root values for the player to move [B]."""


class ReplayBuffer:
    """The newest positions of the games, oldest first."""

    def __init__(self, spec: GameSpec, config: ReplayConfig) -> None:
        self._spec = spec
        self._config = config
        self.seen = 0
        """Positions added so far."""
        planes, numbers = packed_widths(spec)
        self._ring = RingBuffer(
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
        """Adds the positions that had a full search; returns their number."""
        games = [game for game in games if game.full.any()]
        added = sum(self._add_batch(games[first : first + CHUNK]) for first in range(0, len(games), CHUNK))
        self.seen += added
        return added

    def _add_batch(self, games: Sequence[GameRecord]) -> int:
        found = [packed_observations(game, self._spec) for game in games]
        full = np.concatenate([game.full for game in games])
        counts = np.concatenate([game.counts for game in games])
        for name in ("actions", "policy"):
            self._ring.widen(name, -(-int(counts[full].max()) // 8) * 8)
        # Actions and policies are concatenated; those of a position fill the first entries of its row.
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
        """Samples positions with a density that rises linearly towards the newest."""
        fresh = self._config.fresh
        share = numbers.random(size)
        if fresh > 0.0:
            # Inverse of the distribution function (1 - fresh) x + fresh x², x from the oldest, 0, to the newest, 1.
            share = (np.sqrt((1.0 - fresh) ** 2 + 4.0 * fresh * share) - (1.0 - fresh)) / (2.0 * fresh)
        chosen = np.minimum((share * len(self)).astype(np.int64), len(self) - 1)
        return self.gather(chosen)

    def gather(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        """Returns the positions at these indices, 0 being the oldest."""
        planes, numbers, actions, policy, results, values = (
            self._ring.gather(name, chosen) for name in ("planes", "numbers", "actions", "policy", "results", "values")
        )
        return TrainingBatch(PackedObservations(planes, numbers), actions.astype(np.int64), policy, results, values)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the state that cannot be rebuilt from the games: none."""
        return {}

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restores what `state_dict` returned, after the games have been added."""
