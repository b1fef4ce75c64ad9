"""Pairs of games played side by side, in processes of their own.

Each process has its own players and plays a pair at a time. One that dies is replaced, and its pair played again, once.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

from pondertree.errors import PlayerError, PondertreeError, UsageError
from pondertree.match.game import Adjudication, play_game
from pondertree.match.openings import Opening
from pondertree.match.players import Entrant, Player, start
from pondertree.match.record import PairRecord
from pondertree.random import ANSWER, fold

Task = tuple[int, Opening]
#: Seconds a process has to leave by itself.
PATIENCE = 5.0


def play_here(table: Table, tasks: Iterable[Task]) -> Generator[PairRecord, None, None]:
    """One pair after another, in this process."""
    try:
        for number, opening in tasks:
            yield table.play_pair(number, opening)
    finally:
        table.close()


class Worker:
    """A process at work, as its parent sees it."""

    def __init__(self, table: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=serve, args=(theirs, table), daemon=True)
        self.ready = False
        self.task: Task | None = None
        try:
            with _no_interrupts():
                self.process.start()
        except KeyboardInterrupt:
            if self.process.pid is not None:
                self.end()
            raise
        theirs.close()

    def give(self, task: Task) -> None:
        """Hands it a pair to play; a process that is gone is noticed when its answer is read."""
        self.task = task
        with suppress(OSError):
            self.connection.send(task)

    def end(self) -> None:
        """Asks it to leave; it sends its players home first."""
        self.process.terminate()
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()
        self.process.close()


def play_in_processes(table: Table, tasks: Iterable[Task], count: int) -> Generator[PairRecord, None, None]:
    """Pairs as they are finished, in whichever order; `tasks` are taken up as there is somebody to play them."""
    packed = pickle.dumps(table)
    waiting, again, died = iter(tasks), deque[Task](), set[int]()
    workers: list[Worker] = []

    def next_task() -> Task | None:
        return again.popleft() if again else next(waiting, None)

    def employ(task: Task | None) -> None:
        if task is not None:
            workers.append(Worker(packed))
            workers[-1].give(task)

    try:
        for _ in range(count):
            employ(next_task())
        while workers:
            answered = connection.wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in answered]:
                try:
                    kind, data = worker.connection.recv()
                except (EOFError, OSError):
                    workers.remove(worker)
                    again.append(_after_death(worker, died))
                    employ(next_task())
                    continue
                if kind == "error":
                    raise data
                if kind == "ready":
                    worker.ready = True
                    continue
                task = next_task()
                if task is None:
                    workers.remove(worker)
                    worker.end()
                else:
                    worker.give(task)
                yield data
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()


def _after_death(worker: Worker, died: set[int]) -> Task:
    """The pair of a process that is gone, to be played again; an error where that is of no use."""
    worker.process.join(PATIENCE)
    code, task = worker.process.exitcode, worker.task
    worker.end()
    if not worker.ready or task is None:
        raise UsageError(
            f"a process for the games could not be started (exit code {code}). A script that plays matches in several "
            'processes keeps its own work under `if __name__ == "__main__":`; concurrency=1 needs no processes'
        )
    if task[0] in died:
        raise PlayerError(
            f"the process that played pair {task[0]} died (exit code {code}), and again when it was retried"
        )
    died.add(task[0])
    return task


def serve(pipe: connection.Connection, packed: bytes) -> None:
    """The work of a process: pairs come in, records go out. It ends when it is told to, or when its parent is gone."""
    # Ctrl-C is the parent's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        table: Table = pickle.loads(packed)
    except Exception as error:
        pipe.send(("error", UsageError(f"the players cannot be sent to another process: {error}")))
        return
    try:
        pipe.send(("ready", None))
        while True:
            number, opening = pipe.recv()
            pipe.send(_answer(table, number, opening))
    except (EOFError, OSError):
        pass
    finally:
        # No second signal may keep the players from being sent home.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        table.close()


def _answer(table: Table, number: int, opening: Opening) -> tuple[str, Any]:
    try:
        return "pair", table.play_pair(number, opening)
    except PondertreeError as error:
        return "error", error
    except Exception:
        return "error", RuntimeError(f"pair {number} cannot be played:\n{traceback.format_exc()}")


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Defers Ctrl-C to its end. A process that is started here inherits a mask that blocks SIGINT.

    The mask is not enough: another thread, such as one of NumPy's, may take the signal, and the main thread would be
    interrupted before it has sent the new process what to do.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started on demand, this process would unblock SIGINT on its way, before the worker inherits the signal mask.
    resource_tracker.ensure_running()
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True

    # Only the main thread is interrupted, and only it may set handlers.
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, note) if is_main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_main:
            signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class Table:
    """Two entrants and their game. The players come to it with the first pair and stay until it is closed."""

    entrants: tuple[Entrant, Entrant]
    factory: Callable[[], Any]
    seed: int
    adjudication: Adjudication
    on_failure: str
    _players: list[Player] = field(default_factory=list, repr=False)

    def play_pair(self, number: int, opening: Opening) -> PairRecord:
        """Pair `number`: player 1 moves first in its first game, player 2 in its second."""
        while len(self._players) < 2:
            self._players.append(start(self.entrants[len(self._players)]))
        names = [entrant.name for entrant in self.entrants]
        games = []
        for place, first in enumerate((1, 2)):
            game = 2 * number + place
            key = fold(fold(self.seed, ANSWER), game)
            games.append(
                play_game(
                    opening.root(self.factory),
                    opening,
                    self._players,
                    names,
                    [fold(key, player) for player in (1, 2)],
                    number=game,
                    first=first,
                    adjudication=self.adjudication,
                    on_failure=self.on_failure,
                )
            )
        return PairRecord(number, opening, (games[0], games[1]))

    def close(self) -> None:
        """Sends the players home."""
        while self._players:
            self._players.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_players": []}
