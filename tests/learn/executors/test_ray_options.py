"""Decisions of the Ray executor that need no cluster: shares of GPUs, the cluster of a process, its environment."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.learn.executors import ray_cluster


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
