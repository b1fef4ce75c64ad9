"""Inference backends in NumPy: a device's buffers and contexts, computed synchronously on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pondertree.gpu.protocol import SUPPORTED, Job, Mode, RowLayout, Support
from pondertree.models.pool import HiddenPool


class TableBuffer:
    """Decodes requests from their memory layout and writes what a function returns for the observations."""

    def __init__(self, backend: TableBackend, layout: RowLayout, capacity: int) -> None:
        self.backend, self.layout = backend, layout
        self.requests = np.zeros((capacity, layout.words), dtype=np.uint64)
        self.responses = np.full((capacity, layout.legal + 1), np.nan, dtype=np.float32)
        self._rows: int | None = None

    def submit(self, rows: int) -> Support:
        """Records the batch, which `wait` computes."""
        assert self._rows is None, "the batch before is still in flight"
        if self.backend.refuses_output:
            return Support(False, "on purpose")
        self._rows = rows
        self.backend.calls.append(rows)
        return SUPPORTED

    def wait(self) -> None:
        """Computes the batch. Rows beyond it are NaN, undefined as on a device."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        layout, words = self.layout, self.requests[:rows]
        cells = layout.height * layout.width
        # Bit by bit, unlike the unpacking that is tested.
        bits = (words[:, : layout.plane_words, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        planes = bits.reshape(rows, layout.planes, -1)[:, :, :cells].astype(np.float32)
        scalars = words.view(np.float32)[:, layout.first_scalar : layout.first_scalar + layout.scalars]
        whole = np.concatenate([planes, np.repeat(scalars[:, :, None], cells, axis=2)], axis=1)
        logits, values = self.backend.function(whole.reshape(rows, -1, layout.height, layout.width))
        actions = words.view(np.uint16)[:, layout.first_action : layout.first_action + layout.legal].astype(np.int64)
        self.responses[:] = np.nan
        self.responses[:rows, : layout.legal] = np.take_along_axis(np.asarray(logits), actions, axis=1)
        self.responses[:rows, layout.legal] = values


class TableGameContext:
    """Fresh buffers for each search."""

    def __init__(self, backend: TableBackend, layout: RowLayout) -> None:
        self._backend, self._layout = backend, layout

    def buffers(self, capacities: Sequence[int]) -> list[TableBuffer]:
        """One buffer for each capacity."""
        return [TableBuffer(self._backend, self._layout, capacity) for capacity in capacities]


class TableBackend:
    """An evaluator with buffers alone, for double-buffered batches."""

    policy = "logits"

    def __init__(
        self, function: Callable[[Any], Any], rows: int = 4, *, refuses: bool = False, refuses_output: bool = False
    ) -> None:
        """`refuses` the capability query, or only the first output."""
        self.function, self._rows, self._refuses = function, rows, refuses
        self.refuses_output = refuses_output
        self.calls: list[int] = []
        self.leased = 0

    def evaluate(self, observations: Any) -> Any:
        """The form for searches that are not pipelined."""
        return self.function(observations)

    def supports(self, job: Job, mode: Mode) -> Support:
        """Double-buffered batches alone."""
        return Support(mode is Mode.PIPELINED and not self._refuses, "on purpose")

    def rows_per_batch(self, rows: int) -> int:
        """A few at a time."""
        return min(rows, self._rows)

    def acquire(self, job: Job) -> TableGameContext:
        """Counts leases."""
        self.leased += 1
        assert job.layout is not None
        return TableGameContext(self, job.layout)

    def release(self, context: TableGameContext) -> None:
        """Counts leases."""
        self.leased -= 1


class TableLatentBuffer:
    """Steps hidden states in a NumPy pool."""

    def __init__(self, model: Any, pool: HiddenPool, capacity: int, top_k: int | None) -> None:
        self.model, self.pool, self.top_k, self.has_discount = model, pool, top_k, False
        self.requests = np.zeros((capacity, 3), dtype=np.int64)
        self.responses = np.zeros((capacity, 0), dtype=np.float32)
        self._rows: int | None = None

    def submit(self, rows: int) -> Support:
        """Records the batch, which `wait` computes."""
        self._rows = rows
        return SUPPORTED

    def wait(self) -> None:
        """Computes the batch."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        parents, actions, slots = self.requests[:rows].T
        hidden, reward, logits, value, *discount = self.model.recurrent_inference(self.pool.gather(parents), actions)
        self.pool.scatter(np.ascontiguousarray(slots), hidden)
        self.has_discount = bool(discount)
        columns = [np.reshape(column, (rows, 1)) for column in (reward, value, *discount)]
        policy = [logits]
        if self.top_k is not None:
            best = np.argsort(-logits, axis=1, kind="stable")[:, : self.top_k]
            total = np.log(np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True))
            first = total.astype(np.float32)
            policy = [first, total - first, np.take_along_axis(logits, best, axis=1), best]
        self.responses = np.ascontiguousarray(np.concatenate([*columns, *policy], axis=1), dtype=np.float32)


class TableLatentContext:
    """A NumPy pool with buffers."""

    def __init__(self, model: Any, top_k: int | None) -> None:
        self.pool = HiddenPool(capacity=4)
        self._model, self._top_k = model, top_k

    def buffers(self, capacities: Sequence[int], max_visits: int) -> list[TableLatentBuffer]:
        """One buffer for each capacity."""
        return [TableLatentBuffer(self._model, self.pool, capacity, self._top_k) for capacity in capacities]


class TableLatentBackend:
    """A model with buffers, for double-buffered batches."""

    def __init__(self, model: Any, rows: int = 3, top_k: int | None = None) -> None:
        self.model, self._rows, self._top_k = model, rows, top_k
        self.initial_inference, self.recurrent_inference = model.initial_inference, model.recurrent_inference
        self.acquired = self.released = 0

    def supports(self, job: Job, mode: Mode) -> Support:
        """Double-buffered batches alone."""
        return Support(mode is Mode.PIPELINED, "tables are on the host")

    def rows_per_batch(self, rows: int) -> int:
        """A few at a time."""
        return min(rows, self._rows)

    def acquire(self, job: Job) -> TableLatentContext:
        """Counts leases."""
        self.acquired += 1
        return TableLatentContext(self.model, self._top_k)

    def refresh(self, context: TableLatentContext) -> None:
        """Tables do not change."""

    def release(self, context: TableLatentContext) -> None:
        """Counts leases."""
        self.released += 1
