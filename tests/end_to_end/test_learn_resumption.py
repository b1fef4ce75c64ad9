"""Interrupted and resumed trainings with actors: no game is lost, stored twice or numbered twice; errors save."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.actors import Observer, kill, quick, run_observed
from tests.support.learning import Killed, Stopper, digest, learned_again, numbers_of, small

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.errors import TrainingError
from pondertree.learn import ProcessExecutor, train
from pondertree.learn.actors.messages import GAMES_PER_LEASE
from pondertree.learn.data import list_shards, newest_intact, read_shard
from pondertree.learn.executors import processes
from pondertree.learn.executors.in_process import LocalPool
from pondertree.learn.executors.processes import ProcessPool


def leases_of(out: Path) -> set[int]:
    """Returns the leases of all stored games, after a check that their numbers differ."""
    numbers = numbers_of(out)
    assert len(set(numbers)) == len(numbers)
    return {number // GAMES_PER_LEASE for number in numbers}


@pytest.mark.parametrize("most", [2, 4])
def test_no_lease_is_granted_twice_when_the_number_of_actors_changes(most: int, tmp_path: Path) -> None:
    many = ProcessExecutor(actors=most)
    between = ProcessExecutor(actors=1) if most == 2 else None
    for stop, executor in ((2, many), (4, between), (6, many)):
        config = small(tmp_path, steps=1000, side_by_side=False)
        run_observed(config, Observer(stop=stop), resume=stop > 2, executor=executor)
    found = newest_intact(tmp_path / "checkpoints")
    assert found is not None
    leases = {int(state["next_number"]) // GAMES_PER_LEASE for _, state in found[1].state["actors"]}
    assert leases == {0, *range(most, 2 * most - 1)}
    assert found[1].state["next_lease"] == 2 * most - 1
    assert leases_of(tmp_path) <= set(range(2 * most - 1))


def test_games_of_a_concurrent_run_are_not_numbered_again_by_an_alternating_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, 0.0)
    config = small(tmp_path, steps=10_000, checkpoint_minutes=60.0)
    two = ProcessExecutor(actors=2)
    with pytest.raises(Killed):
        train(config, watcher=Stopper(8, Killed), executor=two)
    before = numbers_of(tmp_path)
    for stop in (4, 6):
        alternating = config.with_values(side_by_side=False, checkpoint_minutes=0.0)
        run_observed(alternating, Observer(stop=stop), resume=True, executor=two)
    assert numbers_of(tmp_path)[: len(before)] == before
    assert leases_of(tmp_path) > {number // GAMES_PER_LEASE for number in before}


@pytest.mark.parametrize("executor", [None, ProcessExecutor(actors=2)])
def test_run_interrupted_within_a_round_resumes_bit_for_bit(
    executor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(small(whole, steps=30, side_by_side=False), executor=executor)
    # With two actors, the first shard of the fifth round has been accepted.
    pool = LocalPool if executor is None else ProcessPool
    poll, values = pool.poll, 0

    def interrupted(self: Any, timeout: float) -> list[Any]:
        nonlocal values
        found = poll(self, timeout)
        if values >= 9:
            raise KeyboardInterrupt
        values += sum(reply.kind == "value" for reply in found)
        if values >= 9 and executor is None:
            raise KeyboardInterrupt  # the reply is lost, as if this had come within the last move
        return found

    with monkeypatch.context() as patch:
        patch.setattr(pool, "poll", interrupted)
        assert not train(small(parts, steps=30, side_by_side=False), executor=executor).finished
    train(small(parts, steps=30, side_by_side=False), resume=True, executor=executor)
    assert numbers_of(parts) == numbers_of(whole)
    assert digest(parts) == digest(whole)


def test_interrupt_while_games_are_stored_waits_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.data import GameStore

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(small(whole, steps=20))
    append, calls = GameStore.append, 0

    def interrupted(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        return append(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(GameStore, "append", interrupted)
        assert not train(small(parts, steps=20)).finished
    train(small(parts, steps=20), resume=True)
    assert digest(parts) == digest(whole)
    assert numbers_of(parts) == numbers_of(whole)


@pytest.mark.parametrize("actors", [0, 2])
@pytest.mark.parametrize("part", ["optimise", "_average"])
def test_interrupt_within_an_optimiser_step_waits_for_it(
    part: str, actors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pondertree.learn.trainer.base import Trainer

    quick(monkeypatch)
    executor = ProcessExecutor(actors=actors) if actors else None
    config = small(tmp_path, steps=60, side_by_side=True, learner={"passes": 4.0})
    method, calls = getattr(Trainer, part), 0

    def interrupted(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 20:
            signal.raise_signal(signal.SIGINT)
        return method(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, part, interrupted)
        assert not train(config, executor=executor).finished
    assert learned_again(tmp_path)
    assert train(config, resume=True, executor=executor).steps == 60
    assert learned_again(tmp_path)


def test_weights_follow_from_the_order_after_an_interrupt_at_any_instant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    numbers = random.Random(1)
    config = small(tmp_path, steps=100_000, learner={"passes": 4.0})
    executor = ProcessExecutor(actors=2)

    class Interrupts(Observer):
        """Sends Ctrl-C soon after the third round of this session."""

        def show(self, status: Any) -> None:
            super().show(status)
            if len(self.statuses) == 3:
                threading.Timer(numbers.uniform(0.0, 0.2), kill, (os.getpid(), signal.SIGINT)).start()

    for attempt in range(3):
        assert not run_observed(config, Interrupts(), resume=attempt > 0, executor=executor).finished
        assert learned_again(tmp_path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("concurrent", [False, True])
def test_interrupt_that_python_discards_ends_the_run(
    concurrent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    calls = 0

    def interrupted(path: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            signal.raise_signal(signal.SIGINT)  # a finalizer calls this: its exceptions are printed and dropped
        path.unlink(missing_ok=True)

    monkeypatch.setattr(processes, "_remove", interrupted)
    config = small(tmp_path, steps=2000, side_by_side=concurrent)
    result = train(config, executor=ProcessExecutor(actors=1))
    assert not result.finished
    assert calls >= 4
    assert learned_again(tmp_path)


def test_run_whose_actors_are_all_quarantined_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.actors import supervisor as module

    quick(monkeypatch)
    monkeypatch.setattr(module, "MAX_DEATHS", 1)
    observer = Observer(lambda supervisor: kill(supervisor.slots[0].actor.pid), after=4)
    config = small(tmp_path, steps=100_000, checkpoint_minutes=60.0)
    with pytest.raises(TrainingError, match="no self-play actor is left"):
        run_observed(config, observer, executor=ProcessExecutor(actors=1))
    found = newest_intact(tmp_path / "checkpoints")
    assert found is not None
    games = sum(len(read_shard(shard)) for shard in list_shards(tmp_path / "games"))
    assert found[1].state["counters"]["games"] == games > 0


def test_back_pressure_does_not_stop_actors_before_learning_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, 0.0)
    config = small(tmp_path, side_by_side=True, steps=2, minutes=0.5, cycle_moves=1)
    config = config.with_values(self_play={"games_at_once": 2}, replay={"learned_first": 120})
    result = train(config)
    assert result.steps == 2
    assert result.elapsed < 25.0
