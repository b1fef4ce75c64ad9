"""Calls from asyncio code: a search runs in a worker thread, the coroutines of its evaluator in the event loop.

The task that awaits a search also awaits the coroutine of each batch, so that cancelling the task cancels both, and
what the coroutine raises is raised in the search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from pondertree.errors import UsageError

# Only the functions below import asyncio: `import pondertree` stays quick.
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Queue
    from concurrent.futures import Future

Result = TypeVar("Result")


class WorkerCall:
    """A call in a worker thread. Only the worker waits, so that the order of the statements below needs no lock."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        from asyncio import Queue

        self.result: Any = None
        self.error: BaseException | None = None
        self._loop = loop
        self._requests: Queue[tuple[Any, Future[Any]] | None] = Queue()
        """What the event loop should await, with the future of its answer; None at the end of the call."""
        self._reply: Future[Any] | None = None
        self._is_cancelled = False
        #: The number of requests to cancel the task that were there before this call.
        self._cancelling = self._count_cancelling()
        self._stops: list[Callable[[], None]] = []

    def run(self, work: Callable[[], Any]) -> None:
        """Calls `work` in this thread, the worker."""
        this_thread.call = self
        try:
            self.result = work()
        except BaseException as error:
            self.error = error
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._requests.put_nowait, None)

    def wait_for(self, awaitable: Any) -> Any:
        """Returns the result of an awaitable, which the event loop awaits; called by the worker."""
        from concurrent.futures import Future

        reply = self._reply = Future()
        try:
            self._loop.call_soon_threadsafe(self._requests.put_nowait, (awaitable, reply))
            if self._is_cancelled:
                reply.cancel()
            return reply.result()
        finally:
            close(awaitable)

    def begin(self, stop: Callable[[], None]) -> None:
        """Has `cancel` call `stop` until `end`; raises if the call is cancelled."""
        self._stops.append(stop)
        self.raise_if_cancelled()

    def end(self, stop: Callable[[], None]) -> None:
        """Ends what `begin` began."""
        self._stops.remove(stop)

    def raise_if_cancelled(self) -> None:
        """Raises if the call is cancelled."""
        if self._is_cancelled:
            from concurrent.futures import CancelledError

            raise CancelledError

    @staticmethod
    def _count_cancelling() -> int:
        from asyncio import current_task

        task = current_task()
        return 0 if task is None else task.cancelling()

    async def serve(self) -> None:
        """Awaits what the worker asks for, until its end; raises if the task was cancelled, even within an awaitable.

        The coroutine of an evaluator may suppress its `CancelledError`: its answer is used, and the search ends then.
        """
        from asyncio import CancelledError

        while (request := await self._requests.get()) is not None:
            awaitable, reply = request
            if not reply.set_running_or_notify_cancel():
                continue
            try:
                answer = await awaitable
            except BaseException as error:
                reply.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                reply.set_result(answer)
                if not self._is_cancelled and self._count_cancelling() > self._cancelling:
                    raise CancelledError

    def cancel(self) -> None:
        """Stops the worker's searches and its wait for an answer; called by the event loop's thread."""
        self._is_cancelled = True
        for stop in tuple(self._stops):
            stop()
        if self._reply is not None:
            self._reply.cancel()


class _Thread(threading.local):
    call: WorkerCall | None = None
    """The call that this thread works for."""


#: The call that the current thread works for.
this_thread = _Thread()


async def in_worker(work: Callable[[], Result]) -> Result:
    """Returns the result of `work()`, which runs in a thread of its own and has ended when this returns or raises."""
    import asyncio

    call = WorkerCall(asyncio.get_running_loop())
    # Not of a pool, whose threads could all wait for evaluators that need one.
    thread = threading.Thread(target=copy_context().run, args=(call.run, work), name="pondertree")
    thread.start()
    interrupt: BaseException | None = None
    try:
        while thread.is_alive():
            try:
                await call.serve()
                break
            except asyncio.CancelledError as error:
                interrupt = error
                call.cancel()
    finally:
        call.cancel()
        thread.join()
    if interrupt is not None or call.error is not None:
        raise interrupt or call.error  # type: ignore[misc]  # one of them is an exception
    result: Result = call.result
    return result


def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of an evaluator or a model; if it returns a coroutine, the event loop of the call awaits it."""
    answer = function(*arguments)
    if not hasattr(answer, "__await__"):
        return answer
    if this_thread.call is None:
        close(answer)
        name = getattr(function, "__qualname__", function)
        raise UsageError(
            f"{name} is a coroutine function, which only `await search.arun(...)` and `await tree.asimulate(...)` can "
            "await: outside of coroutines, `asyncio.run(search.arun(...))`"
        )
    return this_thread.call.wait_for(answer)


def refuse_coroutine(function: Callable[..., Any], name: str) -> None:
    """Raises for a coroutine function where a search calls a function without awaiting it."""
    from inspect import iscoroutinefunction

    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        raise UsageError(
            f"{name} must be a plain function, not a coroutine function: searches call it without awaiting it, "
            "`arun` and `asimulate` in a worker thread; it can pass numbers on by loop.call_soon_threadsafe"
        )


def close(awaitable: Any) -> None:
    """Closes a coroutine, which otherwise warns if nothing awaits it."""
    if isinstance(awaitable, Coroutine):
        awaitable.close()
