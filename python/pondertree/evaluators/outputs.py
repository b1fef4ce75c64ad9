"""Validation of evaluator outputs: conversion to arrays, with errors that name the row."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import LARGEST_REWARD
from pondertree.errors import EvaluationError
from pondertree.game import GameInfo

#: Tolerance of values beyond their range (they are clipped) and of zero-sum pairs, for rounding in networks.
TOLERANCE = 1e-3
#: The largest value in a game with rewards: sums over any number of visits stay far from overflow.
MAX_VALUE = LARGEST_REWARD

RowOf = Callable[[int], int]


def policy_axes(shape: tuple[int, ...]) -> list[int]:
    """Returns the axes of a policy [B, ...] in the order that makes it flatten to the order of actions.

    Axes of length 1 are ignored. Only chess heads have several others: 73 planes of 8 x 8 squares, planes first or
    last, ranks before files, from the perspective of the side to move. A move is square * 73 + plane.
    """
    axes = [axis for axis in range(1, len(shape)) if shape[axis] != 1]
    sizes = tuple(shape[axis] for axis in axes)
    if sizes in ((73, 8, 8), (73, 64)):
        axes = [*axes[1:], axes[0]]
    elif len(sizes) > 1 and sizes not in ((8, 8, 73), (64, 73)):
        raise EvaluationError(
            f"policy_logits has shape {shape}: it must be [B, num_actions], or a chess head [B, 73, 8, 8] or "
            "[B, 8, 8, 73]; any other must be flattened in the network, in the order in which the game numbers actions"
        )
    return [0, *axes, *(axis for axis in range(1, len(shape)) if shape[axis] == 1)]


def flat_policy(policy: NDArray[Any]) -> NDArray[Any]:
    """Reshapes a policy [B, ...] to [B, num_actions]."""
    if policy.ndim <= 2:
        return policy
    return policy.transpose(policy_axes(policy.shape)).reshape(len(policy), math.prod(policy.shape[1:]))


def check_policy(
    given: Any, shape: tuple[int | None, ...], offsets: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Returns logits or probabilities as a contiguous float32 array; the engine checks the numbers.

    `shape` is [rows, num_actions] (None: any number), or [L] for the legal actions of rows that begin at `offsets`.
    """
    if (
        isinstance(given, np.ndarray)
        and given.dtype == np.float32
        and given.shape == shape
        and given.flags.c_contiguous
    ):
        return given  # the common case

    def row_of(entry: int) -> int:
        return entry if offsets is None else int(np.searchsorted(offsets, entry, side="right")) - 1

    array = read_numbers(given, "policy_logits", row_of)
    if len(shape) == 2 and array.ndim > 2:
        array = flat_policy(array)
    if array.ndim != len(shape) or any(
        size not in (None, given) for size, given in zip(shape, array.shape, strict=True)
    ):
        expected = ", ".join("num_actions" if size is None else str(size) for size in shape)
        raise EvaluationError(
            f"policy_logits has shape {array.shape}: it must be ({expected}{',' * (len(shape) == 1)})"
        )
    return np.ascontiguousarray(as_float32(array, "policy_logits", row_of))


def check_values(given: Any, rows: int, num_players: int, info: GameInfo | None = None) -> NDArray[np.float64]:
    """Returns values as a contiguous float64 array, [rows] or [rows, num_players].

    They must be in [-1, 1] in a game without rewards, else at most `MAX_VALUE` in magnitude, also if `info` is not
    given. Values of two players in a zero-sum game must sum to 0.
    """
    values = read_numbers(given, "values")
    if values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # infinity is refused below
            values = values.astype(np.float64)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape == (rows, 1) and num_players <= 2:
        values = values.reshape(rows)
    shapes = [(rows,), (rows, num_players)] if num_players <= 2 else [(rows, num_players)]
    if values.shape not in shapes:
        raise EvaluationError(f"values has shape {values.shape}: it must be {' or '.join(map(str, shapes))}")
    if values.size == 0:
        return values
    results = info is not None and not info.has_rewards
    limit = 1.0 + TOLERANCE if results else MAX_VALUE
    largest = np.maximum.reduce(np.abs(values), axis=None)
    if not largest <= limit:  # False for NaN, too
        raise _out_of_range(values, limit)
    if info is not None and info.zero_sum and values.ndim == 2 and num_players == 2:
        _check_sums(values, max(1.0, largest))
    return np.clip(values, -1.0, 1.0) if results and largest > 1.0 else values


