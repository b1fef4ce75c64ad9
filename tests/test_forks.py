"""Processes forked while other threads search: the child can search on several threads, and exit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.forks import wait_for
from tests.support.search_helpers import Hashed

from pondertree import UCT, UsageError
from pondertree.evaluators import Cached
from pondertree.games import ConnectFour

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # Python warns of what is tested here.
    pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning"),
]

#: `PONDERTREE_FORKS=5000` for the long run.
FORKS = os.environ.get("PONDERTREE_FORKS", "500")


def in_child(work: Any) -> str:
    """What is wrong with how a forked process that does `work` ended, or nothing."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return wait_for(child)


def test_children_search_when_forked_during_searches_of_other_threads() -> None:
    """Without at-fork handlers about one in a thousand children waits for ever."""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.support.forks", FORKS]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60 + int(FORKS) / 5)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{FORKS} forks, 0 children failed" in done.stdout


def test_forest_that_was_running_at_the_fork_is_refused_in_the_child() -> None:
    """Its trees are in the midst of a change that nobody finishes there; they are not dropped either."""
    running, go_on = threading.Event(), threading.Event()
    forest = UCT(2, seed=1).forest([ConnectFour()] * 2)

    def progress(done: int, wanted: int) -> None:
        running.set()
        go_on.wait(20)

    thread = threading.Thread(target=forest._core.run, args=(None, progress))
    forest._core.allow([10, 10])
    thread.start()
    assert running.wait(20)

    def work() -> None:
        nonlocal forest
        with pytest.raises(UsageError, match="already running"):
            forest._core.progress()
        del forest

    assert in_child(work) == ""
    go_on.set()
    thread.join()
    assert forest._core.progress()[0] >= 20


def test_cached_evaluator_whose_lock_was_held_at_the_fork_works_in_the_child() -> None:
    cached = Cached(Hashed())
    observations = ConnectFour().observation()[np.newaxis]

    def evaluate() -> None:
        thread = threading.Thread(target=cached.evaluate, args=(observations,), daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()

    with cached._lock:
        assert in_child(evaluate) == ""
