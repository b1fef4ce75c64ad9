"""Shards: immutable files of finished games, and the store that appends them.

A shard appears by atomic rename after fsync, so that it is complete or absent. Its name encodes the range of its games
in storing order: `games-000000120-00017` has games 120 to 136. The file names are the index, which therefore cannot
contradict the files. Parquet where pyarrow is installed, else .npz; folders may hold both.
"""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.files import arrays_of, current_format, make_folder, reading, replace_file
from pondertree.learn.config import GameSpec
from pondertree.learn.data.journal import Origin, ShardJournal
from pondertree.learn.data.records import (
    LIST_COLUMNS,
    OPTIONAL_COLUMNS,
    SCALAR_COLUMNS,
    Columns,
    GameRecord,
    check_games,
    from_columns,
    to_columns,
)

FORMAT = "pondertree-games"
VERSION = 1
REMEDY = "restore it, or move it and all later shards away to resume without them"
#: Games decoded per batch of a Parquet file.
BATCH = 16
NAME = re.compile(r"games-(\d{9,})-(\d{5,})\.(parquet|npz)")


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A file of games."""

    path: Path
    first: int
    """Number of games stored before."""
    count: int
    """Number of games in it."""

    @property
    def end(self) -> int:
        """Number of games stored up to its end."""
        return self.first + self.count


def list_shards(folder: Path) -> list[ShardFile]:
    """Returns the shards of a folder in storing order; raises `StorageError` if there is a gap."""
    shards = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if matched := NAME.fullmatch(path.name):
            shards.append(ShardFile(path, int(matched[1]), int(matched[2])))
    shards.sort(key=lambda shard: shard.first)
    expected = 0
    for shard in shards:
        if shard.first != expected:
            raise StorageError(
                f"{str(folder)!r} should have a shard that starts with game {expected} before {shard.path.name!r}: "
                "a file is missing or misplaced"
            )
        expected = shard.end
    return shards


@dataclass(frozen=True, slots=True)
class EncodedGames:
    """Games as the content of a shard."""

    kind: str
    """"parquet" or "npz"."""
    content: bytes
    count: int
    """Number of games."""

    def decode(self, spec: GameSpec | None = None) -> list[GameRecord]:
        """Returns the games; raises `InvalidArgumentError` if they are not of `spec`."""
        games: list[GameRecord] = []
        for columns in (_from_parquet if self.kind == "parquet" else _from_npz)(self.content, self.count):
            part = from_columns(columns)
            if spec is not None:
                check_games(part, spec)
            games += part
        _check_count(len(games), self.count)
        return games


def encode_games(games: Sequence[GameRecord], kind: str | None = None) -> EncodedGames:
    """Encodes games as Parquet where pyarrow is installed, else as .npz."""
    kind = kind or ("parquet" if importlib.util.find_spec("pyarrow") is not None else "npz")
    columns = to_columns(games)
    return EncodedGames(kind, _parquet(columns) if kind == "parquet" else _npz(columns), len(games))


def write_shard(folder: Path, first: int, games: Sequence[GameRecord], *, kind: str | None = None) -> ShardFile:
    """Writes a shard; durable when it returns. `kind` is "parquet" or "npz"."""
    return write_encoded(folder, first, encode_games(games, kind))


def write_encoded(folder: Path, first: int, games: EncodedGames) -> ShardFile:
    """Writes a shard of encoded games; durable when it returns."""
    shard = ShardFile(folder / f"games-{first:09d}-{games.count:05d}.{games.kind}", first, games.count)
    try:
        replace_file(shard.path, games.content)
    except OSError as error:
        raise StorageError(
            f"the games cannot be stored in {str(shard.path)!r}: {error.strerror}; games stored earlier are intact"
        ) from error
    return shard


def read_shard(shard: ShardFile, spec: GameSpec | None = None) -> list[GameRecord]:
    """Reads a shard; raises `StorageError` naming it if it is damaged or its games are not of `spec`."""
    with reading(shard.path, f"a shard of games ({REMEDY})", StorageError) as file:
        return EncodedGames(file.suffix.removeprefix("."), file.read_bytes(), shard.count).decode(spec)


def _check_count(found: int, expected: int) -> None:
    if found != expected:
        raise InvalidArgumentError(f"it has {found} games, its name says {expected}; {REMEDY}")


def _npz(columns: Columns) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, format=np.array(f"{FORMAT} {VERSION}"), **columns)
    return file.getvalue()


def _from_npz(content: bytes, count: int) -> Iterator[Columns]:
    columns = arrays_of(content)
    _check_format(str(columns.pop("format")))
    _check_count(len(columns["number"]), count)
    yield columns


def _parquet(columns: Columns) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays: dict[str, Any] = {name: pa.array(columns[name]) for name in SCALAR_COLUMNS}
    for name in LIST_COLUMNS:
        offsets = np.concatenate([[0], columns[f"{name}_ends"]])
        arrays[name] = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(columns[name]))
    table = pa.table(arrays).replace_schema_metadata({"format": f"{FORMAT} {VERSION}"})
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def _from_parquet(content: bytes, count: int) -> Iterator[Columns]:
    """Yields the columns of a few games at a time.

    The number of games is checked before decoding. Their decoded size cannot be: run lengths and zstd compress without
    a useful limit, and pyarrow aborts the process when it allocates for corrupt metadata. Games are validated per
    batch, so that at most one unvalidated batch is in memory.
    """
    from pondertree.optional import require

    require("pyarrow", "train", "reading this shard of games")
    import pyarrow.parquet as pq

    # Single-threaded: shards are small, and pyarrow's thread pools would outlive this call.
    file = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
    _check_format((file.schema_arrow.metadata or {}).get(b"format", b"").decode())
    _check_count(file.metadata.num_rows, count)
    for batch in file.iter_batches(BATCH, columns=[*SCALAR_COLUMNS, *LIST_COLUMNS], use_threads=False):
        columns: Columns = {name: batch[name].to_numpy(zero_copy_only=False) for name in SCALAR_COLUMNS}
        for name in LIST_COLUMNS:
            if name in OPTIONAL_COLUMNS and name not in batch.schema.names:
                continue
            columns[name] = batch[name].flatten().to_numpy(zero_copy_only=False)
            lengths = batch[name].value_lengths().to_numpy(zero_copy_only=False)
            columns[f"{name}_ends"] = np.cumsum(lengths, dtype=np.int64)
        yield columns


def _check_format(found: str) -> None:
    if current_format(found) != f"{FORMAT} {VERSION}":
        raise StorageError(f"its format is {found!r}, but this version reads {f'{FORMAT} {VERSION}'!r}")


class GameStore:
    """The shards of a run.

    Committed games are training data. Games stored after the last checkpoint are committed when a resumed run has
    played them again, or all at once by `commit_all`.

    `append` is idempotent: a resumed run that plays stored games again does not store them twice.
    """

    def __init__(
        self, folder: Path, committed: int = 0, spec: GameSpec | None = None, journal: ShardJournal | None = None
    ) -> None:
        """`committed` games were stored at the last checkpoint; shards with games of another `spec` are refused."""
        make_folder(folder, "out")
        for left in folder.glob("*.part"):
            left.unlink(missing_ok=True)
        self.folder = folder
        self._spec = spec
        self._journal = journal
        self.shards = list_shards(folder)
        self.stored = self.shards[-1].end if self.shards else 0
        if self.stored < committed:
            raise StorageError(
                f"{str(folder)!r} has {self.stored} games, but the checkpoint counts {committed}: shards are missing"
            )
        self.committed = committed
        """Number of committed games."""
        self.has_diverged = False
        """Whether other games were appended than those stored after the checkpoint."""
        waiting = [shard for shard in self.shards if shard.end > committed]
        if waiting and waiting[0].first < committed:
            raise StorageError(f"{str(waiting[0].path)!r} spans a checkpoint: it is from another run")
        self._waiting = [(shard, read_shard(shard, spec)) for shard in waiting]
        self._known = {game.number for _, games in self._waiting for game in games}

    @property
    def known(self) -> frozenset[int]:
        """Numbers of games stored after the checkpoint."""
        return frozenset(self._known)

    def newest(self, positions: int) -> list[GameRecord]:
        """Returns the newest committed games, oldest first, with at least `positions` training positions."""
        chosen: list[list[GameRecord]] = []
        for shard in reversed(self.shards):
            if positions <= 0:
                break
            if shard.end <= self.committed:
                chosen.append(read_shard(shard, self._spec))
                positions -= sum(int(game.full.sum()) for game in chosen[-1])
        return [game for games in reversed(chosen) for game in games]

    def commit_all(self, step: int = 0, elapsed: float = 0.0) -> list[GameRecord]:
        """Commits all stored games at an optimiser step, which the journal records; returns the newly committed ones.

        `elapsed` are the seconds of training that the schedules of the learner see from now on.
        """
        if self._waiting and self._journal is not None:
            self._journal.add_resumption(step, self.committed, elapsed)
        games = [game for _, games in self._waiting for game in games]
        self._waiting = []
        self.committed = self.stored
        return games

    def append(
        self,
        games: Sequence[GameRecord],
        encoded: EncodedGames | None = None,
        origin: Callable[[], Origin] | None = None,
    ) -> list[GameRecord]:
        """Stores games that are not stored yet; returns the newly committed ones.

        `encoded` are the same games, which saves encoding them; `origin` is called if games are committed, and its
        result recorded in the journal.
        """
        if self._waiting and [game.number for game in games] == [game.number for game in self._waiting[0][1]]:
            shard, expected = self._waiting.pop(0)
            self._record(shard.first, shard.count, origin() if origin is not None else None)
            self.committed = shard.end
            return expected
        new = [game for game in games if game.number not in self._known]
        if not games or not (new or self._waiting):
            return []
        self.has_diverged |= bool(self._waiting)
        made = origin() if origin is not None else None
        committed = self.commit_all() if made is None else self.commit_all(made.step, made.elapsed)
        if new:
            self._record(self.stored, len(new), made)
            content = encoded if encoded is not None and encoded.count == len(new) else encode_games(new)
            shard = write_encoded(self.folder, self.stored, content)
            self.shards.append(shard)
            self.stored = self.committed = shard.end
        return [*committed, *new]

    def _record(self, first: int, count: int, origin: Origin | None) -> None:
        if self._journal is not None and origin is not None:
            self._journal.add_shard(first, count, origin)
