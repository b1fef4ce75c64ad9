"""Searches in asyncio code: `arun`, `asimulate`, coroutine evaluators, cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.forests import made
from tests.support.models import TableModel
from tests.support.search_helpers import Failing, Hashed, PythonGame, fingerprint, hashed_value, random_position

import pondertree
from pondertree.evaluators import Cached, Symmetric, symmetries_of
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

#: Seconds; generous, since loaded machines wait for a core.
LATEST = 2.0
BOTH = pytest.mark.parametrize("wrap", [False, True], ids=["compiled", "python"])


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "pondertree"]


class Outputs:
    """Pseudorandom logits and values of observations, whose sums are exact in any order."""

    def __init__(self, actions: int = 9) -> None:
        self.actions = actions

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        values = np.array([round(64 * hashed_value(row)) / 64 for row in observations])
        return np.outer(values * 64, np.arange(1, self.actions + 1)) % 7, values


class StateOutputs:
    """The same outputs of states."""

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        return Outputs().evaluate([state.observation() for state in states])


class Coroutines:
    """The methods of an evaluator or a model as coroutine functions; counts the calls that run at once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.busy = self.most_busy = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._inner, name)

        async def call(*arguments: Any) -> Any:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
            try:
                await asyncio.sleep(0)
                return method(*arguments)
            finally:
                self.busy -= 1

        return call


Wrap = Callable[[Any], Any]


def symmetric(evaluator: Any) -> Any:
    return Cached(Symmetric(evaluator, symmetries_of("tictactoe")))


#: Searches with an evaluator or model as it is, or as coroutines, and the game.
PRESETS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "UCT": (lambda wrap, **options: pondertree.UCT(**options), ConnectFour),
    "UCT, evaluator": (lambda wrap, **options: pondertree.UCT(evaluator=wrap(Outputs(65)), **options), Othello),
    "UCT, truncated playouts": (
        lambda wrap, **options: pondertree.UCT(evaluator=wrap(Outputs()), max_depth=3, **options),
        lambda: PythonGame(TicTacToe()),
    ),
    "AlphaZero": (lambda wrap, **options: pondertree.AlphaZero(wrap(Outputs()), **options), TicTacToe),
    "AlphaZero, states": (
        lambda wrap, **options: pondertree.AlphaZero(wrap(StateOutputs()), **options),
        lambda: PythonGame(TicTacToe()),
    ),
    "AlphaZero, wrappers": (
        lambda wrap, **options: pondertree.AlphaZero(symmetric(wrap(Outputs())), **options),
        TicTacToe,
    ),
    "Gumbel": (lambda wrap, **options: pondertree.Gumbel(wrap(Outputs()), **options), TicTacToe),
    "Gumbel, model": (lambda wrap, **options: pondertree.Gumbel(model=wrap(TableModel(9)), **options), TicTacToe),
    "MuZero": (lambda wrap, **options: pondertree.MuZero(wrap(TableModel(9)), **options), TicTacToe),
    "Hybrid": (lambda wrap, **options: pondertree.Hybrid(**options), Chess),
    "Hybrid, evaluator": (lambda wrap, **options: pondertree.Hybrid(wrap(Outputs(4672)), **options), Chess),
}


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


# --- Cancelling ---------------------------------------------------------------------------------------------------


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
        assert not [thread for thread in threading.enumerate() if thread.name == "pondertree"]
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
