"""Hidden states by slot, kept by the library they come from and on their own device; only slots cross."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.models.hidden import LEAF, Layout, Structure, flatten, unflatten

Slots = NDArray[Any]
"""Whole numbers [B], of any integer type."""


_WHOLE = np.dtype(np.int64)


class Backend(Protocol):
    """How one library keeps rows. `rows` is an array [capacity, ...] of it."""

    takes_slices: bool
    """Whether `scatter` takes a slice in the place of slots."""

    def send(self, slots: Slots) -> Any:
        """Slots in the form that `gather` and `scatter` want, on the device of the rows."""
        ...

    def empty(self, like: Any, capacity: int) -> Any:
        """Room for `capacity` rows like those of an array."""
        ...

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """The same rows in a longer or wider array; the old one stays as it is."""
        ...

    def gather(self, rows: Any, slots: Any) -> Any:
        """The rows of these slots, copied."""
        ...

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """The rows with others written into these slots: the same array, or one that takes its place."""
        ...


class HiddenPool:
    """A table of hidden states. Slots are given out and taken back by the engine, and never move.

    The library and the shape are those of the first hidden states written. It holds `capacity` slots at first and
    doubles when a higher one is written, up to `maximum`. Rows written are copied, and so are rows read. Rows of slots
    that were never written mean nothing.
    """

    def __init__(self, capacity: int = 1024, maximum: int | None = None) -> None:
        self.maximum = None if maximum is None else validation.count(maximum, "maximum")
        self.capacity = validation.count(capacity, "capacity")
        if self.maximum is not None:
            self.capacity = min(self.capacity, self.maximum)
        self.layout: Layout | None = None
        """What hidden states look like; None until the first were written."""
        self._rows: list[Any] = []
        self._plain: NDArray[Any] | None = None
        """The rows, where hidden states are one array of NumPy."""
        self._backend: Backend = NumpyBackend()
        self.version = 0
        """Changes when the rows move to other memory."""

    @property
    def nbytes(self) -> int:
        """What the pool takes, in bytes."""
        return sum(int(rows.nbytes) for rows in self._rows)

    @property
    def bytes_per_slot(self) -> int:
        """What one hidden state takes, in bytes; 0 before the first."""
        return self.nbytes // self.capacity

    def gather(self, slots: Slots) -> Any:
        """The hidden states [B, ...] of slots [B], in the structure in which they were written."""
        if self._plain is not None and slots.dtype is _WHOLE:
            return self._plain.take(slots, axis=0)
        layout = self.layout
        if layout is None:
            raise UsageError("the pool is empty: nothing was written yet")
        backend = self._backend
        sent = backend.send(slots)
        if layout.structure is LEAF:
            return backend.gather(self._rows[0], sent)
        return unflatten(layout.structure, iter([backend.gather(rows, sent) for rows in self._rows]))

    def scatter(self, slots: Slots, hidden: Any, *, in_a_row: bool = False) -> None:
        """Writes hidden states [B, ...] into slots [B], each named once; `in_a_row`: they follow one another."""
        arrays, structure = flatten(hidden)
        rows = len(slots)
        if rows == 0:
            return
        capacity = self._capacity_for(int(slots[-1]) if in_a_row else int(np.maximum.reduce(slots)))
        if self.layout is None:
            layout = Layout.of(arrays, structure, rows)
            backend = backend_of(layout)
            self._rows = [backend.empty(array, capacity) for array in arrays]
            self.layout, self.capacity, self._backend = layout, capacity, backend
            self.version += 1
            self._find_plain()
        else:
            layout = self.layout.admit(arrays, structure, rows)
            if layout is not self.layout or capacity != self.capacity:
                self._resize(layout, capacity)
        # One piece of memory is copied at once, which NumPy does many times as fast as row by row.
        first = int(slots[0])
        sent = slice(first, first + rows) if in_a_row and self._backend.takes_slices else self._backend.send(slots)
        for place, array in enumerate(arrays):
            self._rows[place] = self._backend.scatter(self._rows[place], sent, array)

    def read(self, sent: Any) -> Any:
        """As `gather`, by slots that are on the device already."""
        assert self.layout is not None, "roots are written first"
        arrays = [self._backend.gather(rows, sent) for rows in self._rows]
        return arrays[0] if self.layout.structure is LEAF else unflatten(self.layout.structure, iter(arrays))

    def write(self, sent: Any, arrays: list[Any], structure: Structure) -> None:
        """As `scatter`, by slots that are on the device already, for which there is room."""
        assert self.layout is not None, "roots are written first"
        layout = self.layout.admit(arrays, structure, len(sent))
        if layout is not self.layout:
            self._resize(layout, self.capacity)
        for place, array in enumerate(arrays):
            self._rows[place] = self._backend.scatter(self._rows[place], sent, array)

    def put(self, first: int, hidden: Any, rows: int) -> bool:
        """Writes hidden states [rows, ...] into as many slots from `first` on, if they are one array of NumPy just like
        those before and there is room; otherwise nothing is written, and `scatter` is for them.
        """
        table = self._plain
        if table is None or type(hidden) is not np.ndarray or hidden.dtype is not table.dtype:
            return False
        end = first + rows
        if end > self.capacity or hidden.shape != (rows, *table.shape[1:]):
            return False
        table[first:end] = hidden
        return True

    def reserve(self, capacity: int) -> None:
        """Room for this many slots at once, so that the pool does not grow on the way."""
        capacity = self._grown(validation.count(capacity, "capacity"))
        if self.layout is not None and capacity != self.capacity:
            self._resize(self.layout, capacity)
        self.capacity = capacity

    def _capacity_for(self, highest: int) -> int:
        return self.capacity if highest < self.capacity else self._grown(highest + 1)

    def _grown(self, wanted: int) -> int:
        if self.maximum is not None and wanted > self.maximum:
            raise InvalidArgumentError(f"slot {wanted - 1} is beyond the pool's maximum of {self.maximum} slots")
        capacity = self.capacity
        while capacity < wanted:
            capacity *= 2
        return capacity if self.maximum is None else min(capacity, self.maximum)

    def _resize(self, layout: Layout, capacity: int) -> None:
        # All new arrays are there before the first old one goes: where memory runs out, the pool is as it was.
        self._rows = [
            self._backend.resized(rows, capacity, leaf.dtype)
            for rows, leaf in zip(self._rows, layout.leaves, strict=True)
        ]
        self.layout, self.capacity = layout, capacity
        self.version += 1
        self._find_plain()

    def _find_plain(self) -> None:
        plain = self.layout is not None and self.layout.structure is LEAF and type(self._rows[0]) is np.ndarray
        self._plain = self._rows[0] if plain else None

    def __repr__(self) -> str:
        looks = "empty" if self.layout is None else ", ".join(map(str, self.layout.leaves))
        return f"<HiddenPool: {self.capacity} slots, {looks}>"


class NumpyBackend:
    """Rows in an array of NumPy. Rows of objects are references to them."""

    takes_slices = True

    def send(self, slots: Slots) -> Any:
        """As they are, but for the type that indexing wants: with others it is slower."""
        return slots if slots.dtype == np.int64 else slots.astype(np.int64)

    def empty(self, like: Any, capacity: int) -> Any:
        """Room for rows."""
        return np.empty((capacity, *like.shape[1:]), dtype=like.dtype)

    def resized(self, rows: Any, capacity: int, dtype: Any) -> Any:
        """Longer or wider."""
        grown = np.empty((capacity, *rows.shape[1:]), dtype=dtype)
        with np.errstate(invalid="ignore"):  # slots that were never written hold anything, signalling NaNs too
            grown[: len(rows)] = rows
        return grown

    def gather(self, rows: Any, slots: Any) -> Any:
        """A copy: `take` is three times as fast as indexing, and no slower than with an array to write into."""
        return rows.take(slots, axis=0)

    def scatter(self, rows: Any, slots: Any, written: Any) -> Any:
        """In place."""
        rows[slots] = written
        return rows


def backend_of(layout: Layout) -> Backend:
    """The backend for hidden states like these. The libraries are there already, or nobody could have made them."""
    leaf = layout.leaves[0] if layout.leaves else None
    if leaf is not None and leaf.library == "torch":
        from pondertree.models.pool_torch import TorchBackend

        return TorchBackend(leaf.device)
    if leaf is not None and leaf.library == "jax":
        from pondertree.models.pool_jax import JaxBackend

        return JaxBackend()
    return NumpyBackend()
