"""Worker processes with a pipe to their parent, spawned or forked from a server that has imported their module.

Ctrl-C is the parent's, and they end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

#: Seconds for a worker process to exit after SIGTERM.
EXIT_TIMEOUT = 5.0


class WorkerProcess:
    """The parent's handle of a process that runs `serve(pipe, packed)`."""

    def __init__(
        self, serve: Callable[[connection.Connection, bytes], None], packed: bytes = b"", preload: str = ""
    ) -> None:
        """`preload` names a module that is imported before, once for all processes, where the system can fork."""
        context: Any = multiprocessing.get_context("spawn")
        if preload and "forkserver" in multiprocessing.get_all_start_methods():
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([preload])  # without effect if the server runs
        self.connection, child_connection = context.Pipe()
        self.process: BaseProcess = context.Process(target=serve, args=(child_connection, packed), daemon=True)
        try:
            with deferred_interrupts():
                self.process.start()
        except KeyboardInterrupt:
            if self.process.pid is not None:
                self.end()
            raise
        child_connection.close()

    def end(self) -> None:
        """Terminates the process, which may clean up first."""
        self.process.terminate()
        self.process.join(EXIT_TIMEOUT)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(EXIT_TIMEOUT)
        self.connection.close()
        if self.process.exitcode is not None:  # else the operating system ends it after a call in it
            self.process.close()


class Terminated(SystemExit):
    """Ends a worker process on SIGTERM; another `SystemExit` is a game's."""


def prepare_worker() -> None:
    """Sets up a worker process: ends on SIGTERM or with its parent, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _exit)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defers Ctrl-C until exit. A process started inside inherits a mask that blocks SIGINT.

    The mask alone is not enough: another thread, such as one of NumPy's, may receive the signal, and the main thread
    would be interrupted before it has sent the new process its data.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started on demand, the resource tracker would unblock SIGINT before the worker inherits the mask.
    resource_tracker.ensure_running()
    was_interrupted = False

    def defer(number: int, frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True

    # Only the main thread is interrupted and may set handlers.
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, defer) if is_main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_main:
            signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if was_interrupted:
            signal.raise_signal(signal.SIGINT)


def _exit(number: int, frame: FrameType | None) -> None:
    raise Terminated(0)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
