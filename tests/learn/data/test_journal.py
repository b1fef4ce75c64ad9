"""The journal of shards: cut lines, a full disk, and commits of stored shards."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest
from tests.learn.data.test_records import make_game

from pondertree.errors import StorageError
from pondertree.learn.data import GameStore, Origin, ShardJournal, read_order
from pondertree.learn.evaluation.metrics import Metrics


def origin(step: int = 0, elapsed: float = 0.0) -> Origin:
    return Origin(0, 0, 0, 0, step, elapsed)


def write(path: Path, first: int) -> None:
    journal = ShardJournal(path)
    journal.add_shard(first, 1, origin())
    journal.close()


@pytest.mark.parametrize("size", [5, 5000])
def test_line_after_a_cut_one_is_read(size: int, tmp_path: Path) -> None:
    path = tmp_path / "shards.jsonl"
    write(path, 0)
    with open(path, "ab") as file:
        file.write(b'{"first":1' + b" " * size)
    write(path, 1)
    assert [arrival.first for arrival in read_order(path)] == [0, 1]
    path.write_bytes(b'{"first"')
    write(path, 0)
    assert [arrival.first for arrival in read_order(path)] == [0]


def test_lines_are_durable_when_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    path = tmp_path / "shards.jsonl"
    journal = ShardJournal(path)
    journal.add_shard(0, 1, origin())
    assert synced == [path.stat().st_size]
    journal.close()


class FullDisk(io.FileIO):
    """A file on a disk with ten free bytes."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self.free = 10

    def write(self, content: object) -> int:
        data = bytes(content)[: self.free]  # type: ignore[call-overload]
        if not data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.free -= len(data)
        return super().write(data)

    def close(self) -> None:
        was_open = not self.closed
        super().close()
        if was_open:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_is_reported_once_and_the_next_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shards.jsonl"
    write(path, 0)
    with monkeypatch.context() as patch:
        patch.setattr(io, "FileIO", FullDisk)
        journal = ShardJournal(path)
        with pytest.raises(StorageError, match="cannot be written: No space left on device"):
            journal.add_shard(1, 1, origin())
        journal.close()
        metrics = Metrics(tmp_path / "metrics.jsonl")
        with pytest.raises(StorageError, match="cannot be written: No space left on device"):
            metrics.add({"kind": "round", "round": 1, "step": 1})
        metrics.close()
    assert path.read_bytes().endswith(b'{"first":1')
    write(path, 1)
    assert [arrival.first for arrival in read_order(path)] == [0, 1]


def test_every_commit_of_stored_shards_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "shards.jsonl"
    journal = ShardJournal(path)
    store = GameStore(tmp_path / "games", journal=journal)
    for number in range(4):
        store.append([make_game(number)], None, lambda step=number: origin(step, 10.0 * step))  # type: ignore[misc]
    # After the checkpoint of step 1: the second shard is played again, then others are.
    store = GameStore(tmp_path / "games", 1, journal=journal)
    store.append([make_game(1)], None, lambda: origin(5, 50.0))
    store.append([make_game(9)], None, lambda: origin(7, 70.0))
    assert [(one.first, one.origin.step, one.origin.elapsed) for one in read_order(path)] == [
        (0, 0, 0.0),
        (1, 5, 50.0),
        (2, 7, 70.0),
        (3, 7, 70.0),
        (4, 7, 70.0),
    ]
    # All at once, at the start.
    store = GameStore(tmp_path / "games", 4, journal=journal)
    assert len(store.commit_all(2, 20.0)) == 1
    journal.close()
    assert [one.origin.step for one in read_order(path)] == [0, 5, 7, 7, 2]


def test_time_is_read_only_for_recorded_shards(tmp_path: Path) -> None:
    journal = ShardJournal(tmp_path / "shards.jsonl")
    store = GameStore(tmp_path / "games", journal=journal)
    read: list[int] = []

    def clock() -> Origin:
        read.append(1)
        return origin()

    store.append([], None, clock)
    assert not read
    store.append([make_game(1)], None, clock)
    store = GameStore(tmp_path / "games", 0, journal=journal)
    store.append([], None, clock)
    store.append([make_game(1)], None, clock)
    store.append([make_game(1)], None, clock)
    journal.close()
    assert len(read) == 2
