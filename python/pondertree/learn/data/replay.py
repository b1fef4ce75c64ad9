"""The newest positions in memory, from which batches are drawn, newer ones more often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.sections import ReplayConfig
from pondertree.learn.data.observations import Seen, seen_in, widths
from pondertree.learn.data.records import GameRecord

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


#: Rows set aside at first.
FIRST_ROWS = 4096


class Ring:
    """The newest `most` rows, oldest first."""

    def __init__(self, most: int, empty: Mapping[str, NDArray[Any]]) -> None:
        """`empty` is an empty row by the name of its column."""
        self._most = most
        self._empty = dict(empty)
        self._begin = 0
        self._length = 0
        rows = min(FIRST_ROWS, most)
        self.columns = {name: self._rows(row, rows) for name, row in self._empty.items()}

    @staticmethod
    def _rows(row: NDArray[Any], count: int) -> NDArray[Any]:
        return np.broadcast_to(row, (count, *row.shape)).copy()

    def __len__(self) -> int:
        return self._length

    def append(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """New rows, by column; of more than there is room for, the newest."""
        count = min(len(next(iter(rows.values()))), self._most)
        held = len(self.columns[next(iter(self.columns))])
        while self._length + count > held and held < self._most:
            # Until it is full it begins at 0, so that nothing has to be moved.
            more = min(2 * held, self._most) - held
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, self._rows(self._empty[name], more)])
            held += more
        places = (self._begin + self._length + np.arange(count)) % held
        for name, column in self.columns.items():
            column[places] = rows[name][-count:]
        dropped = max(self._length + count - held, 0)
        self._begin = (self._begin + dropped) % held
        self._length += count - dropped

    def places(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows lie in the columns, 0 being the oldest."""
        places: NDArray[np.int64] = (self._begin + chosen) % len(next(iter(self.columns.values())))
        return places

    def take(self, name: str, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """These rows of a column."""
        return self.columns[name][self.places(chosen)]

    def widen(self, name: str, width: int) -> None:
        """Makes the rows of a column as long as `width`."""
        column, row = self.columns[name], self._empty[name]
        fill = row.flat[0]
        more = width - column.shape[1]
        if more > 0:
            self.columns[name] = np.pad(column, ((0, 0), (0, more)), constant_values=fill)
            self._empty[name] = np.full(width, fill, dtype=row.dtype)
