"""Rows of several columns, the newest ones: memory that grows by doubling up to a limit, then drops the oldest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows set aside at first.
FIRST_ROWS = 4096


class Ring:
    """The newest `most` rows, oldest first."""

    def __init__(self, most: int, empty: Mapping[str, NDArray[Any]]) -> None:
        """`empty` is an empty row by the name of its column."""
        self._most = most
        self._empty = dict(empty)
        self._begin = 0
        self._length = 0
        rows = min(FIRST_ROWS, most)
        self.columns = {name: self._rows(row, rows) for name, row in self._empty.items()}

    @staticmethod
    def _rows(row: NDArray[Any], count: int) -> NDArray[Any]:
        return np.broadcast_to(row, (count, *row.shape)).copy()

    def __len__(self) -> int:
        return self._length

    def append(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """New rows, by column; of more than there is room for, the newest."""
        count = min(len(next(iter(rows.values()))), self._most)
        held = len(self.columns[next(iter(self.columns))])
        while self._length + count > held and held < self._most:
            # Until it is full it begins at 0, so that nothing has to be moved.
            more = min(2 * held, self._most) - held
            for name, column in self.columns.items():
                self.columns[name] = np.concatenate([column, self._rows(self._empty[name], more)])
            held += more
        places = (self._begin + self._length + np.arange(count)) % held
        for name, column in self.columns.items():
            column[places] = rows[name][-count:]
        dropped = max(self._length + count - held, 0)
        self._begin = (self._begin + dropped) % held
        self._length += count - dropped

    def places(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows lie in the columns, 0 being the oldest."""
        places: NDArray[np.int64] = (self._begin + chosen) % len(next(iter(self.columns.values())))
        return places

    def take(self, name: str, chosen: NDArray[np.int64]) -> NDArray[Any]:
        """These rows of a column."""
        return self.columns[name][self.places(chosen)]

    def widen(self, name: str, width: int) -> None:
        """Makes the rows of a column as long as `width`."""
        column, row = self.columns[name], self._empty[name]
        fill = row.flat[0]
        more = width - column.shape[1]
        if more > 0:
            self.columns[name] = np.pad(column, ((0, 0), (0, more)), constant_values=fill)
            self._empty[name] = np.full(width, fill, dtype=row.dtype)
