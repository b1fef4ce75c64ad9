"""Trainings with actors: access to the supervisor, its processes, and games that fail in them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pondertree.learn import Config, Watcher
from pondertree.learn.report.progress import Status

IMPORTED_BY = os.getpid()


def quick(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.1) -> None:
    """Shortens batches and rounds."""
    from pondertree.learn.loop import actor_learner

    for name in ("SHARD_SECONDS", "ROUND_SECONDS", "PUBLISH_SECONDS"):
        monkeypatch.setattr(actor_learner, name, seconds)


class Observer(Watcher):
    """Calls a function once with the supervisor, after some rounds, and may interrupt the run later."""

    def __init__(self, act: Callable[[Any], object] | None = None, after: int = 2, stop: int = 1 << 60) -> None:
        self.act = act
        self.after = after
        self.stop = stop
        self.supervisor: Any = None
        self.notes: list[str] = []
        self.statuses: list[Status] = []
        self.games: list[int] = []
        """Numbers of games at each status, whose counters change."""
        self.acted = 0
        """Number of statuses until `act` was called."""

    def show(self, status: Status) -> None:
        self.statuses.append(status)
        self.games.append(status.counters.games)
        if self.act is not None and status.counters.round >= self.after and not self.acted:
            self.acted = len(self.games)
            self.act(self.supervisor)
        if status.counters.round >= self.stop:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


@contextlib.contextmanager
def watched(observer: Observer) -> Iterator[None]:
    """Gives the observer the supervisor of the run within."""
    from pondertree.learn.actors import Supervisor

    start = Supervisor.start

    def record(self: Any, *arguments: Any) -> None:
        observer.supervisor = self
        start(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Supervisor, "start", record)
        yield


def run_observed(config: Config, observer: Observer, **options: Any) -> Any:
    """Trains with an observer."""
    from pondertree.learn import train

    with watched(observer):
        return train(config, watcher=observer, **options)


def kill(process: int | None, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a process."""
    assert process is not None
    os.kill(process, number)


class FailsInActors:
    """A game that only the driver's process can play."""

    num_actions, num_players, to_play = 2, 1, 0

    def __init__(self, moves: int = 0) -> None:
        self.moves = moves
        self.is_terminal = moves >= 4

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> FailsInActors:
        if multiprocessing.parent_process() is not None:
            raise RuntimeError("the robot is not connected to this machine")
        return FailsInActors(self.moves + 1)

    def returns(self) -> list[float]:
        return [0.5]

    def observation(self) -> Any:
        return np.array([self.moves, 1.0], np.float32)


class ExitsInActors(FailsInActors):
    """A game that ends the process of an actor."""

    def play(self, action: int) -> FailsInActors:
        if multiprocessing.parent_process() is not None:
            sys.exit(3)
        return ExitsInActors(self.moves + 1)


class Counter:
    """An actor that adds, with a heartbeat before."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.heartbeat: Callable[[], None] = lambda: None

    def add(self, number: int) -> int:
        self.heartbeat()
        self.number += number
        return self.number

    def add_slowly(self, number: int) -> int:
        """Adds in moves of half a second."""
        for _ in range(8):
            time.sleep(0.5)
            self.heartbeat()
        return self.add(number)

    def is_module_inherited(self) -> bool:
        """Whether this module was imported by another process, from which this one was forked."""
        return os.getpid() != IMPORTED_BY


def make_counter(setup: Any) -> Counter:
    """Makes a counter of a number on a device."""
    return Counter(setup.number)


def leftovers(out: Path) -> list[str]:
    """Returns temporary files in a run folder."""
    return [path.name for path in out.rglob("*") if path.suffix == ".part" or path.name in ("scratch", "spill")]
