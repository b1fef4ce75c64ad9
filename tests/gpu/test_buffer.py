"""Buffers, padding and streams: few sizes, reuse by later searches, one owner per stream."""

from __future__ import annotations

import gc
import itertools
import threading
import types
from typing import Any

import pytest

import pondertree
from pondertree.evaluators import Torch
from pondertree.games import ConnectFour

torch = pytest.importorskip("torch")

from pondertree.gpu.context import LeaseCache  # noqa: E402 (after the package they need)
from pondertree.gpu.cuda_graph import own_stream  # noqa: E402
from pondertree.gpu.protocol import graph_batch_size  # noqa: E402

torch.set_num_threads(1)  # the networks are tiny, and other work on the machine is not


class Net(torch.nn.Module):  # type: ignore[misc]
    """A small network for Connect 4."""

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(3 * 42, 8)

    def forward(self, observations: Any) -> tuple[Any, Any]:
        out = self.head(observations.flatten(1))
        return out[:, :7], torch.tanh(out[:, 7])


def test_buffers_are_reused_by_searches_of_other_sizes() -> None:
    """A buffer for each number of remaining games would need new graphs at every move."""
    torch.manual_seed(0)
    evaluator = Torch(Net())
    search = pondertree.AlphaZero(evaluator, 4, seed=1, solve=False)
    alone = [search.run(ConnectFour(), seeds=5).visits.tolist()]
    for count in range(1, 9):
        assert [one.visits.tolist() for one in search.run([ConnectFour()] * count, seeds=[5] * count)] == alone * count
    assert sorted(buffer.capacity for buffer in evaluator._buffers) == [1, 2, 4, 6, 8]


def test_graph_batch_sizes_are_few_and_close() -> None:
    """Each size fits with little padding, and there are few sizes."""
    sizes = [graph_batch_size(rows) for rows in range(1, 4097)]
    assert all(size >= rows for rows, size in enumerate(sizes, 1))
    assert all(size <= rows * 9 / 8 for rows, size in enumerate(sizes, 1) if rows > 512)
    assert all(size <= rows * 1.5 for rows, size in enumerate(sizes, 1) if rows > 2)
    assert len(set(sizes)) < 50
    assert all(graph_batch_size(size) == size for size in sizes)


def test_streams_are_not_shared_while_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch hands out its streams round-robin; a stream in capture must have one owner."""
    numbers = itertools.count()

    class Owner:
        pass

    monkeypatch.setattr(torch.cuda, "Stream", lambda _: types.SimpleNamespace(cuda_stream=next(numbers) % 32))
    owners = [Owner() for _ in range(20)]
    streams = {own_stream(owner, None).cuda_stream for owner in owners}
    assert len(streams) == 20
    del owners[:10]
    owners += [Owner() for _ in range(22)]
    assert len({own_stream(owner, None).cuda_stream for owner in owners[10:]}) == 22


def test_lease_cache_drops_oldest_items_and_leases_each_once() -> None:
    cache: LeaseCache[int] = LeaseCache(3)
    cache.release([1, 2, 3, 4])
    assert cache.take(lambda item: item == 1) is None
    assert cache.take(lambda item: True) == 2
    taken: list[int | None] = []
    threads = [threading.Thread(target=lambda: taken.append(cache.take(lambda item: item == 3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken, key=str) == [3] + [None] * 7


def test_lease_cache_accepts_releases_from_finalizers() -> None:
    """The garbage collector may run a finalizer on the thread that is searching the cache."""
    cache: LeaseCache[Any] = LeaseCache(8)
    cache.release([1, 2])

    class Owner:
        def __del__(self) -> None:
            cache.release(["released"])

    def fits(item: Any) -> bool:
        owner = Owner()
        owner.itself = owner  # type: ignore[attr-defined]
        del owner
        gc.collect()
        return bool(item == 2)

    assert cache.take(fits) == 2
    assert "released" in list(cache)
