"""The thread that runs a session: commands one after another, and slices of the search between them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

#: Seconds that `close` waits for a slice to end: a game in Python may be slow.
CLOSING_SECONDS = 10.0


class WithinSliceError(Exception):
    """Raised by a command that was called within a slice, before it changed anything: it is called again after it."""

    def __init__(self, *, ends_slice: bool) -> None:
        super().__init__("the command needs the end of the slice")
        self.ends_slice = ends_slice
        """Whether the slice shall end early for the command."""


@dataclass(eq=False)
class Job:
    """A command that waits, and the future of its result."""

    command: Callable[[], Any]
    is_urgent: bool
    done: Future[Any] = field(default_factory=Future)
    has_begun: bool = False

    def call(self) -> None:
        """Calls the command, unless its future was cancelled before; raises nothing but `WithinSliceError`."""
        if not self.has_begun and not self.done.set_running_or_notify_cancel():
            return
        self.has_begun = True
        try:
            result = self.command()
        except WithinSliceError:
            raise
        except BaseException as error:
            # A game may raise SystemExit, which would end the server where the result is awaited.
            self.done.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
            return
        if isinstance(result, Future):
            result.add_done_callback(self._forward)
        else:
            self.done.set_result(result)

    def _forward(self, later: Future[Any]) -> None:
        try:
            self.done.set_result(later.result())
        except Exception as error:
            self.done.set_exception(error)


class Worker:
    """Calls commands in the order of `submit`; `run_slice` as long as it returns True, between commands.

    `interrupt` ends a slice early, from any thread; it is called only while an urgent command waits or after `close`.
    """

    def __init__(self, run_slice: Callable[[], bool], interrupt: Callable[[], None]) -> None:
        self._run_slice, self._interrupt = run_slice, interrupt
        #: Held for every change of the attributes below.
        self._condition = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._num_urgent = 0
        self.is_closed = False
        self.is_within_slice = False
        """Whether a command is called by `call_within_slice`."""
        self._thread = threading.Thread(target=self._work, name="pondertree-view", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread after the current slice, without the commands that wait."""
        with self._condition:
            self.is_closed = True
            self._condition.notify()
            self._interrupt()
        if self._thread.is_alive():
            self._thread.join(CLOSING_SECONDS)

    @property
    def is_urgent(self) -> bool:
        """Whether a slice shall end early: an urgent command waits, or the thread shall end."""
        return self._num_urgent > 0 or self.is_closed

    def submit(self, command: Callable[[], Any], *, is_urgent: bool = True) -> Future[Any]:
        """Lets the thread call a command; the future has its result, or that of the future that it returns."""
        job = Job(command, is_urgent)
        with self._condition:
            self._jobs.append(job)
            self._num_urgent += is_urgent
            self._condition.notify()
            if is_urgent:
                # The thread cannot take the job before the lock is released: no later slice is interrupted.
                self._interrupt()
        return job.done

    def call_within_slice(self) -> bool:
        """Calls the urgent commands that wait, in a slice that must not end early without need.

        Returns whether it shall end: a command raised `WithinSliceError` to demand it, or the thread shall end.
        """
        while not self.is_closed:
            with self._condition:
                job = next((job for job in self._jobs if job.is_urgent), None)
            if job is None:
                return False
            self.is_within_slice = True
            try:
                job.call()
            except WithinSliceError as error:
                if error.ends_slice:
                    return True
            else:
                with self._condition:
                    self._jobs.remove(job)
            finally:
                self.is_within_slice = False
            with self._condition:
                job.is_urgent = False
                self._num_urgent -= 1
        return True

    def _take(self) -> Job | None:
        with self._condition:
            if not self._jobs:
                return None
            job = self._jobs.popleft()
            self._num_urgent -= job.is_urgent
            return job

    def _work(self) -> None:
        is_running = False
        while True:
            with self._condition:
                while not (is_running or self._jobs or self.is_closed):
                    self._condition.wait()
            if self.is_closed:
                return
            job = self._take()
            if job is None:
                is_running = self._run_slice()
            else:
                job.call()
                is_running = True  # the command may have started the search
