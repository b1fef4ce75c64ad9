"""Actors in processes: calls to one that has died, and the release of its descriptors."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.actors import Counter

from pondertree.errors import InvalidArgumentError
from pondertree.learn.executors import Pool, ProcessExecutor, Reply
from pondertree.learn.executors.base import make_actor, own_version, run_call
from pondertree.learn.executors.processes import ProcessActor
from pondertree.match.worker_process import Terminated


def replies(pool: Pool, kind: str) -> list[Reply]:
    """Returns the replies up to the first of this kind."""
    found: list[Reply] = []
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        found += pool.poll(0.05)
        if found and found[-1].kind == kind:
            return found
    raise AssertionError(f"no reply is {kind}: {found}")


def test_pipe_of_a_dead_actor_is_closed_by_the_thread_that_sends(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with ProcessExecutor(actors=1).open(tmp_path) as pool:
        actor = pool.launch(Counter, 3)
        assert isinstance(actor, ProcessActor)
        replies(pool, "ready")
        actor.call("add", 4)
        found = replies(pool, "value")
        assert [(reply.kind, reply.value) for reply in found] == [("heartbeat", None), ("value", 7)]
        assert actor.pid is not None
        os.kill(actor.pid, signal.SIGKILL)
        actor._thread.join(30.0)
        # The reader has ended; a send in this thread may still use the descriptor.
        assert not actor._worker.connection.closed
        actor.call("add", 1)
        assert replies(pool, "died")[-1].value == "its process ended (exit code -9)"
        assert actor._worker.connection.closed
        actor.call("add", 1)
        actor.kill()


PRELOADED = """
import time
from pathlib import Path
from tests.support.actors import Counter
from pondertree.learn.executors import ProcessExecutor

if __name__ == "__main__":
    with ProcessExecutor(actors=1).open(Path({folder!r})) as pool:
        pool.launch(Counter, 3).call("is_module_inherited")
        while not (found := [reply.value for reply in pool.poll(0.1) if reply.kind == "value"]):
            pass
        print(found)
"""


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")
def test_actor_inherits_its_imported_module(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PRELOADED.format(folder=str(tmp_path))]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120.0)
    assert done.stdout == "[True]\n"


def test_more_gpus_than_present_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    ProcessExecutor(actors=4, gpus=0.5).open(tmp_path).close()
    with pytest.raises(InvalidArgumentError, match=r"gpus = 0\.5 for 5 actors needs 3 GPUs, but there are 2"):
        ProcessExecutor(actors=5, gpus=0.5).open(tmp_path)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_any_exception_of_a_game_is_an_error_of_the_game(error: BaseException) -> None:
    class Game:
        def play(self) -> None:
            raise error

    kind, text = run_call(Game(), "play", ())
    assert kind == "error"
    assert "sys.exit(3)" in text or type(error).__name__ in text


def test_game_that_exits_when_it_is_made_is_reported() -> None:
    packed = pickle.dumps((sys.exit, "no licence"))
    assert make_actor(own_version(), packed) == (None, "the game or its module called sys.exit('no licence')")


def test_termination_of_an_actor_s_process_is_no_error_of_the_game() -> None:
    class Game:
        def play(self) -> None:
            raise Terminated(0)

    with pytest.raises(Terminated):
        run_call(Game(), "play", ())
