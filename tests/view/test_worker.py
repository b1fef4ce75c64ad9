"""The worker: commands in order, slices between them, and an end at any time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest
from tests.support.view import live_of, setup_of, wait_until

from pondertree.view.worker import Worker


def test_commands_run_in_order_and_interrupt_slices() -> None:
    done: list[int] = []
    slices = threading.Semaphore(0)
    worker: Worker

    def run_slice() -> bool:
        slices.release()
        while not worker.is_urgent:
            time.sleep(0.001)
        return len(done) < 10

    worker = Worker(run_slice, lambda: None)
    worker.start()
    for number in range(10):
        assert worker.submit(lambda number=number: done.append(number) or number).result(10) == number
        assert slices.acquire(timeout=10)
    assert done == list(range(10))
    worker.close()


def test_exceptions_and_later_results_reach_the_caller() -> None:
    worker = Worker(lambda: False, lambda: None)
    worker.start()
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(10)
    later: Future[str] = Future()
    done = worker.submit(lambda: later)
    assert worker.submit(lambda: "next").result(10) == "next"
    assert not done.done()
    later.set_result("later")
    assert done.result(10) == "later"
    worker.close()


def test_command_that_is_not_urgent_waits_for_the_slice() -> None:
    is_free = threading.Event()
    interrupts: list[bool] = []
    worker = Worker(lambda: is_free.wait(10) and False, lambda: interrupts.append(True))
    worker.start()
    worker.submit(lambda: None).result(10)
    waiting = worker.submit(lambda: "done", is_urgent=False)
    time.sleep(0.05)
    assert (waiting.done(), worker.is_urgent, len(interrupts)) == (False, False, 1)
    is_free.set()
    assert waiting.result(10) == "done"
    worker.close()


@pytest.mark.parametrize(("algorithm", "simulations"), [("uct", None), ("gumbel", 3_000_000)])
def test_slice_ends_when_a_command_waits(algorithm: str, simulations: int | None) -> None:
    parameters = {"evaluator": "playouts"} if algorithm == "gumbel" else {}
    live = live_of(setup_of("connect4", algorithm, simulations=simulations, **parameters))
    live.start(simulations, None)
    assert live.run is not None
    live.run.slice_seconds = 60.0
    begun = time.monotonic()
    assert live.run_slice(lambda: True) is False
    assert time.monotonic() - begun < 20
    wait_until(lambda: live.require_tree().result().simulations > 0)
