"""Validation of a model's outputs: shapes, dtypes and numbers, with errors that name output and row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import LARGEST_REWARD
from pondertree.errors import EvaluationError
from pondertree.models.arrays import number_array

#: The largest value or reward: sums over any number of visits stay far from overflow.
LARGEST = LARGEST_REWARD

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

ROOT = ("hidden_state", "policy_logits", "value")
STEP = ("hidden_state", "reward", "policy_logits", "value")
STEP_DISCOUNT = (*STEP, "discount")


@dataclass(frozen=True, slots=True)
class InitialOutput:
    """Validated outputs of `initial_inference`."""

    hidden: Any
    """[B, ...], or a structure of such arrays, unchanged."""
    logits: NDArray[np.float32]
    """[B, num_actions], contiguous; -inf is allowed, but the engine refuses rows of -inf alone."""
    values: NDArray[np.float64]
    """[B], for the player to move."""


@dataclass(frozen=True, slots=True)
class RecurrentOutput:
    """Validated outputs of `recurrent_inference`."""

    hidden: Any
    """[B, ...], or a structure of such arrays, unchanged."""
    rewards: NDArray[np.float64]
    """[B], for the player who chose the action."""
    logits: NDArray[np.float32]
    """[B, num_actions], contiguous; -inf is allowed, but the engine refuses rows of -inf alone."""
    values: NDArray[np.float64]
    """[B], for the player to move after the action."""
    discounts: NDArray[np.float64] | None
    """[B] in [-1, 1]: 0 ends the episode, a negative sign changes the player. None: as configured."""


def is_numpy_tuple(answer: Any, rows: int, num_actions: int) -> bool:
    """Whether the output of a step is a tuple of NumPy arrays that the engine reads without conversion.

    The engine checks their numbers with the error messages below; for a batch of few rows, checks in NumPy would cost
    more than everything else.
    """
    if type(answer) is not tuple or not 4 <= len(answer) <= 5:
        return False
    logits = answer[2]
    if type(logits) is not np.ndarray or logits.dtype is not _SINGLE or logits.shape != (rows, num_actions):
        return False
    shape = (rows,)
    for place in (1, 3, 4)[: len(answer) - 2]:
        column = answer[place]
        if type(column) is not np.ndarray or column.shape != shape:
            return False
        kind = column.dtype
        if kind is not _SINGLE and kind is not _DOUBLE:
            return False
    return True


def check_root(answer: Any, rows: int, num_actions: int | None = None) -> InitialOutput:
    """Validates outputs of `initial_inference` for `rows` observations; `num_actions` is checked if given."""
    hidden, logits, value = root_parts(answer)
    return InitialOutput(hidden, check_logits(logits, rows, num_actions), check_column(value, rows, "value"))


def check_step(answer: Any, rows: int, num_actions: int | None = None) -> RecurrentOutput:
    """Validates outputs of `recurrent_inference` for `rows` hidden states and actions."""
    if type(answer) is tuple and len(answer) == 4:  # the common case
        hidden, reward, logits, value = answer
        discount = None
    else:
        hidden, reward, logits, value, *rest = step_parts(answer)
        discount = rest[0] if rest else None
    discounts = None if discount is None else check_discounts(discount, rows)
    return RecurrentOutput(
        hidden,
        check_column(reward, rows, "reward"),
        check_logits(logits, rows, num_actions),
        check_column(value, rows, "value"),
        discounts,
    )


def check_logits(given: Any, rows: int, num_actions: int | None) -> NDArray[np.float32]:
    """Returns logits as contiguous float32 [rows, num_actions]; raises for NaN and +inf."""
    array = number_array(given, "policy_logits")
    shape = array.shape
    if len(shape) != 2 or shape[0] != rows or shape[1] != (num_actions or shape[1]) or shape[1] == 0:
        wanted = f"({rows}, {'num_actions' if num_actions is None else num_actions})"
        raise EvaluationError(f"policy_logits has shape {shape}: it must be {wanted}")
    if array.dtype == np.float32:
        logits = np.ascontiguousarray(array)
    else:
        with np.errstate(over="ignore"):  # masks such as -1e300 become -inf
            logits = np.ascontiguousarray(array, dtype=np.float32)
    # The maximum propagates NaN and +inf; a sum would warn about masks such as -1e38.
    if not np.maximum.reduce(logits, axis=None) < np.inf:
        row, action = np.argwhere(~(logits < np.inf))[0]
        raise EvaluationError(
            f"policy_logits of row {row}, action {action} is {array[row, action]}: "
            "as float32 a logit must be a finite number or -inf"
        )
    return logits


def check_column(given: Any, rows: int, name: str) -> NDArray[np.float64]:
    """Returns float64 [rows], finite and at most 1e12 in magnitude; accepts [rows] and [rows, 1]."""
    array = number_array(given, name)
    if array.shape != (rows,):
        if array.shape != (rows, 1):
            raise EvaluationError(_wrong_column(array.shape, rows, name))
        array = array.reshape(rows)
    column = array.astype(np.float64)
    # A small sum of squares proves that every number is small and finite; only otherwise each one is inspected.
    # (`vdot`, unlike `dot` and sums, does not warn about NaN.)
    if not np.vdot(column, column) <= LARGEST**2:
        _raise_for_row(column, name)
    return column


def _raise_for_row(column: NDArray[np.float64], name: str) -> None:
    for wrong, wanted in (
        (~np.isfinite(column), "it must be a finite number"),
        (np.abs(column) > LARGEST, f"it may be at most {LARGEST:.0e} in size"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise EvaluationError(f"{name} of row {row} is {column[row]}: {wanted}")


def check_discounts(given: Any, rows: int) -> NDArray[np.float64]:
    """Returns discounts in [-1, 1] as contiguous float64 [rows]."""
    discounts = check_column(given, rows, "discount")
    if np.minimum.reduce(discounts) < -1.0 or np.maximum.reduce(discounts) > 1.0:
        row = int(np.argwhere(abs(discounts) > 1.0)[0][0])
        raise EvaluationError(f"discount of row {row} is {discounts[row]}: it must be from -1 to 1")
    return discounts


def _wrong_column(shape: tuple[int, ...], rows: int, name: str) -> str:
    if not shape or (math.prod(shape) == 1 and rows > 1):
        return f"{name} is one number for the whole batch: it must be one for each row, of shape ({rows},)"
    return f"{name} has shape {shape}: it must be ({rows},), one number for each row"


def root_parts(answer: Any) -> tuple[Any, ...]:
    """Returns (hidden_state, policy_logits, value)."""
    return _parts(answer, "initial_inference", ROOT)


def step_parts(answer: Any) -> tuple[Any, ...]:
    """Returns (hidden_state, reward, policy_logits, value), and discount if it was given."""
    return _parts(answer, "recurrent_inference", STEP, STEP_DISCOUNT)


def _parts(answer: Any, method: str, *forms: tuple[str, ...]) -> tuple[Any, ...]:
    """Returns outputs in order: of a named tuple by name if all names are known, else by position."""
    if isinstance(answer, (tuple, list)):
        fields = getattr(answer, "_fields", None)
        if fields is not None:
            for form in reversed(forms):
                if set(form) <= set(fields):
                    return tuple(getattr(answer, name) for name in form)
        if any(len(answer) == len(form) for form in forms):
            return tuple(answer)
        given = f"a {type(answer).__name__} of {len(answer)}"
    else:
        given = f"a {type(answer).__name__}"
    wanted = " or ".join(f"({', '.join(form)})" for form in forms)
    raise EvaluationError(f"{method} returned {given}: it must return {wanted}")
