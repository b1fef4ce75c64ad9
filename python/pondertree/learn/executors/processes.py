"""An executor with a process for each actor, on this machine."""

from __future__ import annotations

import itertools
import math
import pickle
import queue
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import Any

from pondertree.errors import InvalidArgumentError, StorageError, UsageError
from pondertree.learn.executors.base import (
    EVALUATION,
    HEARTBEAT_SECONDS,
    Actor,
    Blob,
    Pool,
    RemoteExecutor,
    Reply,
    make_actor,
    own_version,
    run_call,
)
from pondertree.match.worker_process import EXIT_TIMEOUT, WorkerProcess, prepare_worker


@dataclass(frozen=True, kw_only=True)
class ProcessExecutor(RemoteExecutor):
    """Self-play actors in processes of their own on this machine. By default, they share the learner's device."""

    def open(self, scratch: Path) -> Pool:
        """Returns a new pool; weights are stored below `scratch`."""
        if self.gpus:
            import torch

            needed, present = int((self.actors - 1) * self.gpus + 1e-9) + 1, torch.cuda.device_count()
            if needed > present:
                raise InvalidArgumentError(
                    f"gpus = {self.gpus:g} for {self.actors} actors needs {needed} GPUs, but there are {present}"
                )
        return ProcessPool(scratch)

    def device_of(self, index: int, device: str) -> str:
        """Returns the device of an actor: with a share of GPUs, GPU `floor(index * gpus)`."""
        if self.gpus is None or index == EVALUATION:
            return device
        return f"cuda:{int(index * self.gpus + 1e-9)}" if self.gpus else "cpu"


@dataclass(frozen=True)
class FileBlob:
    """A blob in a file."""

    path: str

    def get(self) -> Any:
        """Reads the content."""
        return pickle.loads(Path(self.path).read_bytes())


class ProcessActor(Actor):
    """An actor in a process. A thread of the driver reads its replies, so that a stopped process blocks that alone.

    The thread only reports the end of the pipe: process and pipe belong to the driver's thread, which calls `end`.
    """

    def __init__(self, worker: WorkerProcess, content: FileBlob, replies: queue.SimpleQueue[Reply]) -> None:
        """`content` is what the process makes the actor of."""
        self._worker = worker
        self._content = content
        self.pid = worker.process.pid
        self._replies = replies
        self._thread = threading.Thread(target=self._read, name="replies", daemon=True)
        self._thread.start()
        with suppress(OSError):
            worker.connection.send(content)

    def call(self, method: str, *arguments: Any) -> None:
        """Sends a call; the death of the process is detected when its reply is read."""
        with suppress(OSError):
            self._worker.connection.send((method, arguments))

    def kill(self) -> None:
        """Kills the process; a stopped one, too."""
        with suppress(ValueError):  # closed
            self._worker.process.kill()

    def end(self, timeout: float = EXIT_TIMEOUT) -> str:
        """Kills the process and releases it once its pipe has ended; returns the reason of its end."""
        self.kill()
        ends = time.monotonic() + timeout
        self._thread.join(timeout)
        process = self._worker.process
        process.join(max(ends - time.monotonic(), 0.0))
        if self._thread.is_alive() or process.exitcode is None:
            return "its process cannot be killed"  # until the operating system ends a call in it
        code = process.exitcode
        self._worker.connection.close()
        process.close()
        return f"its process ended (exit code {code})"

    def _read(self) -> None:
        try:
            while True:
                kind, value = self._worker.connection.recv()
                self._replies.put(Reply(self, kind, value))
        except Exception as error:  # the end of the pipe, or half a message
            reason = "" if isinstance(error, (EOFError, OSError)) else f"{type(error).__name__}: {error}"
            self._replies.put(Reply(self, "died", reason))


class ProcessPool(Pool):
    """Actors in processes.

    They are forked, where the system can, from a server that has imported their module: with PyTorch that takes
    seconds, and a dead one is replaced without that delay.
    """

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(dir=scratch, prefix="blobs-", ignore_cleanup_errors=True)
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._actors: set[ProcessActor] = set()

    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        """Starts a process."""
        try:
            packed = pickle.dumps((own_version(), pickle.dumps((make, setup)), *blobs))
        except Exception as error:
            raise UsageError(
                f"the game cannot be sent to another process: {error}. Its class or factory must be importable"
            ) from None
        worker = WorkerProcess(serve, preload=make.__module__)
        actor = ProcessActor(worker, self._write(packed), self._replies)
        self._actors.add(actor)
        return actor

    def poll(self, timeout: float) -> list[Reply]:
        """Returns the replies so far; releases the processes that ended."""
        found: list[Reply] = []
        with suppress(queue.Empty):
            found.append(self._replies.get(timeout=timeout) if timeout > 0.0 else self._replies.get_nowait())
            while True:
                found.append(self._replies.get_nowait())
        return [self._ended(reply) if reply.kind == "died" else reply for reply in found]

    def _ended(self, reply: Reply) -> Reply:
        assert isinstance(reply.actor, ProcessActor)
        self._actors.discard(reply.actor)
        return reply._replace(value=", ".join(filter(None, (reply.actor.end(), reply.value))))

    def put(self, value: Any) -> FileBlob:
        """Writes a file, which is removed with the returned object."""
        return self._write(pickle.dumps(value))

    def _write(self, content: bytes) -> FileBlob:
        path = Path(self._folder.name, str(next(self._numbers)))
        try:
            path.write_bytes(content)
        except OSError as error:
            raise StorageError(f"{str(path)!r} cannot be written: {error.strerror}; stored games are intact") from None
        blob = FileBlob(str(path))
        weakref.finalize(blob, _remove, path)
        return blob

    def close(self) -> None:
        """Kills all processes, whatever they do; waits for at most `EXIT_TIMEOUT`."""
        for actor in self._actors:
            actor.kill()
        ends = time.monotonic() + EXIT_TIMEOUT
        for actor in self._actors:
            actor.end(max(ends - time.monotonic(), 0.0))
        self._actors.clear()
        self._folder.cleanup()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


class Heartbeat:
    """Tells the driver that a call proceeds, at most once a second."""

    def __init__(self, pipe: connection.Connection) -> None:
        self._pipe = pipe
        self._sent_at = -math.inf

    def __call__(self) -> None:
        """Sends a message, from the thread that runs the call."""
        now = time.monotonic()
        if now - self._sent_at >= HEARTBEAT_SECONDS:
            self._sent_at = now
            self._pipe.send(("heartbeat", None))


def serve(pipe: connection.Connection, _: bytes) -> None:
    """The main loop of an actor's process, which receives the actor first; ends on SIGTERM or with its parent."""
    prepare_worker()
    try:
        target, error = make_actor(*pipe.recv().get())
        if hasattr(target, "heartbeat"):
            target.heartbeat = Heartbeat(pipe)
        pipe.send(("failed", error) if error else ("ready", None))
        while not error:
            method, arguments = pipe.recv()
            pipe.send(run_call(target, method, arguments))
    except (EOFError, OSError):
        pass
