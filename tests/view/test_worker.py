"""The worker: commands in order, slices between them, and an end at any time."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import CancelledError, Future

import pytest
from tests.support.view import live_of, setup_of, wait_until

from pondertree.view.worker import WithinSliceError, Worker


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


def test_cancelled_commands_are_left_out_and_the_thread_lives() -> None:
    is_free = threading.Event()
    calls: list[str] = []
    worker = Worker(lambda: False, lambda: None)
    worker.start()
    worker.submit(lambda: is_free.wait(10))
    for command in (lambda: calls.append("cancelled"), lambda: 1 / 0):
        assert worker.submit(command).cancel()
    is_free.set()
    assert worker.submit(lambda: "next").result(10) == "next"
    assert (calls, worker.is_urgent) == ([], False)
    worker.close()


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_exception_of_a_later_result_reaches_the_caller(is_cancelled: bool) -> None:
    worker = Worker(lambda: False, lambda: None)
    worker.start()
    later: Future[str] = Future()
    done = worker.submit(lambda: later)
    worker.submit(lambda: None).result(10)
    if is_cancelled:
        later.cancel()
    else:
        later.set_exception(ZeroDivisionError())
    with pytest.raises((ZeroDivisionError, CancelledError)):
        done.result(10)
    worker.close()


def test_slice_is_urgent_as_long_as_an_urgent_command_waits() -> None:
    is_free = threading.Event()
    worker = Worker(lambda: False, lambda: None)
    worker.start()
    worker.submit(lambda: is_free.wait(10))
    flags = [worker.submit(lambda: worker.is_urgent) for _ in range(3)]
    worker.submit(lambda: None, is_urgent=False)
    is_free.set()
    assert [each.result(10) for each in flags] == [True, True, False]
    worker.close()


def test_interrupts_come_only_while_a_command_waits() -> None:
    """However the threads are switched: an interrupt that comes late would end a later slice."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    flags: list[bool] = []
    worker: Worker
    worker = Worker(lambda: False, lambda: flags.append(worker.is_urgent))
    worker.start()
    try:
        for _ in range(2_000):
            worker.submit(lambda: None).result(10)
            assert not worker.is_urgent
    finally:
        sys.setswitchinterval(interval)
    assert flags == [True] * 2_000
    worker.close()


def test_urgent_commands_are_called_within_a_slice_unless_they_end_it() -> None:
    calls: list[str] = []
    ends = threading.Event()
    worker: Worker

    def run_slice() -> bool:
        while not worker.call_within_slice():
            time.sleep(0.001)
        ends.set()
        return False

    def command(name: str, ends_slice: bool | None) -> str:
        if ends_slice is not None and worker.is_within_slice:
            raise WithinSliceError(ends_slice=ends_slice)
        calls.append(name)
        return name

    worker = Worker(run_slice, lambda: None)
    worker.start()
    worker.submit(lambda: None).result(10)
    waiting = worker.submit(lambda: command("waits", False))
    assert worker.submit(lambda: command("within", None)).result(10) == "within"
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(10)
    assert (waiting.done(), worker.is_urgent, ends.is_set()) == (False, False, False)
    ending = worker.submit(lambda: command("ends", True))
    assert ending.result(10) == "ends"
    assert ends.is_set()
    assert calls == ["within", "waits", "ends"]
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
