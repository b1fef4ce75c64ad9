"""The thread that runs a session: commands one after another, and slices of the search between them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

#: Seconds that `close` waits for a slice to end: a game in Python may be slow.
CLOSING_SECONDS = 10.0


class Worker:
    """Calls commands in the order of `submit`; `run_slice` as long as it returns True, between commands.

    `interrupt` ends a slice early, from any thread.
    """

    def __init__(self, run_slice: Callable[[], bool], interrupt: Callable[[], None]) -> None:
        self._run_slice, self._interrupt = run_slice, interrupt
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._is_urgent = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="pondertree-view", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread after the current slice, without the commands that wait."""
        self._is_closed = True
        self._put(lambda: None)
        if self._thread.is_alive():
            self._thread.join(CLOSING_SECONDS)

    @property
    def is_urgent(self) -> bool:
        """Whether a command waits that interrupts a slice."""
        return self._is_urgent.is_set()

    def submit(self, command: Callable[[], Any], *, is_urgent: bool = True) -> Future[Any]:
        """Lets the thread call a command; the future has its result, or that of the future that it returns."""
        done: Future[Any] = Future()

        def job() -> None:
            try:
                result = command()
            except Exception as error:
                done.set_exception(error)
                return
            if isinstance(result, Future):
                result.add_done_callback(lambda later: done.set_result(later.result()))
            else:
                done.set_result(result)

        self._put(job, is_urgent=is_urgent)
        return done

    def _put(self, job: Callable[[], None], *, is_urgent: bool = True) -> None:
        self._jobs.put(job)
        if is_urgent:
            self._is_urgent.set()
            self._interrupt()

    def _work(self) -> None:
        is_running = False
        while not self._is_closed:
            try:
                job = self._jobs.get(block=not is_running)
            except queue.Empty:
                is_running = self._run_slice()
                continue
            self._is_urgent.clear()
            job()
            is_running = True  # the command may have started the search