def as_float32(array: NDArray[Any], name: str, row_of: RowOf = int) -> NDArray[np.float32]:
    """Converts to float32; raises if a finite number would become infinite."""
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize > 4:
        lost = np.isinf(narrow) & np.isfinite(array)
        if lost.any():
            place = tuple(np.argwhere(lost)[0].tolist())
            raise EvaluationError(
                f"{name} of row {row_of(place[0])} has {array[place]}: that is too large for float32, "
                f"whose numbers are at most {np.finfo(np.float32).max:.4g} in size"
            )
    return narrow


def read_numbers(given: Any, name: str, row_of: RowOf = int) -> NDArray[Any]:
    """Converts to an array of real numbers. `row_of` maps an entry of the first axis to its row, for errors."""
    try:
        return _real(np.asarray(given))
    except Exception as error:
        # In a list or an array of objects, one row is at fault; in other arrays, the dtype.
        if isinstance(given, np.ndarray) and given.dtype.kind != "O":
            fault = f"{name} cannot be read as numbers: {error}"
        else:
            fault = _fault(given, name, row_of) or f"{name} cannot be read as numbers: {error}"
        raise EvaluationError(fault) from error


def _real(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "O":
        for entry in array.flat:
            plain = isinstance(entry, numbers.Real) or not isinstance(entry, numbers.Complex)
            if not (plain and hasattr(type(entry), "__float__")):
                raise TypeError(f"{repr(entry)[:40]} is no number")
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"their dtype is {array.dtype}")
    return array


def _fault(given: Any, name: str, row_of: RowOf) -> str | None:
    """Finds the first invalid entry; None if entries cannot be read one by one."""
    try:
        entries = list(given)
    except Exception:
        return None
    shapes = []
    for place, entry in enumerate(entries):
        try:
            shapes.append(_real(np.asarray(entry)).shape)
        except Exception as error:
            return f"{name} of row {row_of(place)} cannot be read as numbers: {error}"
    usual = Counter(shapes).most_common(1)[0][0] if shapes else ()
    place = next((place for place, shape in enumerate(shapes) if shape != usual), -1)
    if place < 0:
        return None
    return f"{name} of row {row_of(place)} has shape {shapes[place]}, but other rows have shape {usual}"


def _out_of_range(values: NDArray[np.float64], limit: float) -> EvaluationError:
    outside = ~np.isfinite(values)
    what = "every value must be a finite number"
    if not outside.any():
        outside = np.abs(values) > limit
        what = (
            f"a value may be at most {limit:.0e} in size"
            if limit == MAX_VALUE
            else "in a game without rewards values are from -1 to 1"
        )
    row = int(np.argwhere(outside)[0][0])
    return EvaluationError(f"values of row {row} are {values[row]}: {what}")


def _check_sums(values: NDArray[np.float64], scale: float) -> None:
    apart = np.abs(values.sum(axis=1)) > TOLERANCE * scale
    if apart.any():
        row = int(np.argmax(apart))
        raise EvaluationError(
            f"values of row {row} are {values[row]}: in a zero-sum game the two players' must cancel out "
            "(or give one value per row, for the player to move)"
        )


def two_outputs(answer: Any, who: str) -> tuple[Any, Any]:
    """Unpacks (policy, values); raises if a network returned anything else than a pair."""
    if isinstance(answer, (tuple, list)) and len(answer) == 2:
        return answer[0], answer[1]
    if isinstance(answer, (tuple, list)):
        given = f"a {type(answer).__name__} of {len(answer)}"
    elif isinstance(answer, Mapping):
        given = f"a {type(answer).__name__} with the keys {', '.join(map(repr, answer))}"
    else:
        given = f"a {type(answer).__name__}"
    raise EvaluationError(f"{who} returned {given}: it must return the pair (policy_logits, values)")


def next_power_of_two(rows: int) -> int:
    """Returns the least power of two >= `rows`: the padded batch size for libraries that compile for each shape."""
    return 1 << max(rows - 1, 0).bit_length()


def pad_rows(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Appends rows of zeros, up to `rows` in all."""
    if len(array) == rows:
        return array
    return np.concatenate([array, np.zeros((rows - len(array), *array.shape[1:]), dtype=array.dtype)])
