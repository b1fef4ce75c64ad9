"""The replay buffer of policy-value training, with recency-weighted sampling, and the ring buffer below all replay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pondertree.learn.config import Config, GameSpec, ReplayConfig
from pondertree.learn.data.observations import PackedObservations, packed_observations, packed_widths
from pondertree.learn.data.records import Floats, GameRecord
from pondertree.learn.data.returns import returns_of

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


class PositionBuffer(ABC):
    """The newest positions of the games, oldest first."""

    def __init__(self, spec: GameSpec, config: ReplayConfig, columns: Mapping[str, DTypeLike]) -> None:
        """`columns` gives the types of the numbers that a position has beside observation, actions and policy."""
        self._spec = spec
        self._fresh = config.fresh
        self.seen = 0
        """Positions added so far."""
        planes, numbers = packed_widths(spec)
        self._ring = RingBuffer(
            config.window,
            {
                "planes": np.zeros(planes, dtype=np.uint64),
                "numbers": np.zeros(numbers, dtype=np.uint8 if spec.pixels else np.float32),
                "actions": np.full(8, spec.info.num_actions, dtype=np.uint16),
                "policy": np.zeros(8, dtype=np.float32),
                **{name: np.zeros((), dtype=kind) for name, kind in columns.items()},
            },
        )

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, games: Iterable[GameRecord]) -> int:
        """Adds the positions of games; returns their number."""
        games = [game for game in games if self._rows(game).any()]
        added = sum(self._add_batch(games[first : first + CHUNK]) for first in range(0, len(games), CHUNK))
        self.seen += added
        return added

    @abstractmethod
    def _rows(self, game: GameRecord) -> NDArray[np.bool_]:
        """Returns the mask of the positions of a game that are added."""

    @abstractmethod
    def _numbers(self, games: Sequence[GameRecord], players: Sequence[NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
        """Returns the other columns of all positions of games; `players` are to move in them."""

    def _add_batch(self, games: Sequence[GameRecord]) -> int:
        packed = [packed_observations(game, self._spec) for game in games]
        rows = np.concatenate([self._rows(game) for game in games])
        counts = np.concatenate([game.counts for game in games])
        for name in ("actions", "policy"):
            self._ring.widen(name, -(-int(counts[rows].max()) // 8) * 8)
        # Actions and policies are concatenated; those of a position fill the first entries of its row.
        filled = np.arange(self._ring.columns["actions"].shape[1]) < counts[rows][:, None]
        chosen = np.repeat(rows, counts)
        actions = np.full(filled.shape, self._spec.info.num_actions, dtype=np.uint16)
        actions[filled] = np.concatenate([game.actions for game in games])[chosen]
        policy = np.zeros(filled.shape, dtype=np.float32)
        policy[filled] = np.concatenate([game.policy for game in games])[chosen]
        columns = self._numbers(games, [players for _, players in packed])
        columns["planes"] = np.concatenate([seen.planes for seen, _ in packed])
        columns["numbers"] = np.concatenate([seen.numbers for seen, _ in packed])
        found = {name: column[rows] for name, column in columns.items()}
        self._ring.append({**found, "actions": actions, "policy": policy})
        return len(actions)

    def _newer(self, share: NDArray[np.float64]) -> NDArray[np.int64]:
        """Maps uniform numbers to indices, with a density that rises linearly towards the newest."""
        fresh = self._fresh
        if fresh > 0.0:
            # Inverse of the distribution function (1 - fresh) x + fresh x², x from the oldest, 0, to the newest, 1.
            share = (np.sqrt((1.0 - fresh) ** 2 + 4.0 * fresh * share) - (1.0 - fresh)) / (2.0 * fresh)
        return np.minimum((share * len(self)).astype(np.int64), len(self) - 1)

    def observations_at(self, chosen: NDArray[np.int64]) -> PackedObservations:
        """Returns the packed observations of the positions at these indices."""
        return PackedObservations(self._ring.gather("planes", chosen), self._ring.gather("numbers", chosen))

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the state that cannot be rebuilt from the games."""
        return {}

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:  # noqa: B027 (optional)
        """Restores what `state_dict` returned, after the games have been added."""


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
    """Game results, or discounted returns, for the player to move [B]."""
    values: Floats
    """Root values for the player to move [B]."""


class ReplayBuffer(PositionBuffer):
    """The newest positions that had a full search."""

    def __init__(self, spec: GameSpec, config: Config) -> None:
        super().__init__(spec, config.replay, {"results": np.float32, "values": np.float32})
        self._returns = config.returns
        self.largest = 0.0
        """Largest absolute return."""

    def _rows(self, game: GameRecord) -> NDArray[np.bool_]:
        return game.full

    def _numbers(self, games: Sequence[GameRecord], players: Sequence[NDArray[np.uint8]]) -> dict[str, NDArray[Any]]:
        results = np.concatenate([self._results(game, to_play) for game, to_play in zip(games, players, strict=True)])
        if self._spec.info.has_rewards:
            self.largest = max(self.largest, float(np.abs(results).max()))
        return {"results": results, "values": np.concatenate([game.values for game in games])}

    def _results(self, game: GameRecord, players: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns the result for the player to move in each position; with rewards the n-step return from there."""
        if not self._spec.info.has_rewards:
            results: NDArray[np.float32] = game.returns[players]
            return results
        discount = self._returns.discount
        return returns_of(game, players, discount, self._returns.td_steps).values(game.values, discount)

    def sample(self, size: int, numbers: np.random.Generator) -> TrainingBatch:
        """Samples positions with a density that rises linearly towards the newest."""
        return self.gather(self._newer(numbers.random(size)))

    def gather(self, chosen: NDArray[np.int64]) -> TrainingBatch:
        """Returns the positions at these indices, 0 being the oldest."""
        actions, policy, results, values = (
            self._ring.gather(name, chosen) for name in ("actions", "policy", "results", "values")
        )
        return TrainingBatch(self.observations_at(chosen), actions.astype(np.int64), policy, results, values)
