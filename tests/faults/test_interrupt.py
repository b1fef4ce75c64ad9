"""Ctrl-C: SIGINT at random times is raised promptly and leaves searches usable."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import Hashed, PythonGame, fingerprint

import pondertree
from pondertree.games import Chess, ConnectFour, Othello

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on POSIX")


@pytest.fixture(autouse=True)
def _no_callbacks_of_the_garbage_collector() -> Iterator[None]:
    """Disables garbage collection callbacks: an interrupt raised in one, such as hypothesis's, would be lost."""
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    yield
    gc.callbacks[:] = callbacks


#: The documented limit is 200 ms; loaded machines get more, since waiting for a core counts.
LATEST = 1.0


def seconds_until_interrupted(work: Callable[[], object], delay: float) -> float:
    """Sends SIGINT after `delay` seconds of `work` and returns the seconds until KeyboardInterrupt was raised."""
    sent: list[float] = []

    def send() -> None:
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        came = time.perf_counter()
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)
    return came - sent[0]


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "othello": (Othello(), {}),
    "chess": (Chess(), {}),
    "two threads, many trees": ([Othello()] * 4, {"threads": 2}),
    "two threads, leaves in flight": (Othello(), {"threads": 2, "in_flight": 16}),
    "a game in Python": (PythonGame(Othello()), {}),
    "an evaluator in Python": (ConnectFour(), {"evaluator": Hashed(), "in_flight": 4}),
    "leaves in flight in Python": ([PythonGame(ConnectFour())] * 3, {"in_flight": 4}),
}


@pytest.mark.parametrize("name", CASES)
def test_interrupt_is_raised_promptly_and_search_stays_usable(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    state, options = CASES[name]
    states = state if isinstance(state, list) else [state]
    numbers = random.Random(name)
    waited = []
    for _ in range(3):
        # A large tree must stop as quickly; it is reused, so that it is checked afterwards.
        forest = pondertree.UCT(time_limit=60.0, **options).forest(states, seeds=7)
        waited.append(seconds_until_interrupted(forest.simulate, numbers.uniform(0.005, 0.15)))
        done = [result.simulations for result in forest.results()]
        forest.simulate([max(done) + 20 - n for n in done])
        whole = pondertree.UCT(**options).forest(states, seeds=7).simulate(max(done) + 20)
        assert [fingerprint(a) for a in forest.results()] == [fingerprint(b) for b in whole.results()]
    with capsys.disabled():
        print(f"\n  {name}: interrupted within {', '.join(f'{1000 * s:.0f}' for s in waited)} ms", end=" ")
    assert max(waited) < LATEST


def interrupted(work: Callable[[], object], delay: float = 0.1) -> Any:
    """Returns the exception that `work` raises on SIGINT after `delay` seconds."""
    caught: list[Any] = []

    def catch() -> None:
        try:
            work()
        except KeyboardInterrupt as interrupt:
            caught.append(interrupt)
            raise

    assert seconds_until_interrupted(catch, delay) < LATEST
    return caught[0]


@pytest.mark.parametrize("name", CASES)
def test_interrupted_run_has_partial_results(name: str) -> None:
    state, options = CASES[name]
    interrupt = interrupted(lambda: pondertree.UCT(time_limit=60.0, seed=1, **options).run(state))
    results = interrupt.result if isinstance(state, list) else [interrupt.result]
    assert len(results) == (len(state) if isinstance(state, list) else 1)
    searched = [result for result in results if result.simulations]
    assert searched
    for result in searched:
        assert result.visits.sum() == result.simulations
        assert np.isfinite(result.value)
        assert result.pv[0] == result.move
        assert all(child.in_flight == 0 for child in result.root.children.values())


def test_interrupted_run_of_one_state_has_one_result() -> None:
    search = pondertree.UCT(time_limit=60.0, seed=1)
    for call in (search.search, search.get_policy):
        interrupt = interrupted(lambda call=call: call(Othello()))  # type: ignore[misc]
        assert interrupt.result.simulations > 0


def test_interrupt_is_raised_if_results_are_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pondertree.InternalError("broken")

    monkeypatch.setattr(pondertree.search.forest.Forest, "results", refuse)
    interrupt = interrupted(lambda: pondertree.UCT(time_limit=60.0, seed=1).run(Othello()))
    assert type(interrupt) is KeyboardInterrupt
    assert not hasattr(interrupt, "result")


def test_unhandled_interrupt_ends_process_by_signal() -> None:
    code = "import pondertree\nfrom pondertree.games import Othello\nprint('begun', flush=True)\n"
    code += "pondertree.UCT(time_limit=60.0).run(Othello())"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert stderr.endswith("KeyboardInterrupt\n`result` of this exception holds the partial result.\n")


def test_search_is_usable_after_interrupted_run() -> None:
    search = pondertree.UCT(time_limit=60.0, seed=1)
    assert seconds_until_interrupted(lambda: search.run(Othello()), 0.05) < LATEST
    search.time_limit, search.num_simulations = None, 50
    result = search.run(Othello())
    assert result.simulations == 50
    assert np.isfinite(result.value)
