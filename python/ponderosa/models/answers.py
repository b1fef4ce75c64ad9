"""What a model said of a batch, checked: shapes, kinds and numbers, each mistake named with its row and argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ponderosa.errors import EvaluationError
from ponderosa.models.arrays import number_array

ROOT = ("hidden_state", "policy_logits", "value")
STEP = ("hidden_state", "reward", "policy_logits", "value")
STEP_DISCOUNT = (*STEP, "discount")


@dataclass(frozen=True, slots=True)
class RootAnswer:
    """`initial_inference`: a hidden state for each observation, and what the model thinks there."""

    hidden: Any
    """As the model gave it: [B, ...], or a structure of such arrays."""
    logits: NDArray[np.float32]
    """[B, num_actions], contiguous; -inf is allowed, all of a row being -inf the engine refuses."""
    values: NDArray[np.float64]
    """[B], for the player to move."""


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """`recurrent_inference`: the hidden states after the actions, what they earned, and what the model thinks there."""

    hidden: Any
    """As the model gave it: [B, ...], or a structure of such arrays."""
    rewards: NDArray[np.float64]
    """[B], for the player who chose the action."""
    logits: NDArray[np.float32]
    """[B, num_actions], contiguous; -inf is allowed, all of a row being -inf the engine refuses."""
    values: NDArray[np.float64]
    """[B], for the player to move after the action."""
    discounts: NDArray[np.float64] | None
    """[B] in [-1, 1]: 0 ends the episode, a negative sign changes the player. None: as configured."""


def check_root(answer: Any, rows: int, num_actions: int | None = None) -> RootAnswer:
    """The answer of `initial_inference` to `rows` observations. Without `num_actions`, any number of logits will do."""
    hidden, logits, value = _parts(answer, "initial_inference", ROOT)
    return RootAnswer(hidden, check_logits(logits, rows, num_actions), check_column(value, rows, "value"))


def check_step(answer: Any, rows: int, num_actions: int | None = None) -> StepAnswer:
    """The answer of `recurrent_inference` to `rows` hidden states and actions."""
    if type(answer) is tuple and len(answer) == 4:  # the usual case
        hidden, reward, logits, value = answer
        discount = None
    else:
        hidden, reward, logits, value, *rest = _parts(answer, "recurrent_inference", STEP, STEP_DISCOUNT)
        discount = rest[0] if rest else None
    discounts = None if discount is None else check_discounts(discount, rows)
    return StepAnswer(
        hidden,
        check_column(reward, rows, "reward"),
        check_logits(logits, rows, num_actions),
        check_column(value, rows, "value"),
        discounts,
    )


def check_logits(given: Any, rows: int, num_actions: int | None) -> NDArray[np.float32]:
    """Logits as contiguous float32 [rows, num_actions], none NaN or +inf."""
    array = number_array(given, "policy_logits")
    shape = array.shape
    if len(shape) != 2 or shape[0] != rows or shape[1] != (num_actions or shape[1]) or shape[1] == 0:
        wanted = f"({rows}, {'num_actions' if num_actions is None else num_actions})"
        raise EvaluationError(f"policy_logits has shape {shape}: it must be {wanted}")
    logits = np.ascontiguousarray(array, dtype=np.float32)
    # The greatest number tells all: NaN and +inf win against everything. (A sum would warn of masks like -1e38.)
    if not np.maximum.reduce(logits, axis=None) < np.inf:
        row, action = np.argwhere(~(logits < np.inf))[0]
        found = logits[row, action]
        raise EvaluationError(
            f"policy_logits of row {row}, action {action} is {found}: a logit must be a finite number or -inf"
        )
    return logits


def check_column(given: Any, rows: int, name: str) -> NDArray[np.float64]:
    """One finite number for each row, as contiguous float64 [rows]; given as [rows] or [rows, 1]."""
    array = number_array(given, name)
    if array.shape != (rows,):
        if array.shape != (rows, 1):
            raise EvaluationError(_wrong_column(array.shape, rows, name))
        array = array.reshape(rows)
    column = array.astype(np.float64)
    # Squares that add up to a finite number are all finite, and they are added in half a microsecond; the search for
    # the culprit comes only if there may be one. (A plain sum would warn of infinities of both signs.)
    if not math.isfinite(column.dot(column)) and not np.isfinite(column).all():
        row = int(np.argwhere(~np.isfinite(column))[0][0])
        raise EvaluationError(f"{name} of row {row} is {column[row]}: it must be a finite number")
    return column


def check_discounts(given: Any, rows: int) -> NDArray[np.float64]:
    """One number from -1 to 1 for each row, as contiguous float64 [rows]."""
    discounts = check_column(given, rows, "discount")
    if np.minimum.reduce(discounts) < -1.0 or np.maximum.reduce(discounts) > 1.0:
        row = int(np.argwhere(abs(discounts) > 1.0)[0][0])
        raise EvaluationError(f"discount of row {row} is {discounts[row]}: it must be from -1 to 1")
    return discounts


def _wrong_column(shape: tuple[int, ...], rows: int, name: str) -> str:
    if not shape or (math.prod(shape) == 1 and rows > 1):
        return f"{name} is one number for the whole batch: it must be one for each row, of shape ({rows},)"
    return f"{name} has shape {shape}: it must be ({rows},), one number for each row"


def _parts(answer: Any, method: str, *forms: tuple[str, ...]) -> tuple[Any, ...]:
    """The parts of an answer in our order: a named tuple is read by its names if they are ours, others by place."""
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
