"""Measurements of self-play actors, the time that a run counts, and whose fault a failure is."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.learn.actors.test_supervisor import Setting, shard
from tests.support.learning import small

pytest.importorskip("torch")

from pondertree.errors import StorageError
from pondertree.learn.actors import supervisor as module
from pondertree.learn.data import Counters
from pondertree.learn.executors import Reply
from pondertree.learn.loop.session import Limits


def test_rates_are_of_the_newest_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    setting = Setting()
    setting.ready(0, 1)
    [actor, _] = setting.pool.actors
    for number in range(100):  # shards of 3 games, every 1 s and later every 10 s
        now += 1.0 if number < 60 else 10.0
        content = replace(shard(actor.tasks[number].id), seconds=0.5 if number < 60 else 2.0)
        setting.pool.reply(0, "value", content)
        setting.poll()
        setting.poll()
        measured = setting.supervisor.measurements(0)["0"]
        if number == 59:
            assert (measured["games_per_second"], measured["utilisation"]) == (3.0, 0.5)
    assert (measured["games_per_second"], measured["positions_per_second"]) == (0.3, 1.2)
    assert (measured["utilisation"], measured["games"]) == (0.2, 300)
    now += 1000.0  # it stops
    assert setting.supervisor.measurements(0)["0"]["games_per_second"] == 0.05


def test_minutes_begin_when_the_first_actor_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    setting = Setting()
    limits = Limits(small(Path("unused"), minutes=1.0), Counters(elapsed=15.0), lambda: setting.supervisor.ready_at)
    now = 400.0
    assert (limits.elapsed, limits.seconds_of_clock, limits.reached) == (15.0, 45.0, False)
    setting.ready(1)
    now = 420.0
    setting.ready(0)
    now = 430.0
    assert (limits.elapsed, limits.reached) == (45.0, False)
    now = 445.0
    assert limits.reached


def test_failure_without_the_run_folder_is_no_fault_of_the_actor() -> None:
    def check() -> None:
        raise StorageError("the run folder was removed")

    setting = Setting(check_storage=check)
    setting.ready(0, 1)
    setting.pool.reply(0, "error", "FileNotFoundError: scratch/blobs/7")
    with pytest.raises(StorageError, match="the run folder was removed"):
        setting.poll()
    assert setting.notes == []


def test_actor_whose_process_ends_again_and_again_is_quarantined_with_advice() -> None:
    setting = Setting()
    for _ in range(module.MAX_DEATHS):
        slot = setting.supervisor.slots[0]
        assert slot.actor is not None
        setting.pool.replies.append(Reply(slot.actor, "died", "its process ended (exit code -11)"))
        setting.poll()
        slot.retry_at = 0.0
        setting.poll()
    assert slot.quarantined == (
        "its process ended (exit code -11) (10 times in a row: "
        "does the game, or a library of it, end its process, or is memory short?)"
    )
