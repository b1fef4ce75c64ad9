"""Decisions of the Ray executor that need no cluster: shares of GPUs, the cluster of a process, its environment."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.actors import Counter

from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.learn.executors import RayExecutor, ray_cluster
from pondertree.learn.executors.base import own_version


@pytest.mark.parametrize(("actors", "gpus", "share"), [(3, 1, 0.3333), (5, 2, 0.3333), (4, 2, 0.5), (2, 4, 1.0)])
def test_all_actors_fit_on_the_gpus_of_the_cluster(actors: int, gpus: int, share: float) -> None:
    assert ray_cluster.equal_share(actors, gpus) == share


def test_cluster_without_gpus_needs_the_number_of_gpus() -> None:
    with pytest.raises(InvalidArgumentError, match="gpus must be given: the learner has a GPU"):
        ray_cluster.equal_share(3, 0)


def joined(address: str) -> Any:
    """Returns a stand-in of Ray in a process that has joined a cluster."""
    return SimpleNamespace(get_runtime_context=lambda: SimpleNamespace(gcs_address=address))


def test_another_cluster_than_the_joined_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = joined("127.0.0.1:6379")
    monkeypatch.setattr(ray_cluster, "_local", [])
    ray_cluster.check_joined(ray, "127.0.0.1:6379")
    ray_cluster.check_joined(ray, "auto")
    for address in ("local", "10.0.0.1:6379"):
        with pytest.raises(UsageError, match=r"has joined the Ray cluster at 127\.0\.0\.1:6379, but address is"):
            ray_cluster.check_joined(ray, address)
    monkeypatch.setattr(ray_cluster, "_local", ["127.0.0.1:6379"])  # started by this process
    ray_cluster.check_joined(ray, "local")


def test_environment_of_a_local_cluster_is_removed_unless_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_settings", {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "ours"})
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "the user's")
    ray_cluster.restore_environment()
    assert "RAY_AUTH_MODE" not in os.environ
    assert os.environ["RAY_AUTH_TOKEN"] == "the user's"


def test_cluster_that_does_not_answer_is_given_up() -> None:
    ended = threading.Event()
    with pytest.raises(UsageError, match=r"'10\.0\.0\.1:1' cannot be joined: it does not answer within 0\.2 s"):
        ray_cluster.join(ended.wait, "10.0.0.1:1", timeout=0.2)
    ended.set()


def test_error_of_joining_is_one_line() -> None:
    def fail() -> None:
        raise ConnectionError("there is no cluster\nDetails follow.")

    with pytest.raises(UsageError, match=r"^ray: the cluster 'auto' cannot be joined: there is no cluster$"):
        ray_cluster.join(fail, "auto")


def test_joining_is_interrupted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            ray_cluster.join(ended.wait, "10.0.0.1:1", timeout=60.0)
    finally:
        timer.join()
        ended.set()
        signal.signal(signal.SIGTERM, before)


class StartsSlowly:
    """A stand-in of Ray, which replaces the handler of SIGTERM and then fails."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.is_shut_down = False

    def init(self, **_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise self.error

    def shutdown(self) -> None:
        self.is_shut_down = True


def test_exit_by_ray_s_handler_is_an_interrupt(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    ray = StartsSlowly(SystemExit(15))
    with pytest.raises(KeyboardInterrupt):
        ray_cluster.connect(ray, RayExecutor(), tmp_path)
    assert signal.getsignal(signal.SIGTERM) is handler
    assert ray.is_shut_down


def test_temporary_folder_with_a_long_name_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/tmp/long")
    error = OSError("validate_socket_filename failed: AF_UNIX path length cannot exceed 107 bytes: /tmp/long/ray")
    with pytest.raises(UsageError, match=r"TMPDIR is too long for the names of Ray's sockets.*not '/tmp/long'"):
        ray_cluster.connect(StartsSlowly(error), RayExecutor(), tmp_path)


def test_heartbeat_of_a_ray_actor_waits_for_the_next_move() -> None:
    host = ray_cluster.ActorHost(own_version(), pickle.dumps((Counter, 3)))
    kind, (pid, has_heartbeats) = host.begin()
    assert (kind, pid, has_heartbeats) == ("ready", os.getpid(), True)
    replies: list[Any] = []
    thread = threading.Thread(target=lambda: replies.append(host.heartbeat(0.0)), daemon=True)
    thread.start()
    time.sleep(0.1)
    assert not replies  # silent
    assert host.call("add", (4,)) == ("value", 7)
    thread.join(30.0)
    assert replies == [("heartbeat", None)]
