"""The journal of a run: which actor sent each shard, and at which optimiser step the learner received it.

With several actors a training is a function of this order (`pondertree.learn.loop.replay_order`). A line is written
before its shard, whose appearance stores the games: a line without its shard is void, and the next one replaces it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from pondertree.errors import StorageError
from pondertree.files import append_lines, reading, write_all


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a shard is from, and when the learner received it."""

    actor: int
    lease: int
    """Number of the lease: a range of game numbers, granted to an actor when it starts."""
    number: int
    """Number of the shard within the lease."""
    version: int
    """Optimiser step of the weights that played its last moves."""
    step: int
    """Optimiser step of the learner."""
    elapsed: float
    """Seconds of training."""


class ShardJournal:
    """Appends to the journal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None

    def add_shard(self, first: int, count: int, origin: Origin) -> None:
        """Records the shard that is stored next: its first game and the number of its games."""
        self._add({"first": first, "count": count, **asdict(origin)})

    def add_resumption(self, step: int, games: int, elapsed: float) -> None:
        """Records that the stored shards beyond `games` were added to the replay buffer at `step`."""
        self._add({"resumed": step, "games": games, "elapsed": elapsed})

    def _add(self, line: dict[str, Any]) -> None:
        try:
            if self._file is None:
                self._file = append_lines(self.path)
            write_all(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(f"{str(self.path)!r} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A shard in the order of the learner."""

    first: int
    """Number of games stored before."""
    count: int
    origin: Origin


def read_order(path: Path) -> list[Arrival]:
    """Returns the shards in the order in which the learner of the newest weights received them."""
    found: dict[int, Arrival] = {}
    with reading(path, "a journal of shards", StorageError) as file:
        for text in file.read_bytes().splitlines() if file.exists() else ():
            try:
                line = json.loads(text)
            except ValueError:  # cut by a kill
                continue
            if "resumed" in line:
                # What the learner had received after its checkpoint, it received again when it resumed or diverged.
                for first, arrival in found.items():
                    if first + arrival.count > line["games"]:
                        origin = asdict(arrival.origin) | {"step": line["resumed"], "elapsed": line["elapsed"]}
                        found[first] = Arrival(first, arrival.count, Origin(**origin))
                continue
            first, count = line.pop("first"), line.pop("count")
            found[first] = Arrival(first, count, Origin(**line))
    return [found[first] for first in sorted(found)]


def elapsed_at(path: Path, games: int) -> float | None:
    """Returns the recorded time, in seconds, of the shard at whose end `games` are stored; None if it has no line."""
    ends: dict[int, float] = {}
    with suppress(StorageError):  # only `relearn` needs the journal
        ends = {arrival.first + arrival.count: arrival.origin.elapsed for arrival in read_order(path)}
    return ends.get(games)
