"""The hidden-state pool: arrays of a model's library on its device, indexed by slots that the engine assigns."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.models.hidden import LEAF, Layout, Structure, flatten, unflatten

Slots = NDArray[Any]
"""Integers [B] of any dtype."""


_INT64 = np.dtype(np.int64)


class Backend(Protocol):
    """The operations of one library on `rows`, an array [capacity, ...] of it."""

    takes_slices: bool
    """Whether `scatter` takes a slice instead of slots."""

    def send(self, slots: Slots) -> Any:
        """Converts slots for `gather` and `scatter`, on the device of the rows."""
        ...

    def empty(self, like: Any, capacity: int) -> Any:
        """Allocates `capacity` rows like those of an array."""
        ...

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Copies rows into a longer array, or one of a wider dtype."""
        ...

    def gather(self, rows: Any, slots: Any) -> Any:
        """Returns a copy of the rows of these slots."""
        ...

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """Writes rows into these slots; returns the same array, or one that replaces it."""
        ...


class HiddenPool:
    """A growing table of hidden states. The engine assigns and releases slots.

    Library and shapes are those of the first hidden states written. The table has `capacity` slots at first and doubles
    when a higher slot is written, up to `maximum`. Reads and writes copy. Rows never written are undefined.
    """

    def __init__(self, capacity: int = 1024, maximum: int | None = None) -> None:
        self.maximum = None if maximum is None else validation.count(maximum, "maximum")
        self.capacity = validation.count(capacity, "capacity")
        if self.maximum is not None:
            self.capacity = min(self.capacity, self.maximum)
        self.layout: Layout | None = None
        """Layout of hidden states; None before the first write."""
        self._rows: list[Any] = []
        self._numpy_rows: NDArray[Any] | None = None
        """The rows, if hidden states are one NumPy array."""
        self._backend: Backend = NumpyBackend()
        self.version = 0
        """Changes when rows move to other memory, which invalidates captured graphs."""

    @property
    def nbytes(self) -> int:
        """Size of the pool in bytes."""
        return sum(int(rows.nbytes) for rows in self._rows)

    def gather(self, slots: Slots) -> Any:
        """Returns the hidden states [B, ...] of slots [B], in their original structure."""
        if self._numpy_rows is not None and slots.dtype is _INT64:
            return self._numpy_rows.take(slots, axis=0)
        layout = self.layout
        if layout is None:
            raise UsageError("the pool is empty: nothing was written yet")
        backend = self._backend
        sent = backend.send(slots)
        if layout.structure is LEAF:
            return backend.gather(self._rows[0], sent)
        return unflatten(layout.structure, iter([backend.gather(rows, sent) for rows in self._rows]))

    def scatter(self, slots: Slots, hidden: Any, *, consecutive: bool = False) -> None:
        """Writes hidden states [B, ...] into distinct slots [B]; `consecutive`: ascending without gaps."""
        arrays, structure = flatten(hidden)
        rows = len(slots)
        if rows == 0:
            return
        capacity = self._capacity_for(int(slots[-1]) if consecutive else int(np.maximum.reduce(slots)))
        if self.layout is None:
            layout = Layout.of(arrays, structure, rows)
            backend = backend_of(layout)
            self._rows = [backend.empty(array, capacity) for array in arrays]
            self.layout, self.capacity, self._backend = layout, capacity, backend
            self.version += 1
            self._find_numpy_rows()
        else:
            layout = self.layout.admit(arrays, structure, rows)
            if layout is not self.layout or capacity != self.capacity:
                self._resize(layout, capacity)
        # NumPy copies a slice many times as fast as single rows.
        first = int(slots[0])
        sent = slice(first, first + rows) if consecutive and self._backend.takes_slices else self._backend.send(slots)
        for place, array in enumerate(arrays):
            self._rows[place] = self._backend.scatter(self._rows[place], sent, array)

    def read(self, sent: Any) -> Any:
        """As `gather`, with slots on the device already."""
        assert self.layout is not None, "roots are written first"
        arrays = [self._backend.gather(rows, sent) for rows in self._rows]
        return arrays[0] if self.layout.structure is LEAF else unflatten(self.layout.structure, iter(arrays))

    def write(self, sent: Any, arrays: list[Any], structure: Structure) -> None:
        """As `scatter`, with slots on the device already, all below the capacity."""
        assert self.layout is not None, "roots are written first"
        layout = self.layout.admit(arrays, structure, len(sent))
        if layout is not self.layout:
            self._resize(layout, self.capacity)
        for place, array in enumerate(arrays):
            self._rows[place] = self._backend.scatter(self._rows[place], sent, array)

    def scatter_consecutive(self, first: int, hidden: Any, rows: int) -> bool:
        """Fast path of `scatter` for a NumPy array and consecutive slots from `first` on.

        Returns False, with nothing written, if dtype, shape or capacity do not fit.
        """
        table = self._numpy_rows
        if table is None or type(hidden) is not np.ndarray or hidden.dtype is not table.dtype:
            return False
        end = first + rows
        if end > self.capacity or hidden.shape != (rows, *table.shape[1:]):
            return False
        table[first:end] = hidden
        return True

    def reserve(self, capacity: int) -> None:
        """Grows to this many slots at once, so that a search need not."""
        capacity = self._grown_capacity(validation.count(capacity, "capacity"))
        if self.layout is not None and capacity != self.capacity:
            self._resize(self.layout, capacity)
        self.capacity = capacity

    def _capacity_for(self, highest: int) -> int:
        return self.capacity if highest < self.capacity else self._grown_capacity(highest + 1)

    def _grown_capacity(self, required: int) -> int:
        if self.maximum is not None and required > self.maximum:
            raise InvalidArgumentError(f"slot {required - 1} is beyond the pool's maximum of {self.maximum} slots")
        capacity = self.capacity
        while capacity < required:
            capacity *= 2
        return capacity if self.maximum is None else min(capacity, self.maximum)

    def _resize(self, layout: Layout, capacity: int) -> None:
        # All new arrays are allocated before the first old one is released: an out-of-memory error changes nothing.
        self._rows = [
            self._backend.resized(rows, capacity, leaf.dtype)
            for rows, leaf in zip(self._rows, layout.leaves, strict=True)
        ]
        self.layout, self.capacity = layout, capacity
        self.version += 1
        self._find_numpy_rows()

    def _find_numpy_rows(self) -> None:
        is_numpy = self.layout is not None and self.layout.structure is LEAF and type(self._rows[0]) is np.ndarray
        self._numpy_rows = self._rows[0] if is_numpy else None

    def __repr__(self) -> str:
        description = "empty" if self.layout is None else ", ".join(map(str, self.layout.leaves))
        return f"<HiddenPool: {self.capacity} slots, {description}>"


