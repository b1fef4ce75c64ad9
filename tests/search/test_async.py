"""Searches in asyncio code: `arun`, `asimulate`, coroutine evaluators."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.coroutines import PRESETS, Coroutines, Outputs, workers
from tests.support.forests import made
from tests.support.models import TableModel
from tests.support.search_helpers import Failing, Hashed, PythonGame, fingerprint, random_position

import pondertree
from pondertree.games import ConnectFour, Othello, TicTacToe

BOTH = pytest.mark.parametrize("wrap", [False, True], ids=["compiled", "python"])


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not workers()


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(PRESETS)),
    seed=st.integers(0, 10**9),
    in_flight=st.sampled_from([1, 2, 7]),
    rows=st.integers(0, 3),
    data=st.data(),
)
def test_arun_equals_run(name: str, seed: int, in_flight: int, rows: int, data: st.DataObject) -> None:
    make, start = PRESETS[name]
    states = [random_position(start, plies, seed) for plies in range(max(rows, 1))]
    given = states if rows else states[0]
    options = {"num_simulations": 40, "seed": seed, "in_flight": in_flight}
    search, asynchronous = make(lambda inner: inner, **options), make(Coroutines, **options)
    arguments: dict[str, Any] = {"temperature": data.draw(st.sampled_from([None, 1.0]), "temperature")}
    if name.startswith(("AlphaZero", "MuZero")):
        arguments["add_noise"] = data.draw(st.booleans(), "add_noise")
    if data.draw(st.booleans(), "restricted"):
        arguments["root_actions"] = states[-1].legal_actions()[:2] if rows < 2 else None

    async def run_twice() -> list[Any]:
        return await asyncio.gather(*(asynchronous.arun(given, **arguments) for _ in range(2)))

    twice = asyncio.run(run_twice())
    for expected, found in zip([search.run(given, **arguments) for _ in range(2)], twice, strict=True):
        for one, other in zip(expected, found, strict=True) if rows else [(expected, found)]:
            assert fingerprint(one) == fingerprint(other)
            assert (one.seed, one.simulations) == (other.seed, other.simulations)
    assert asynchronous._calls == search._calls


def test_arun_takes_bare_observations() -> None:
    observation = np.array([3.0, 1.0])
    for search in (pondertree.MuZero, pondertree.Gumbel):
        make = lambda model, search=search: search(model=model, num_simulations=20, seed=1, num_players=1)  # noqa: E731
        expected = make(TableModel(4)).run(observation=observation, legal_actions=[0, 2])
        coroutine = make(Coroutines(TableModel(4))).arun(observation=observation, legal_actions=[0, 2])
        assert fingerprint(asyncio.run(coroutine)) == fingerprint(expected)


def test_async_searches_leave_search_and_results_picklable() -> None:
    search = pondertree.UCT(50, seed=1)
    result = asyncio.run(search.arun(ConnectFour()))
    assert fingerprint(pickle.loads(pickle.dumps(result))) == fingerprint(result)
    again = pickle.loads(pickle.dumps(search))
    assert fingerprint(again.run(ConnectFour())) == fingerprint(search.run(ConnectFour()))


@BOTH
def test_asimulate_grows_the_tree_of_simulate(wrap: bool) -> None:
    async def grow() -> tuple[pondertree.SearchResult, list[pondertree.SearchResult]]:
        tree = pondertree.UCT(seed=2, evaluator=Coroutines(Hashed()), in_flight=3).tree(made(ConnectFour(), wrap))
        assert await tree.asimulate(40) is tree
        tree.advance(3)
        await tree.asimulate(seconds=30, n=20)
        forest = pondertree.UCT(seed=2).forest([made(ConnectFour(), wrap)] * 3)
        assert await forest.asimulate([10, 20, 30]) is forest
        return tree.result(), forest.results()

    tree = pondertree.UCT(seed=2, evaluator=Hashed(), in_flight=3).tree(made(ConnectFour(), wrap)).simulate(40)
    tree.advance(3)
    one, forest = asyncio.run(grow())
    assert fingerprint(one) == fingerprint(tree.simulate(20).result())
    expected = pondertree.UCT(seed=2).forest([made(ConnectFour(), wrap)] * 3).simulate([10, 20, 30]).results()
    assert list(map(fingerprint, forest)) == list(map(fingerprint, expected))


# --- The event loop -----------------------------------------------------------------------------------------------


class Heartbeat:
    """Ticks in the event loop and measures the longest pause."""

    def __init__(self) -> None:
        self.ticks = 0
        self.longest = 0.0

    async def __aenter__(self) -> Heartbeat:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last)
            self.ticks, last = self.ticks + 1, now


@BOTH
def test_event_loop_stays_responsive(wrap: bool) -> None:
    async def work() -> Heartbeat:
        async with Heartbeat() as heart:
            await pondertree.UCT(time_limit=1.0).arun(made(Othello(), wrap))
        return heart

    heart = asyncio.run(work())
    assert heart.ticks >= 10
    assert heart.longest < 0.5


def test_concurrent_searches_are_evaluated_together() -> None:
    evaluator = Coroutines(Outputs())

    async def work() -> list[pondertree.SearchResult]:
        search = pondertree.AlphaZero(evaluator, num_simulations=50, seed=3)
        return await asyncio.gather(*(search.arun(TicTacToe()) for _ in range(6)))

    results = asyncio.run(work())
    search = pondertree.AlphaZero(Outputs(), num_simulations=50, seed=3)
    assert [fingerprint(result) for result in results] == [fingerprint(search.run(TicTacToe())) for _ in range(6)]
    assert evaluator.most_busy > 1


def test_coroutine_is_called_once_per_batch_in_the_event_loop() -> None:
    sizes: list[int] = []
    variable = contextvars.ContextVar("variable", default=0)

    async def evaluate(observations: np.ndarray) -> Any:
        assert threading.current_thread() is threading.main_thread()
        assert asyncio.current_task() is task
        assert variable.get() == 5
        sizes.append(len(observations))
        return Outputs().evaluate(observations)

    async def work() -> None:
        nonlocal task
        variable.set(5)
        task = asyncio.create_task(
            pondertree.AlphaZero(evaluate, num_simulations=64, in_flight=4).arun([TicTacToe()] * 3)
        )
        await task

    task: Any = None
    asyncio.run(work())
    assert max(sizes) == 12
    assert len(sizes) < 3 * 65 / 6


def test_functions_are_called_in_the_context_of_the_caller() -> None:
    variable = contextvars.ContextVar("variable", default=0)
    seen: set[tuple[int, bool]] = set()

    def note(*_: Any) -> None:
        seen.add((variable.get(), threading.current_thread() is threading.main_thread()))

    async def work() -> None:
        variable.set(5)
        await pondertree.UCT(5).arun(ConnectFour(), progress=note)

    asyncio.run(work())
    assert seen == {(5, False)}


def test_coroutine_may_await_another_search() -> None:
    async def evaluate(observations: np.ndarray) -> Any:
        inner = await pondertree.UCT(8, seed=1).arun([TicTacToe()] * len(observations))
        return None, [result.value for result in inner]

    assert asyncio.run(pondertree.UCT(20, evaluator=evaluate).arun(TicTacToe())).simulations == 20


# --- Errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in ("UCT", "Hybrid")])
def test_synchronous_search_refuses_coroutine_functions(name: str) -> None:
    """Also inside a coroutine, and inside a coroutine of a running search."""
    make, start = PRESETS[name]
    search = make(Coroutines, num_simulations=5)

    async def inside(*_: Any) -> Any:
        with pytest.raises(pondertree.UsageError, match=r"await search\.arun"):
            search.run(start())
        return None, [0.0]

    with pytest.raises(pondertree.UsageError, match=r"coroutine function.*await search\.arun\(\.\.\.\)"):
        search.run(start())
    asyncio.run(inside())
    asyncio.run(pondertree.UCT(2, evaluator=inside).arun(ConnectFour()))


@BOTH
@pytest.mark.parametrize("error", [RuntimeError("lost"), TimeoutError(), KeyboardInterrupt(), StopAsyncIteration()])
def test_exceptions_roll_back_the_batch(wrap: bool, error: BaseException) -> None:
    async def work() -> None:
        evaluator = Coroutines(Failing(7, error))
        tree = pondertree.UCT(seed=3, evaluator=evaluator, in_flight=2).tree(made(ConnectFour(), wrap))
        raised = type(error) if isinstance(error, KeyboardInterrupt) else pondertree.EvaluationError
        with pytest.raises(raised) as caught:
            await tree.asimulate(60)
        if raised is not type(error):
            assert caught.value.__cause__ is error
        done = tree.result().simulations
        whole = pondertree.UCT(seed=3, evaluator=Hashed(), in_flight=2).tree(made(ConnectFour(), wrap))
        assert 0 < done < 60
        assert fingerprint(tree.result()) == fingerprint(whole.simulate(done).result())
        await tree.asimulate(60 - done)
        assert fingerprint(tree.result()) == fingerprint(whole.simulate(60 - done).result())

    asyncio.run(work())


def test_other_errors_propagate() -> None:
    class Broken(PythonGame):
        def returns(self) -> list[float]:
            raise ZeroDivisionError

    def stop(done: int, wanted: int) -> None:
        raise StopIteration

    async def short(observations: np.ndarray) -> Any:
        return None, [0.0]

    async def work() -> None:
        search = pondertree.UCT(100, in_flight=4, evaluator=short)
        for coroutine, error in (
            (search.arun(ConnectFour(), temperature=-1.0), pondertree.InvalidArgumentError),
            (search.arun(ConnectFour(), patience=1), TypeError),
            (search.arun(ConnectFour()), pondertree.EvaluationError),
            (pondertree.UCT(100).arun(Broken(TicTacToe())), pondertree.GameContractError),
            (pondertree.UCT(100).arun(ConnectFour(), progress=stop), RuntimeError),
        ):
            with pytest.raises(error):
                await asyncio.wait_for(coroutine, 30)
        assert (await pondertree.UCT(100).arun(ConnectFour())).simulations == 100

    asyncio.run(work())


def test_tree_is_shown_while_it_is_searched() -> None:
    async def show() -> tuple[str, str | None]:
        tree = pondertree.UCT(seed=1).tree(ConnectFour())
        task = asyncio.create_task(tree.asimulate(10_000_000))
        while not tree._forest.is_busy:
            await asyncio.sleep(0.001)
        shown = repr(tree), tree._repr_html_()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert tree._repr_html_() is not None
        return shown

    assert asyncio.run(show()) == ("<Tree: being searched>", None)
