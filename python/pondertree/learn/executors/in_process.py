"""The default executor: one actor in this process, called in turn or in a thread of its own."""

from __future__ import annotations

import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondertree.learn.executors.base import Actor, Blob, Content, Executor, Pool, Reply


@dataclass(frozen=True)
class InProcessExecutor(Executor):
    """Self-play in this process. Exceptions of the actor end the training."""

    threaded: bool | None = None
    """Whether calls run in a thread, concurrently with the driver; otherwise `poll` runs them. None: in a training
    whose self-play and optimisation are concurrent."""
    is_remote = False
    timeout = math.inf

    def open(self, scratch: Path) -> Pool:
        """Returns a new pool."""
        return ThreadPool() if self.threaded else LocalPool()


class LocalActor(Actor):
    """An actor in this process."""

    def __init__(self, target: Any, calls: Callable[[Callable[[], Reply]], None]) -> None:
        self.target = target
        """The object itself."""
        self._queue = calls

    def call(self, method: str, *arguments: Any) -> None:
        """Queues a call."""
        self._queue(lambda: Reply(self, "value", getattr(self.target, method)(*arguments)))

    def kill(self) -> None:
        """Ends the threads of the actor."""
        self.target.close()

    @contextmanager
    def interrupted(self) -> Iterator[bool]:
        """Sets the actor's event `cut` within."""
        self.target.cut.set()
        yield True
        self.target.cut.clear()

    def state(self) -> Any:
        """Returns the actor's state."""
        return self.target.state()


class LocalPool(Pool):
    """Runs calls when replies are fetched; exceptions pass through `poll`."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], Reply]] = deque()
        self._actors: list[LocalActor] = []

    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        """Makes the actor."""
        actor = self._made(LocalActor(make(setup, *blobs), self._calls.append))
        self._calls.append(lambda: Reply(actor, "ready", None))
        return actor

    def _made(self, actor: LocalActor) -> LocalActor:
        self._actors.append(actor)
        return actor

    def poll(self, timeout: float) -> list[Reply]:
        """Runs the first queued call and returns its reply."""
        return [self._calls.popleft()()] if self._calls else []

    def put(self, value: Any) -> Content:
        """Returns the value as a blob."""
        return Content(value)

    def close(self) -> None:
        """Drops all calls and ends the actors."""
        self._calls.clear()
        for actor in self._actors:
            actor.kill()


class ThreadPool(LocalPool):
    """Runs calls in one thread; exceptions are replies."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: queue.SimpleQueue[Callable[[], Reply] | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="self-play", daemon=True)
        self._thread.start()

    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        """Makes the actor, in the calling thread."""
        actor = self._made(LocalActor(make(setup, *blobs), self._queue.put))
        self._replies.put(Reply(actor, "ready", None))
        return actor

    def poll(self, timeout: float) -> list[Reply]:
        """Returns the replies so far."""
        found: list[Reply] = []
        with suppress(queue.Empty):
            found.append(self._replies.get(timeout=timeout) if timeout > 0.0 else self._replies.get_nowait())
            while True:
                found.append(self._replies.get_nowait())
        return found

    def close(self) -> None:
        """Waits for the running call, drops the others and ends the actors."""
        self._closed.set()
        self._queue.put(None)
        self._thread.join()
        super().close()

    def _run(self) -> None:
        while (call := self._queue.get()) is not None and not self._closed.is_set():
            try:
                self._replies.put(call())
            except BaseException as error:
                self._replies.put(Reply(LocalActor(None, self._queue.put), "error", error))
