"""A growing ring buffer of columns, the storage of the replay buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows allocated initially.
FIRST_ROWS = 4096


class RingBuffer:
    """A ring buffer of columns with the newest `capacity` rows, oldest first; allocated by doubling."""

    def __init__(self, capacity: int, empty: Mapping[str, NDArray[Any]]) -> None:
        """`empty` maps the name of each column to an empty row."""
        self._capacity = capacity
        self._empty = dict(empty)
        self._begin = 0
        self._length = 0
        rows = min(FIRST_ROWS, capacity)
        self.columns = {name: self._rows(row, rows) for name, row in self._empty.items()}

    @staticmethod
    def _rows(row: NDArray[Any], count: int) -> NDArray[Any]:
        return np.broadcast_to(row, (count, *row.shape)).copy()

    def __len__(self) -> int:
        return self._length

    def append(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Appends rows, given by column; overwrites the oldest beyond the capacity."""
        count = min(len(next(iter(rows.values()))), self._capacity)
        allocated = len(self.columns[next(iter(self.columns))])
        while self._length + count > allocated and allocated < self._capacity:
            # Before the capacity is reached the oldest row is at 0, so growing moves no rows.
            more = min(2 * allocated, self._capacity) - allocated
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, self._rows(self._empty[name], more)])
            allocated += more
        places = (self._begin + self._length + np.arange(count)) % allocated
        for name, column in self.columns.items():
            column[places] = rows[name][-count:]
        dropped = max(self._length + count - allocated, 0)
        self._begin = (self._begin + dropped) % allocated
        self._length += count - dropped

    def places(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the storage indices of rows, 0 being the oldest."""
        places: NDArray[np.int64] = (self._begin + chosen) % len(next(iter(self.columns.values())))
        return places

    def gather(self, name: str, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """Returns rows of a column."""
        return self.columns[name][self.places(chosen)]

    def widen(self, name: str, width: int) -> None:
        """Widens the rows of a column to `width`."""
        column, row = self.columns[name], self._empty[name]
        fill = row.flat[0]
        more = width - column.shape[1]
        if more > 0:
            self.columns[name] = np.pad(column, ((0, 0), (0, more)), constant_values=fill)
            self._empty[name] = np.full(width, fill, dtype=row.dtype)
