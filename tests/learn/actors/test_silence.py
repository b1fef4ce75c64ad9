"""Silent actors: heartbeats, and how long the supervisor waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.learn.actors.test_supervisor import Setting
from tests.support.learning import small

pytest.importorskip("torch")

from pondertree.learn.actors import ActorSetup, LiveWeights, SelfPlayActor, ShardId
from pondertree.learn.actors import supervisor as module
from pondertree.learn.actors.messages import Task, empty_state
from pondertree.learn.executors.base import Content


def test_slow_actor_with_heartbeats_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    setting = Setting(timeout=120.0)
    setting.ready(0, 1)
    for _ in range(20):  # moves of 100 s in one batch
        now += 100.0
        for place in (0, 1):
            setting.pool.reply(place, "heartbeat")
        assert setting.poll() == []
    assert not setting.pool.actors[0].is_killed
    assert [len(actor.tasks) for actor in setting.pool.actors] == [2, 2]
    # Actor 0 becomes faster, and its patience decays; actor 1 remains slow, but is heard.
    for _ in range(200):
        now += 1.0
        setting.pool.reply(0, "heartbeat")
        setting.poll()
    setting.pool.reply(1, "heartbeat")
    setting.poll()
    now += 119.0
    setting.poll()
    assert not setting.pool.actors[0].is_killed
    now += 2.0
    setting.poll()
    assert setting.pool.actors[0].is_killed
    assert not setting.pool.actors[1].is_killed


def test_first_batch_may_take_ten_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    setting = Setting(timeout=120.0)
    setting.ready(0, 1)
    now = 1199.0
    setting.poll()
    assert not setting.pool.actors[0].is_killed
    now = 1201.0
    setting.poll()
    assert setting.pool.actors[0].is_killed


def test_self_play_actor_has_a_heartbeat_for_each_move(tmp_path: Path) -> None:
    actor = SelfPlayActor(ActorSetup(small(tmp_path), None, "cpu", 1), empty_state(0))
    beats: list[int] = []
    actor.heartbeat = lambda: beats.append(actor.self_play.moves_played)
    actor.play(Task(ShardId(0, 0, 0), -1, Content(LiveWeights({})), 4, None, False))
    actor.close()
    assert len(set(beats)) == len(beats) == 4
