"""Contexts that backends of PyTorch lease to searches, and the cache that later searches take them from."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pondertree.gpu.protocol import RowLayout, graph_batch_size
from pondertree.gpu.tree_shape import TreeShape

if TYPE_CHECKING:
    from pondertree.gpu.buffer import TorchBuffer
    from pondertree.gpu.device_trees import DeviceTrees

Item = TypeVar("Item")


class LeaseCache(Generic[Item]):
    """A bounded lock-free free list.

    Finalizers release items, and the garbage collector may run them on a thread that is inside `take`: an atomic append
    is all that is safe there.
    """

    def __init__(self, size: int) -> None:
        self._items: deque[Item] = deque(maxlen=size)

    def take(self, fits: Callable[[Item], bool]) -> Item | None:
        """Removes and returns the oldest item that fits."""
        for item in list(self._items):
            if fits(item):
                # Another thread may have taken it.
                with contextlib.suppress(ValueError):
                    self._items.remove(item)
                    return item
        return None

    def release(self, items: Sequence[Item]) -> None:
        """Appends items; the oldest are dropped beyond the cache's size."""
        self._items.extend(items)

    def __iter__(self) -> Any:
        return iter(list(self._items))


@dataclass
class TorchGameContext:
    """Buffers and device trees for searches of one compiled game, leased from an evaluator's cache."""

    cache: LeaseCache[TorchBuffer]
    layout: RowLayout
    dtype: Any
    fingerprint: object
    make: Callable[[int], TorchBuffer]
    """Creates a buffer of a capacity; those of the cache are used if layout and `dtype` are the same."""
    _leased: list[TorchBuffer] = field(default_factory=list, init=False)

    def buffers(self, capacities: Sequence[int]) -> list[TorchBuffer]:
        """One buffer for each capacity, or for a little more.

        Capacities are padded to few sizes: games that end one after another would need new graphs at every move.
        """
        for capacity in map(graph_batch_size, capacities):

            def fits(buffer: TorchBuffer, capacity: int = capacity) -> bool:
                return (buffer.layout, buffer.capacity, buffer.dtype) == (self.layout, capacity, self.dtype)

            buffer = self.cache.take(fits) or self.make(capacity)
            buffer.refresh(self.fingerprint)
            self._leased.append(buffer)
        return self._leased

    def trees(self, shapes: Sequence[TreeShape]) -> list[DeviceTrees] | None:
        """Trees of each shape, one group to each buffer; None if memory or the kernel is missing."""
        groups = [buffer.trees(shape) for buffer, shape in zip(self._leased, shapes, strict=True)]
        found = [group for group in groups if group is not None]
        return found if len(found) == len(groups) else None

    def close(self) -> None:
        """Releases the buffers, with their trees, for later searches."""
        self.cache.release(self._leased)
