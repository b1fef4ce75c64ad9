"""Training with self-play actors in processes: equality with training in one process, replay, and failures."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.actors import ExitsInActors, FailsInActors, Observer, kill, leftovers, quick, run_observed
from tests.support.learning import GYM, Killed, Stopper, digest, learned_again, numbers_of, small, small_muzero

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.errors import InvalidArgumentError, StorageError, TrainingError
from pondertree.learn import Config, ProcessExecutor, relearn, train
from pondertree.learn.actors.messages import GAMES_PER_LEASE
from pondertree.learn.data import read_order
from pondertree.learn.evaluation.metrics import read_metrics
from pondertree.learn.report import write_report

ONE = ProcessExecutor(actors=1)
TWO = ProcessExecutor(actors=2)


def content(folder: Path) -> dict[str, bytes]:
    """Returns the shards of a run."""
    return {path.name: path.read_bytes() for path in (folder / "games").iterdir()}


def config_of(which: str, out: Path, **values: Any) -> Config:
    if which == "muzero":
        return small_muzero(out, steps=12, **values)
    if which == "environment":
        return small_muzero(out, GYM, steps=8, **values)
    return small(out, "connect4" if which == "alphazero" else "tic-tac-toe", algorithm=which, steps=16, **values)


@pytest.mark.parametrize("which", ["gumbel", "alphazero", "muzero", "environment"])
def test_one_synchronous_actor_equals_training_in_process_bit_for_bit(which: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(config_of(which, here))
    train(config_of(which, there, side_by_side=False), executor=ONE)
    assert content(here) == content(there)
    for name in ("training.safetensors", "player.safetensors", "games.npz"):
        assert digest(here, name) == digest(there, name)
    assert leftovers(there) == []


def test_synchronous_run_resumes_bit_for_bit_with_another_executor_and_after_a_death(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(small(whole, steps=40))
    assert not train(small(parts, steps=40), watcher=Stopper(3)).finished
    observer = Observer(lambda supervisor: kill(supervisor.slots[0].actor.pid), after=5, stop=8)
    run_observed(small(parts, steps=40, side_by_side=False), observer, resume=True, executor=ONE)
    assert any("died and is replaced" in note for note in observer.notes)
    train(small(parts, steps=40), resume=True)
    assert digest(parts) == digest(whole)
    assert numbers_of(parts) == numbers_of(whole)


def test_run_without_games_cannot_be_learned_again(tmp_path: Path) -> None:
    train(small(tmp_path, steps=4))
    for path in (tmp_path / "games").iterdir():
        path.unlink()
    with pytest.raises(StorageError, match=r"has 0 games, but the checkpoint counts \d+: shards are missing"):
        relearn(tmp_path)
    assert not train(small(tmp_path / "none", steps=4), watcher=Stopper(0)).finished
    with pytest.raises(StorageError, match="has no game in its newest checkpoint: it has learned nothing yet"):
        relearn(tmp_path / "none")


def test_synchronous_rounds_of_two_actors_are_reproducible(tmp_path: Path) -> None:
    for name in ("one", "other"):
        train(small(tmp_path / name, steps=12, side_by_side=False), executor=TWO)
    assert content(tmp_path / "one") == content(tmp_path / "other")
    assert digest(tmp_path / "one") == digest(tmp_path / "other")
    assert {number // GAMES_PER_LEASE for number in numbers_of(tmp_path / "one")} == {0, 1}
    # A run with two actors may be resumed with one, or in this process: the other's unfinished games are dropped.
    stopper = Stopper(10**9)
    train(small(tmp_path / "one", steps=16), resume=True, watcher=stopper)
    assert any("unfinished games of 1 actors are dropped" in note for note in stopper.notes)
    assert len(set(numbers_of(tmp_path / "one"))) == len(numbers_of(tmp_path / "one"))


@pytest.mark.parametrize("algorithm", ["gumbel", "muzero"])
def test_weights_of_several_actors_follow_from_the_recorded_order(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    options: dict[str, Any] = {"steps": 100_000, "learner": {"passes": 4.0}}
    muzero = {"priority": 0.6}
    config = small_muzero(tmp_path, muzero=muzero, **options) if algorithm == "muzero" else small(tmp_path, **options)

    class Ends(Observer):
        """Ends the run when both actors have sent shards, the later ones between optimiser steps."""

        def show(self, status: Any) -> None:
            steps = [arrival.origin.step for arrival in read_order(tmp_path / "shards.jsonl")]
            both = all(one["games"] for one in status.actors.values())
            if both and status.counters.step >= 60 and steps[-1] > steps[len(steps) // 2]:
                raise KeyboardInterrupt

    run_observed(config, Ends(), executor=TWO)
    arrivals = read_order(tmp_path / "shards.jsonl")
    assert {arrival.origin.actor for arrival in arrivals} == {0, 1}
    assert [arrival.origin.step for arrival in arrivals] == sorted(arrival.origin.step for arrival in arrivals)
    assert learned_again(tmp_path)
    # Another order gives other weights.
    lines = (tmp_path / "shards.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    for line in changed:
        line["step"] = min(line["step"], changed[len(changed) // 2]["step"])
    (tmp_path / "shards.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))
    assert not learned_again(tmp_path)


def test_weights_follow_from_the_order_if_minutes_are_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch, 0.0)  # most shards are empty
    config = small(tmp_path / "concurrent", minutes=0.08, side_by_side=True, learner={"passes": 1.0})
    assert not train(config, watcher=Stopper(3)).finished
    assert learned_again(tmp_path / "concurrent")
    assert train(config, resume=True).finished
    assert learned_again(tmp_path / "concurrent")
    config = small(tmp_path / "alternating", minutes=0.05, checkpoint_minutes=60.0)
    with pytest.raises(Killed):
        train(config, watcher=Stopper(3, Killed))
    assert train(config, resume=True).finished
    assert learned_again(tmp_path / "alternating")


def test_weights_follow_from_the_order_after_a_kill_before_the_first_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, 0.0)
    config = small(tmp_path, steps=400, side_by_side=True, checkpoint_minutes=60.0)
    with pytest.raises(Killed):
        train(config, watcher=Stopper(3, Killed))
    assert numbers_of(tmp_path)
    train(config, resume=True)
    assert learned_again(tmp_path)


def test_killed_actor_is_replaced_and_no_game_is_lost_or_stored_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    observer = Observer(lambda supervisor: kill(supervisor.slots[1].actor.pid))
    assert run_observed(small(tmp_path, steps=400), observer, executor=TWO).finished
    assert any("actor 1 died and is replaced: its process ended (exit code -9)" in note for note in observer.notes)
    numbers = numbers_of(tmp_path)
    assert len(set(numbers)) == len(numbers) == observer.statuses[-1].counters.games
    assert observer.statuses[-1].actors["1"]["restarts"] == 1
    assert learned_again(tmp_path)


def test_run_changes_executor_and_number_of_actors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    before: list[int] = []
    for stop, executor in ((3, TWO), (6, None), (9, ProcessExecutor(actors=3)), (12, ONE)):
        run_observed(small(tmp_path, steps=1000), Observer(stop=stop), resume=bool(before), executor=executor)
        after = numbers_of(tmp_path)
        assert after[: len(before)] == before
        assert len(set(after)) == len(after) > len(before)
        before = after
    assert learned_again(tmp_path)


def test_stopped_actor_does_not_stall_the_learner_and_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    stopped: list[int] = []

    def stop(supervisor: Any) -> None:
        stopped.append(supervisor.slots[0].actor.pid)
        kill(stopped[0], signal.SIGSTOP)

    executor = ProcessExecutor(actors=2, timeout=3.0)

    class Ends(Observer):
        def show(self, status: Any) -> None:
            super().show(status)
            if any("actor 0 died" in note for note in self.notes) and status.actors["0"]["ready"]:
                raise KeyboardInterrupt

    observer = Ends(stop)
    run_observed(small(tmp_path, steps=100_000), observer, executor=executor)
    [note] = [note for note in observer.notes if "actor 0 died" in note]
    assert "no reply for" in note
    replaced = next(place for place, status in enumerate(observer.statuses) if status.actors["0"]["restarts"])
    assert replaced > observer.acted + 1  # rounds went on
    assert observer.games[replaced] > observer.games[observer.acted]
    with pytest.raises(ProcessLookupError):
        os.kill(stopped[0], 0)
    numbers = numbers_of(tmp_path)
    assert len(set(numbers)) == len(numbers)


def test_actor_that_always_raises_ends_the_run_with_its_message(tmp_path: Path) -> None:
    observer = Observer()
    with pytest.raises(TrainingError, match=r"no self-play actor is left.*robot is not connected to this machine"):
        run_observed(small(tmp_path).with_values(game="x:y", steps=5), observer, factory=FailsInActors, executor=ONE)
    assert any("actor 0 is quarantined" in note for note in observer.notes)


def test_game_that_exits_in_its_actor_is_an_error_of_the_game(tmp_path: Path) -> None:
    observer = Observer()
    with pytest.raises(TrainingError, match=r"no self-play actor is left.*the game.* called sys\.exit\(3\)"):
        run_observed(small(tmp_path).with_values(game="x:y", steps=5), observer, factory=ExitsInActors, executor=ONE)
    assert [note for note in observer.notes if "2 of 3 times in a row): the game or its module called" in note]
    assert not any("died" in note for note in observer.notes)


def test_game_that_cannot_be_sent_is_reported(tmp_path: Path) -> None:
    from pondertree.errors import UsageError

    with pytest.raises(UsageError, match="the game cannot be sent to another process"):
        train(small(tmp_path).with_values(steps=5), factory=lambda: FailsInActors(), executor=ONE)
    assert not list(tmp_path.iterdir())


def test_actor_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.executors import processes

    monkeypatch.setattr(processes, "own_version", lambda: "pondertree 0.0.1, protocol 1, Python 3.11")
    with pytest.raises(TrainingError, match=r"driver runs pondertree 0\.0\.1.* but this actor .*install the same"):
        train(small(tmp_path, steps=5), executor=ONE, watcher=Observer())


def test_weights_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.loop.session import Session
    from pondertree.networks import player_bytes, player_of

    publish = Session.publish

    def other(self: Any) -> None:
        from pondertree.learn.trainer import algorithm_of

        config = self.config.with_values(network={"channels": 16})
        network = algorithm_of(config).trainer(self.spec, config, self.device).network
        self.actors.publish(0, player_bytes(player_of(network), {}))

    monkeypatch.setattr(Session, "publish", other)
    with pytest.raises(TrainingError, match=r"weights of step 0 do not fit the network of this actor.*channels=16"):
        train(small(tmp_path, steps=5), executor=ONE, watcher=Observer())
    monkeypatch.setattr(Session, "publish", publish)


def test_full_disk_ends_the_run_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    real, calls = os.fsync, 0

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 40:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match=r"^the disk of the run folder .* is full \(No space left on device\)"):
            train(small(tmp_path, steps=5000, checkpoint_minutes=60.0), executor=TWO)
    before = numbers_of(tmp_path)
    assert before
    steps = json.loads((tmp_path / "shards.jsonl").read_text().splitlines()[-1])["step"]
    result = train(small(tmp_path, steps=steps + 10), resume=True, executor=TWO)
    after = numbers_of(tmp_path)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after) == result.games
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("executor", [None, ONE])
@pytest.mark.parametrize("side_by_side", [False, True])
def test_removed_run_folder_is_reported(
    executor: Any, side_by_side: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    out = tmp_path / "run"
    observer = Observer(lambda _: shutil.rmtree(out), after=1)
    with pytest.raises(StorageError, match=r"^the run folder .*run' was removed or replaced during the training"):
        run_observed(small(out, steps=100_000, side_by_side=side_by_side), observer, executor=executor)
    assert not (out / "checkpoints").exists()


def test_killed_evaluation_actor_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.actors import RemoteEvaluation

    ask, killed = RemoteEvaluation._ask, []

    def kill_first(self: Any) -> None:
        ask(self)
        if not killed:
            killed.append(self._actor.pid)
            kill(killed[0])

    monkeypatch.setattr(RemoteEvaluation, "_ask", kill_first)
    observer = Observer()
    evaluation = {"games": 2, "uct_simulations": (5,), "simulations": 4}
    result = run_observed(small(tmp_path, steps=10).with_values(evaluation=evaluation), observer, executor=ONE)
    assert any("evaluation actor failed and is replaced" in note for note in observer.notes)
    assert [line["name"] for line in result.evaluations] == ["step 10"]
    assert (tmp_path / "players" / "step-000000010.safetensors").exists()
    # The result is that of an evaluation in this process.
    here = tmp_path / "here"
    train(small(here, steps=10).with_values(evaluation=evaluation))
    shutil.copytree(tmp_path / "players", tmp_path / "copy")
    assert {path.name for path in (here / "players").iterdir()} == {path.name for path in (tmp_path / "copy").iterdir()}


def test_metrics_panel_and_report_show_each_actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    observer = Observer()
    tensorboard = True
    try:
        import tensorboard as _
    except ImportError:
        tensorboard = False
    run_observed(small(tmp_path, steps=40), observer, executor=TWO, tensorboard=tensorboard)
    lines = [line for line in read_metrics(tmp_path / "metrics.jsonl") if line["kind"] == "actors"]
    assert set(lines[-1]["actors"]) == {"0", "1"}
    for name in ("games_per_second", "lag", "restarts", "utilisation"):
        assert all(name in one for one in lines[-1]["actors"].values())
    assert [one["lease"] for one in lines[-1]["actors"].values()] == [0, 1]
    assert all(one["pid"] not in (0, os.getpid()) for one in lines[-1]["actors"].values())
    assert lines[-1]["evaluation_pid"] is None
    assert [name for name, _ in observer.statuses[-1].actor_rows()] == ["actor 0", "actor 1"]
    assert "2 playing" in str(observer.statuses[-1]) or "playing" in str(observer.statuses[-1])
    page, _ = write_report(tmp_path)
    assert "<h2>Self-play actors</h2>" in page.read_text()


def test_actors_end_with_the_run(tmp_path: Path) -> None:
    observer = Observer()
    run_observed(small(tmp_path, steps=4), observer, executor=TWO)
    deadline = time.monotonic() + 30.0
    while any(thread.name == "replies" for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(thread.name == "replies" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actors": 0}, "actors must be"),
        ({"gpus": 2.0}, "gpus must be at most 1"),
        ({"cpus": -1.0}, "cpus must be"),
        ({"cpus": 0.0}, "cpus must be above 0"),
        ({"gpus": -0.5}, "gpus must be"),
        ({"timeout": 0.0}, "timeout must be"),
    ],
)
def test_invalid_executor_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ProcessExecutor(**options)


def test_unknown_executor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="executor must be an executor, in-process, processes or ray"):
        train(small(tmp_path, steps=1), executor="threads")
