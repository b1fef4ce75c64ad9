"""Worker processes that play pairs of games in parallel.

Each worker has its own players and plays one pair at a time. A dead worker is replaced, and its pair repeated once.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

from pondertree.errors import PlayerError, PondertreeError, UsageError
from pondertree.match.game import Adjudication, play_game
from pondertree.match.openings import Opening
from pondertree.match.players import Entrant, Player, start
from pondertree.match.record import PairRecord
from pondertree.match.worker_process import EXIT_TIMEOUT, WorkerProcess, prepare_worker
from pondertree.random import ANSWER, fold

Task = tuple[int, Opening]


def play_here(runner: PairRunner, tasks: Iterable[Task]) -> Generator[PairRecord, None, None]:
    """Plays pairs sequentially in this process."""
    try:
        for number, opening in tasks:
            yield runner.play_pair(number, opening)
    finally:
        runner.close()


class Worker(WorkerProcess):
    """The parent's handle of a worker process that plays pairs."""

    def __init__(self, runner: bytes) -> None:
        super().__init__(serve, runner)
        self.ready = False
        self.task: Task | None = None

    def send(self, task: Task) -> None:
        """Sends a pair to play; the death of the process is detected when its result is read."""
        self.task = task
        with suppress(OSError):
            self.connection.send(task)


def play_in_processes(runner: PairRunner, tasks: Iterable[Task], count: int) -> Generator[PairRecord, None, None]:
    """Yields pairs in order of completion; `tasks` is consumed lazily."""
    packed = pickle.dumps(runner)
    waiting, repeated, died = iter(tasks), deque[Task](), set[int]()
    workers: list[Worker] = []

    def next_task() -> Task | None:
        return repeated.popleft() if repeated else next(waiting, None)

    def start_worker(task: Task | None) -> None:
        if task is not None:
            workers.append(Worker(packed))
            workers[-1].send(task)

    try:
        for _ in range(count):
            start_worker(next_task())
        while workers:
            answered = connection.wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in answered]:
                try:
                    kind, data = worker.connection.recv()
                except (EOFError, OSError):
                    workers.remove(worker)
                    repeated.append(_after_death(worker, died))
                    start_worker(next_task())
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
                    worker.send(task)
                yield data
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()


def _after_death(worker: Worker, died: set[int]) -> Task:
    """Returns the pair of a dead process for its second attempt; raises where that is pointless."""
    worker.process.join(EXIT_TIMEOUT)
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
    """The main loop of a worker process; ends on SIGTERM or with its parent."""
    prepare_worker()
    try:
        runner: PairRunner = pickle.loads(packed)
    except Exception as error:
        pipe.send(("error", UsageError(f"the players cannot be sent to another process: {error}")))
        return
    try:
        pipe.send(("ready", None))
        while True:
            number, opening = pipe.recv()
            pipe.send(_play_task(runner, number, opening))
    except (EOFError, OSError):
        pass
    finally:
        # A second signal must not interrupt closing the players.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        runner.close()


def _play_task(runner: PairRunner, number: int, opening: Opening) -> tuple[str, Any]:
    try:
        return "pair", runner.play_pair(number, opening)
    except PondertreeError as error:
        return "error", error
    except Exception:
        return "error", RuntimeError(f"pair {number} cannot be played:\n{traceback.format_exc()}")


@dataclass
class PairRunner:
    """Plays pairs of games between two entrants. Players are started with the first pair and live until `close`."""

    entrants: tuple[Entrant, Entrant]
    factory: Callable[[], Any]
    seed: int
    adjudication: Adjudication
    on_failure: str
    _players: list[Player] = field(default_factory=list, repr=False)

    def play_pair(self, number: int, opening: Opening) -> PairRecord:
        """Plays pair `number`: player 1 moves first in its first game, player 2 in its second."""
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
        """Closes the players."""
        while self._players:
            self._players.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_players": []}
