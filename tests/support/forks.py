"""Forks while other threads search: `python -m tests.support.forks 5000`. Each child searches on two threads.

`tests/test_forks.py` runs it in a subprocess, with fewer forks.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback

import pondertree
from pondertree.games import ConnectFour, Othello

#: Seconds after which a child counts as hung; it normally takes milliseconds.
CHILD_TIMEOUT = 20.0
#: Every n-th child exits with interpreter shutdown, the others by `os._exit`.
FULL_EXIT = 25


def search_over_and_over(stop: threading.Event) -> None:
    """Small searches on two threads, dominated by job dispatch and memory allocation."""
    while not stop.is_set():
        pondertree.UCT(20, threads=2).forest([Othello()] * 8).simulate()


def search_in_child(expected: list[int]) -> None:
    """Repeats the search of the parent and compares the results."""
    found = pondertree.UCT(20, threads=2, seed=1).forest([ConnectFour()] * 4).simulate().actions().tolist()
    if found != expected:
        raise AssertionError(f"{found} instead of {expected}")


def wait_for(child: int) -> str:
    """Waits for a child and returns a description of its failure, or an empty text."""
    deadline = time.monotonic() + CHILD_TIMEOUT
    pause = 0.0005
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else f"ended with {code}"
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "was stuck"


def main(forks: int) -> int:
    """Forks `forks` times and returns the number of failed children."""
    expected = pondertree.UCT(20, threads=2, seed=1).forest([ConnectFour()] * 4).simulate().actions().tolist()
    stop = threading.Event()
    threads = [threading.Thread(target=search_over_and_over, args=(stop,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    failed = 0
    begun = time.perf_counter()
    try:
        for number in range(forks):
            child = os.fork()
            if child == 0:
                try:
                    search_in_child(expected)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                if number % FULL_EXIT == 0:
                    sys.exit(0)
                os._exit(0)
            wrong = wait_for(child)
            if wrong:
                failed += 1
                print(f"child {number} {wrong}", flush=True)
            if (number + 1) % 500 == 0:
                print(f"{number + 1} forks so far, {failed} children failed", flush=True)
    finally:
        if threading.current_thread() is threading.main_thread():
            stop.set()
    for thread in threads:
        thread.join()
    print(f"{forks} forks, {failed} children failed, {time.perf_counter() - begun:.1f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])) > 0)
