"""The newest positions in memory, from which batches are drawn, newer ones more often."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ponderosa.learn.config import ReplayConfig
from ponderosa.learn.game_spec import GameSpec
from ponderosa.learn.observations import ObservationCodec
from ponderosa.learn.records import GameRecord

#: Rows set aside at first; memory grows by doubling up to the window.
FIRST_ROWS = 4096


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Positions to learn from, B of them, with at most K legal actions."""

    observations: NDArray[np.float32]
    """[B, ...]"""
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
        self._factory: Callable[[], Any] = spec.factory
        self._codec = ObservationCodec(spec.info, spec.shape)
        self._num_actions = spec.info.num_actions
        self._config = config
        self._begin = 0
        self._length = 0
        self.seen = 0
        """Positions that ever came in."""
        rows = min(FIRST_ROWS, config.window)
        self._packed = np.zeros((rows, self._codec.row_bytes), dtype=np.uint8)
        self._actions = np.full((rows, 8), self._num_actions, dtype=np.uint16)
        self._policy = np.zeros((rows, 8), dtype=np.float32)
        self._results = np.zeros(rows, dtype=np.float32)
        self._values = np.zeros(rows, dtype=np.float32)

    def __len__(self) -> int:
        return self._length

    def add(self, games: Iterable[GameRecord]) -> int:
        """Takes in the positions of games that had a full search; how many."""
        added = 0
        for game in games:
            examples = [one for one in game.examples(self._factory) if one.policy is not None]
            if not examples:
                continue
            observations = np.stack([np.asarray(one.state.observation(), dtype=np.float32) for one in examples])
            counts = np.array([len(one.actions) for one in examples])
            self._widen(int(counts.max()))
            filled = np.arange(self._actions.shape[1]) < counts[:, None]
            places = np.array([self._next_place() for _ in examples])
            self._packed[places] = self._codec.pack(observations)
            self._actions[places] = _spread(filled, [one.actions for one in examples], self._num_actions)
            self._policy[places] = _spread(filled, [one.policy for one in examples], 0.0)
            self._results[places] = [one.result for one in examples]
            self._values[places] = [one.value for one in examples]
            added += len(examples)
        self.seen += added
        return added

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
        actions = self._actions[rows]
        width = max(int((actions < self._num_actions).sum(axis=1).max(initial=1)), 1)
        return TrainingBatch(
            self._codec.unpack(self._packed[rows]),
            actions[:, :width].astype(np.int64),
            self._policy[rows, :width],
            self._results[rows],
            self._values[rows],
        )

    def _next_place(self) -> int:
        rows = len(self._results)
        if self._length == rows and rows < self._config.window:
            self._grow(min(2 * rows, self._config.window))
            rows = len(self._results)
        if self._length == rows:
            place, self._begin = self._begin, (self._begin + 1) % rows
            return place
        self._length += 1
        return (self._begin + self._length - 1) % rows

    def _grow(self, rows: int) -> None:
        """More rows. Until the window is full it begins at 0, so that nothing has to be moved."""
        for name in ("_packed", "_actions", "_policy", "_results", "_values"):
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


def _spread(filled: NDArray[np.bool_], lists: list[Any], rest: float) -> NDArray[Any]:
    """Lists as rows of a table, with `rest` behind their ends."""
    entries = np.concatenate(lists)
    table = np.full(filled.shape, rest, dtype=entries.dtype)
    table[filled] = entries
    return table
