"""The ring buffer keeps the newest rows in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pondertree.learn.data import ring as rings
from pondertree.learn.data.ring import RingBuffer


@settings(max_examples=60, deadline=None)
@given(most=st.integers(1, 40), sizes=st.lists(st.integers(1, 25), max_size=12))
def test_ring_buffer_holds_newest_rows_in_order(most: int, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rings, "FIRST_ROWS", 3)
        ring = RingBuffer(most, {"number": np.zeros((), np.int64), "pair": np.zeros(2, np.float32)})
        came: list[int] = []
        for size in sizes:
            new = np.arange(len(came), len(came) + size)
            came += new.tolist()
            ring.append({"number": new, "pair": np.stack([new, -new], axis=1)})
            retained = came[-most:]
            assert len(ring) == len(retained)
            places = np.arange(len(ring))
            assert ring.gather("number", places).tolist() == retained
            assert ring.gather("pair", places)[:, 1].tolist() == [-number for number in retained]


def test_ring_buffer_widens_rows() -> None:
    ring = RingBuffer(10, {"actions": np.full(2, 7, np.uint16)})
    ring.append({"actions": np.array([[1, 2]], np.uint16)})
    ring.widen("actions", 4)
    ring.widen("actions", 3)  # narrowing has no effect
    ring.append({"actions": np.array([[1, 2, 3, 4]], np.uint16)})
    assert ring.gather("actions", np.arange(2)).tolist() == [[1, 2, 7, 7], [1, 2, 3, 4]]
