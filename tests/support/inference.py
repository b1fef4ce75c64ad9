"""Lanes in NumPy for the tests: what an accelerator does, done by hand and on the spot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pondertree.gpu.protocol import NotForLanes, RowLayout
from pondertree.models.pool import HiddenPool


class TableBuffer:
    """Reads questions as they lie in memory, and writes what a function says of the observations."""

    def __init__(self, owner: TableBackend, layout: RowLayout, capacity: int) -> None:
        self.owner, self.layout = owner, layout
        self.requests = np.zeros((capacity, layout.words), dtype=np.uint64)
        self.responses = np.full((capacity, layout.legal + 1), np.nan, dtype=np.float32)
        self._rows: int | None = None

    def submit(self, rows: int) -> None:
        """Remembers; it answers when it is waited for."""
        assert self._rows is None, "the batch before is still under way"
        self._rows = rows
        self.owner.calls.append(rows)

    def wait(self) -> None:
        """Answers. Rows beyond those asked for hold nonsense, as on a device."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        layout, words = self.layout, self.requests[:rows]
        cells = np.arange(layout.height * layout.width, dtype=np.uint64)
        planes = ((words[:, : layout.planes, None] >> cells) & np.uint64(1)).astype(np.float32)
        scalars = words.view(np.float32)[:, layout.first_scalar : layout.first_scalar + layout.scalars]
        whole = np.concatenate([planes, np.repeat(scalars[:, :, None], cells.size, axis=2)], axis=1)
        logits, values = self.owner.function(whole.reshape(rows, -1, layout.height, layout.width))
        actions = words.view(np.uint16)[:, layout.first_action : layout.first_action + layout.legal].astype(np.int64)
        self.responses[:] = np.nan
        self.responses[:rows, : layout.legal] = np.take_along_axis(np.asarray(logits), actions, axis=1)
        self.responses[:rows, layout.legal] = values


class TableBackend:
    """An evaluator that answers in lanes alone."""

    policy = "logits"

    def __init__(self, function: Callable[[Any], Any], rows: int = 4, refuses: bool = False) -> None:
        self.function, self._rows, self._refuses = function, rows, refuses
        self.calls: list[int] = []
        self.open = 0

    def evaluate(self, observations: Any) -> Any:
        """For searches that do not go by lanes."""
        return self.function(observations)

    def rows_per_call(self, rows: int) -> int:
        """A few at a time."""
        return min(rows, self._rows)

    def acquire_buffers(self, layout: RowLayout, capacities: Sequence[int]) -> list[TableBuffer]:
        """New ones."""
        if self._refuses:
            raise NotForLanes("on purpose")
        self.open += len(capacities)
        return [TableBuffer(self, layout, capacity) for capacity in capacities]

    def release_buffers(self, buffers: Sequence[TableBuffer]) -> None:
        """Counts."""
        self.open -= len(buffers)


class TableLatentBuffer:
    """Steps hidden states in a pool of NumPy."""

    def __init__(self, model: Any, pool: HiddenPool, capacity: int, likeliest: int | None) -> None:
        self.model, self.pool, self.likeliest, self.has_discount = model, pool, likeliest, False
        self.requests = np.zeros((capacity, 3), dtype=np.int64)
        self.responses = np.zeros((capacity, 0), dtype=np.float32)
        self._rows: int | None = None

    def submit(self, rows: int) -> None:
        """Remembers."""
        self._rows = rows

    def wait(self) -> None:
        """Answers."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        parents, actions, slots = self.requests[:rows].T
        hidden, reward, logits, value, *discount = self.model.recurrent_inference(self.pool.gather(parents), actions)
        self.pool.scatter(np.ascontiguousarray(slots), hidden)
        self.has_discount = bool(discount)
        columns = [np.reshape(column, (rows, 1)) for column in (reward, value, *discount)]
        policy = [logits]
        if self.likeliest is not None:
            best = np.argsort(-logits, axis=1, kind="stable")[:, : self.likeliest]
            total = np.log(np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True))
            first = total.astype(np.float32)
            policy = [first, total - first, np.take_along_axis(logits, best, axis=1), best]
        self.responses = np.ascontiguousarray(np.concatenate([*columns, *policy], axis=1), dtype=np.float32)


class TableContext:
    """A pool of NumPy with lanes."""

    def __init__(self, model: Any, likeliest: int | None) -> None:
        self.pool = HiddenPool(capacity=4)
        self._model, self._likeliest = model, likeliest

    def acquire_buffers(self, capacities: Sequence[int], most_visits: int) -> list[TableLatentBuffer]:
        """New ones."""
        return [TableLatentBuffer(self._model, self.pool, capacity, self._likeliest) for capacity in capacities]

    def open_trees(self, kind: Any) -> None:
        """None: tables are not where kernels run."""


class TableLatentBackend:
    """A model that answers in lanes."""

    def __init__(self, model: Any, rows: int = 3, likeliest: int | None = None) -> None:
        self.model, self._rows, self._likeliest = model, rows, likeliest
        self.initial_inference, self.recurrent_inference = model.initial_inference, model.recurrent_inference
        self.acquired = self.released = 0

    def rows_per_call(self, rows: int) -> int:
        """A few at a time."""
        return min(rows, self._rows)

    def acquire(self, hidden: Any, trees: int) -> TableContext:
        """A new one."""
        self.acquired += 1
        return TableContext(self.model, self._likeliest)

    def refresh(self, context: TableContext) -> None:
        """Tables are not replaced."""

    def release(self, context: TableContext) -> None:
        """Counts."""
        self.released += 1
