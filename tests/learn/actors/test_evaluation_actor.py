"""The evaluation actor's handle, with an actor that never starts; and the setup of actors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.learning import small

pytest.importorskip("torch")

from pondertree.learn.actors import ActorSetup, RemoteEvaluation, evaluation_actor, setup_for
from pondertree.learn.data import Counters
from pondertree.learn.executors import EVALUATION, InProcessExecutor, ProcessExecutor, Reply


class Pool:
    """Launches actors whose replies the test gives."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.launched: list[Any] = []

    def launch(self, *_: Any) -> Any:
        self.launched.append(SimpleNamespace(call=lambda *_: None, kill=lambda: None))
        return self.launched[-1]

    def poll(self, timeout: float) -> list[Reply]:
        found, self.replies = self.replies, []
        return found


def waiting_evaluation(monkeypatch: pytest.MonkeyPatch, pool: Pool, notes: list[str]) -> tuple[Any, list[float]]:
    """Returns an evaluation whose actor was launched, and its clock."""
    clock = [0.0]
    monkeypatch.setattr(evaluation_actor.time, "monotonic", lambda: clock[0])
    executor: Any = ProcessExecutor(evaluation_timeout=500.0)
    evaluation = RemoteEvaluation(executor, pool, None, None, [], notes.append)  # type: ignore[arg-type]
    evaluation._counters = Counters()
    evaluation._ask()
    return evaluation, clock


def test_evaluation_actor_that_does_not_start_is_reported_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, notes = Pool(), list[str]()
    evaluation, clock = waiting_evaluation(monkeypatch, pool, notes)
    for clock[0] in (100.0, 121.0, 400.0):
        assert evaluation.finished(wait=False) is None
    assert [note.partition(":")[0] for note in notes] == ["the evaluation actor has not started in 121 s"]
    clock[0] = 501.0
    assert evaluation.finished(wait=True) is None
    assert not evaluation.is_busy
    assert len(pool.launched) == 1
    assert "given up" in notes[-1]
    assert notes[-1].endswith("took longer than 500 s to start")


def test_time_of_an_evaluation_begins_when_its_actor_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, notes = Pool(), list[str]()
    evaluation, clock = waiting_evaluation(monkeypatch, pool, notes)
    clock[0] = 400.0
    pool.replies = [Reply(pool.launched[0], "ready", None)]
    evaluation.finished(wait=False)
    clock[0] = 850.0
    evaluation.finished(wait=False)
    assert len(pool.launched) == 1
    clock[0] = 901.0
    evaluation.finished(wait=False)
    assert len(pool.launched) == 2  # another attempt
    assert "is replaced: it took longer than 500 s" in notes[-1]


def test_threads_follow_from_the_device_of_the_actor() -> None:
    setup = ActorSetup(small(Path("unused")).with_values(self_play={"workers": 7}), None, "cuda:0", 3)
    on_cpu = setup_for(ProcessExecutor(cpus=3.0, gpus=0.0), setup, 1)
    assert (on_cpu.device, on_cpu.config.self_play.workers) == ("cpu", 3)
    on_gpu = setup_for(ProcessExecutor(cpus=3.0, gpus=0.5), setup, 2)
    assert (on_gpu.device, on_gpu.config.self_play.workers) == ("cuda:1", 1)
    evaluation = setup_for(ProcessExecutor(cpus=3.0), replace(setup, device="cpu"), EVALUATION)
    assert (evaluation.device, evaluation.config.self_play.workers) == ("cpu", 3)
    assert setup_for(InProcessExecutor(), setup, 0) is setup