class NumpyBackend:
    """Rows in a NumPy array; rows of objects are references."""

    takes_slices = True

    def send(self, slots: Slots) -> Any:
        """Converts to int64, which NumPy indexes fastest by."""
        return slots if slots.dtype == np.int64 else slots.astype(np.int64)

    def empty(self, like: Any, capacity: int) -> Any:
        """Allocates rows."""
        return np.empty((capacity, *like.shape[1:]), dtype=like.dtype)

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Copies rows into a longer or wider array."""
        grown = np.empty((capacity, *rows.shape[1:]), dtype=dtype)
        with np.errstate(invalid="ignore"):  # rows never written may hold signalling NaNs
            grown[: len(rows)] = rows
        return grown

    def gather(self, rows: Any, slots: Any) -> Any:
        """Copies rows; `take` is three times as fast as indexing."""
        return rows.take(slots, axis=0)

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """Writes in place."""
        rows[slots] = written
        return rows


def backend_of(layout: Layout) -> Backend:
    """Returns the backend for a layout, whose library is loaded already."""
    leaf = layout.leaves[0] if layout.leaves else None
    if leaf is not None and leaf.library == "torch":
        from pondertree.models.pool_torch import TorchBackend

        return TorchBackend(leaf.device)
    if leaf is not None and leaf.library == "jax":
        from pondertree.models.pool_jax import JaxBackend

        return JaxBackend()
    return NumpyBackend()
