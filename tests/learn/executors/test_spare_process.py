"""The spare process of the process executor, which becomes the next actor."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from tests.support.actors import kill

from pondertree.errors import InvalidArgumentError
from pondertree.learn.executors import ProcessExecutor, Reply
from pondertree.learn.executors.processes import ProcessActor, ProcessPool


def replies(pool: ProcessPool, kind: str) -> Reply:
    """Returns the next reply, which is of this kind."""
    deadline = time.monotonic() + 120.0
    while not (found := pool.poll(0.1)) and time.monotonic() < deadline:
        pass
    [reply] = found
    assert reply.kind == kind
    return reply


def launched(pool: ProcessPool) -> ProcessActor:
    actor = pool.launch(Counter, "aab")
    assert isinstance(actor, ProcessActor)
    assert replies(pool, "ready").actor is actor
    return actor


def test_spare_process_is_the_next_actor(tmp_path: Path) -> None:
    with ProcessPool(tmp_path) as pool:
        first = launched(pool)
        assert pool._spare is not None
        spare = pool._spare.process.pid
        kill(first.pid)
        replies(pool, "died")
        second = launched(pool)
        assert second.pid == spare
        second.call("most_common", 1)
        assert replies(pool, "value").value == [("a", 2)]
        assert pool._spare is not None
        assert pool._spare.process.pid != spare
        process = pool._spare.process
    with pytest.raises(ValueError, match="closed"):  # it ended with the pool
        process.is_alive()


def test_dead_spare_process_is_not_used(tmp_path: Path) -> None:
    with ProcessPool(tmp_path) as pool:
        launched(pool)
        assert pool._spare is not None
        spare = pool._spare.process
        pid = spare.pid
        spare.kill()
        spare.join()
        assert launched(pool).pid != pid


def test_more_gpus_than_present_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    ProcessExecutor(actors=4, gpus=0.5).open(tmp_path).close()
    with pytest.raises(InvalidArgumentError, match=r"gpus = 0\.5 for 5 actors needs 3 GPUs, but there are 2"):
        ProcessExecutor(actors=5, gpus=0.5).open(tmp_path)
