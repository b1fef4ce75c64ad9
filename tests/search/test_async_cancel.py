"""Cancelling searches in asyncio code: promptly, with complete batches, and without a thread left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.coroutines import PRESETS, Coroutines, workers
from tests.support.forests import made
from tests.support.search_helpers import Hashed, fingerprint

import pondertree
from pondertree.errors import UsageError
from pondertree.games import ConnectFour, Othello

#: Seconds; generous, since loaded machines wait for a core.
LATEST = 2.0
BOTH = pytest.mark.parametrize("wrap", [False, True], ids=["compiled", "python"])


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not workers()


class Hanging(Hashed):
    """Hangs in its fifth call."""

    def __init__(self) -> None:
        super().__init__()
        self.cleaned_up = False

    async def evaluate(self, observations: np.ndarray) -> Any:  # type: ignore[override]
        answer = super().evaluate(observations)
        if self.calls == 5:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)
                self.cleaned_up = True
        return answer


async def seconds_to_cancel(task: asyncio.Task[Any]) -> float:
    """Cancels a task after a moment; returns the seconds until it has ended."""
    await asyncio.sleep(0.1)
    begun = time.perf_counter()
    assert not task.done()
    assert task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.perf_counter() - begun


@BOTH
@pytest.mark.parametrize("evaluator", [None, Hashed, Hanging])
def test_cancelling_stops_promptly_and_keeps_complete_batches(wrap: bool, evaluator: Any) -> None:
    async def work() -> None:
        made_evaluator = None if evaluator is None else evaluator()
        options: dict[str, Any] = {"seed": 3, "in_flight": 2}
        tree = pondertree.UCT(evaluator=made_evaluator, **options).tree(made(Othello(), wrap))
        assert await seconds_to_cancel(asyncio.create_task(tree.asimulate(seconds=60))) < LATEST
        assert not workers()
        done = tree.result().simulations
        assert done == tree.result().visits.sum() > 0
        if isinstance(made_evaluator, Hanging):
            assert made_evaluator.cleaned_up
            assert done < 10
        whole = pondertree.UCT(evaluator=None if evaluator is None else Hashed(), **options).tree(made(Othello(), wrap))
        assert fingerprint(tree.result()) == fingerprint(whole.simulate(done).result())
        await tree.asimulate(20)
        assert fingerprint(tree.result()) == fingerprint(whole.simulate(20).result())

    asyncio.run(work())


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_cancelled(name: str) -> None:
    make, start = PRESETS[name]
    limit = {"num_simulations": 10**6} if name.startswith("Gumbel") else {"time_limit": 60.0, "solve": False}
    search = make(Coroutines, **limit)

    async def work() -> float:
        return await seconds_to_cancel(asyncio.create_task(search.arun([start()] * 2)))

    assert asyncio.run(work()) < LATEST


def test_timeout_and_second_cancel() -> None:
    async def work() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await pondertree.UCT(time_limit=60).arun(Othello())
        begun = threading.Event()
        released = threading.Event()

        def evaluate(observations: np.ndarray) -> Any:
            begun.set()
            released.wait(60)
            return Hashed().evaluate(observations)

        task = asyncio.create_task(pondertree.UCT(time_limit=60, evaluator=evaluate).arun(ConnectFour()))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.05)
            assert not task.done(), "a call of the evaluator is not abandoned"
        released.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())


class Suppressing(Hashed):
    """Suppresses that it is cancelled, as a client library may that tries again."""

    async def evaluate(self, observations: np.ndarray) -> Any:  # type: ignore[override]
        answer = super().evaluate(observations)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1 if self.calls > 2 else 0)
        return answer


def test_evaluator_that_suppresses_cancellation_ends_with_its_batch() -> None:
    async def work() -> None:
        evaluator = Suppressing()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await pondertree.UCT(num_simulations=10, evaluator=evaluator).arun(ConnectFour())
        assert evaluator.calls == 3
        evaluator = Suppressing()
        tree = pondertree.UCT(evaluator=evaluator, seed=1).tree(ConnectFour())
        task = asyncio.create_task(tree.asimulate(10))
        await asyncio.sleep(0.05)
        assert task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert evaluator.calls == 3
        assert tree.result().simulations < 10
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    asyncio.run(work())


def test_search_runs_in_the_clean_up_of_a_cancelled_task() -> None:
    async def work() -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            # The request to cancel is older than the search.
            return await pondertree.UCT(num_simulations=10, evaluator=Suppressing()).arun(ConnectFour())

    async def main() -> Any:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(main()).simulations == 10


@pytest.mark.parametrize("run", ["arun", "asimulate"])
def test_coroutine_function_as_progress_is_refused(run: str) -> None:
    async def report(done: int, total: int) -> None: ...

    class Report:
        async def __call__(self, done: int, total: int) -> None: ...

    async def work(progress: Any) -> None:
        search = pondertree.UCT(num_simulations=10)
        if run == "arun":
            await search.arun(ConnectFour(), progress=progress)
        else:
            await search.tree(ConnectFour()).asimulate(progress=progress)

    for progress in (report, Report()):
        with pytest.raises(UsageError, match="progress must be a plain function"):
            asyncio.run(work(progress))


@pytest.mark.parametrize("evaluator", [None, Hanging])
def test_closing_the_coroutine_ends_the_search(evaluator: Any) -> None:
    """Python closes coroutines of a loop that was stopped without cancelling its tasks."""
    loop = asyncio.new_event_loop()
    coroutine = pondertree.UCT(time_limit=60, evaluator=evaluator and evaluator()).arun(Othello())

    async def drive() -> None:
        coroutine.send(None)
        await asyncio.sleep(0.1)

    loop.run_until_complete(drive())
    begun = time.perf_counter()
    coroutine.close()
    assert time.perf_counter() - begun < LATEST
    loop.close()


def test_end_of_the_program_cancels() -> None:
    async def work() -> None:
        tasks.append(asyncio.create_task(pondertree.UCT(time_limit=60, evaluator=Hanging()).arun(Othello())))
        await asyncio.sleep(0.1)

    tasks: list[asyncio.Task[Any]] = []
    begun = time.perf_counter()
    asyncio.run(work())
    assert time.perf_counter() - begun < LATEST
    assert tasks[0].cancelled()
