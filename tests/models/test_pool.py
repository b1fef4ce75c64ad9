"""The hidden-state pool: reads return writes in every structure; growth; layout changes are refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from pondertree.errors import EvaluationError, InvalidArgumentError, UsageError
from pondertree.models import HiddenPool, Inference
from pondertree.models.hidden import flatten, unflatten


class Pair(NamedTuple):
    """A named tuple."""

    long: Any
    short: Any


def rows_of(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first * 3, (first + count) * 3, dtype=np.float32).reshape(count, 3)


STRUCTURES: dict[str, Any] = {
    "array": lambda rows: rows,
    "flat": lambda rows: rows[:, 0],
    "images": lambda rows: np.tile(rows[:, :, None, None], (1, 1, 2, 2)),
    "integers": lambda rows: rows.astype(np.int32),
    "tuple": lambda rows: (rows, rows[:, 0].astype(int)),
    "named": lambda rows: Pair(rows, rows[:, :1]),
    "dict": lambda rows: {"b": rows, "a": (rows[:, 1], {"c": rows > 4})},
    "list of arrays": lambda rows: [rows, rows + 1],
    "with nothing": lambda rows: (rows, None),
    "nothing": lambda rows: None,
    "objects": lambda rows: np.array([Pair(*row[:2]) for row in rows.tolist()] + [None], dtype=object)[:-1],
}


def equal(one: Any, other: Any) -> bool:
    """Whether structure, dtypes and numbers are equal."""
    arrays, structure = flatten(one)
    others, other_structure = flatten(other)
    return structure == other_structure and all(
        a.dtype == b.dtype and a.shape == b.shape and (a == b).all() for a, b in zip(arrays, others, strict=True)
    )


@pytest.mark.parametrize("kind", ["uint32", "int64", "int32", "uint16"])
@pytest.mark.parametrize("make", [v for k, v in STRUCTURES.items() if k != "objects"], ids=lambda make: "")
def test_gather_returns_written_rows(make: Any, kind: str) -> None:
    pool = HiddenPool(8)
    written = make(rows_of(5))
    pool.scatter(np.array([7, 2, 0, 5, 3], dtype=kind), written)
    pool.scatter(np.array([2, 6], dtype=kind), make(rows_of(2, first=10)))
    assert equal(pool.gather(np.array([7, 0, 5, 3], dtype=kind)), make(rows_of(5)[[0, 2, 3, 4]]))
    assert equal(pool.gather(np.array([6, 2, 6], dtype=kind)), make(rows_of(2, first=10)[[1, 0, 1]]))
    assert pool.capacity == 8


def test_objects_are_stored_by_reference() -> None:
    pool = HiddenPool(2)
    states = [object(), {"a": 1}, "text"]
    pool.scatter(np.arange(3), states)
    assert [a is b for a, b in zip(pool.gather(np.array([2, 0, 1])), [states[2], states[0], states[1]], strict=True)]


def test_rows_are_copied_both_ways() -> None:
    pool, written = HiddenPool(4), rows_of(2)
    pool.scatter(np.array([0, 1]), written)
    written[:] = -1
    read = pool.gather(np.array([0, 1]))
    read[:] = -2
    assert (pool.gather(np.array([0, 1])) == rows_of(2)).all()


def test_growth_doubles_capacity_and_keeps_rows() -> None:
    pool = HiddenPool(2)
    pool.scatter(np.array([0, 1]), (rows_of(2), rows_of(2)[:, 0]))
    assert pool.nbytes // pool.capacity == 16
    pool.scatter(np.array([2]), (rows_of(1, 2), rows_of(1, 2)[:, 0]))
    assert pool.capacity == 4
    pool.scatter(np.array([30]), (rows_of(1, 3), rows_of(1, 3)[:, 0]))
    assert (pool.capacity, pool.nbytes, pool.nbytes // pool.capacity) == (32, 32 * 16, 16)
    long, short = pool.gather(np.array([0, 1, 2, 30]))
    assert (long == rows_of(4)).all()
    assert (short == rows_of(4)[:, 0]).all()


def test_slots_beyond_maximum_raise() -> None:
    pool = HiddenPool(100, maximum=5)
    assert pool.capacity == 5
    pool = HiddenPool(2, maximum=5)
    pool.scatter(np.array([0, 4]), rows_of(2))
    assert pool.capacity == 5
    with pytest.raises(InvalidArgumentError, match="slot 5 is beyond the pool's maximum of 5 slots"):
        pool.scatter(np.array([1, 5]), rows_of(2, 7))
    with pytest.raises(InvalidArgumentError, match="maximum of 5"):
        pool.reserve(6)
    assert (pool.gather(np.array([0, 4])) == rows_of(2)).all()
    with pytest.raises(InvalidArgumentError, match="capacity"):
        HiddenPool(0)


def test_reserve_grows_capacity_at_once() -> None:
    pool = HiddenPool(2)
    pool.reserve(20)
    assert pool.capacity == 32
    pool.scatter(np.array([1]), rows_of(1))
    pool.reserve(33)
    assert pool.capacity == 64
    assert (pool.gather(np.array([1])) == rows_of(1)).all()


def test_rows_of_another_layout_raise_and_write_nothing() -> None:
    pool = HiddenPool(4)
    pool.scatter(np.array([0, 1]), rows_of(2))
    for wrong in (rows_of(2)[:, :1], rows_of(2)[:, :2], rows_of(1), rows_of(2).astype(int), (rows_of(2),), None):
        with pytest.raises(EvaluationError, match="hidden_state"):
            pool.scatter(np.array([0, 9]), wrong)
    assert pool.capacity == 4
    assert (pool.gather(np.array([0, 1])) == rows_of(2)).all()


def test_wider_dtype_widens_pool() -> None:
    pool = HiddenPool(4)
    pool.scatter(np.array([0]), rows_of(1))
    exact = rows_of(1).astype(np.float64) + 1e-12
    pool.scatter(np.array([1]), exact)
    assert pool.gather(np.array([1, 0])).tolist() == [exact[0].tolist(), rows_of(1)[0].tolist()]
    pool.scatter(np.array([2]), rows_of(1))
    assert pool.gather(np.array([2])).dtype == np.float64


def test_empty_pool_raises_on_gather() -> None:
    pool = HiddenPool(4)
    assert (pool.nbytes // pool.capacity, pool.nbytes, repr(pool)) == (0, 0, "<HiddenPool: 4 slots, empty>")
    with pytest.raises(UsageError, match="nothing was written"):
        pool.gather(np.array([0]))
    pool.scatter(np.array([], dtype=np.int64), rows_of(0))
    assert pool.layout is None
    pool.scatter(np.array([0]), rows_of(1))
    assert repr(pool) == "<HiddenPool: 4 slots, numpy float32 [3] a row>"


def test_lists_are_rows_unless_they_contain_arrays() -> None:
    assert flatten([1, 2, 3])[0][0].tolist() == [1, 2, 3]
    assert flatten([[1, 2], [3, 4]])[0][0].shape == (2, 2)
    assert flatten([[1, 2], [3]])[0][0].dtype == object
    assert len(flatten([rows_of(2), rows_of(2)])[0]) == 2

    class Listing:
        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            return [[float(i)] for i in range(len(observations))], np.zeros((len(observations), 2)), [0.0, 0.0]

        def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            return hidden.tolist(), [0.0, 0.0], np.zeros((2, 2)), [0.0, 0.0]

    inference = Inference(Listing())
    assert inference.initial(np.zeros((2, 1))).hidden.tolist() == [[0.0], [1.0]]
    assert inference.recurrent(np.zeros((2, 1)), np.zeros(2, np.int64)).hidden.shape == (2, 1)


@pytest.mark.parametrize("make", STRUCTURES.values(), ids=STRUCTURES)
def test_unflatten_inverts_flatten(make: Any) -> None:
    hidden = make(rows_of(3))
    arrays, structure = flatten(hidden)
    again = unflatten(structure, iter(arrays))
    assert type(again) is type(hidden)
    assert [id(array) for array in flatten(again)[0]] == [id(array) for array in arrays]
