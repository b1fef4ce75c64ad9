"""The forms an evaluator may have, and how its answer is checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ponderosa.errors import EvaluationError, InvalidArgumentError, PonderosaError
from ponderosa.evaluators.batch import Batch, Packed


@runtime_checkable
class Evaluator(Protocol):
    """Values positions by what they look like. An attribute `policy` may say "probabilities" instead of "logits"."""

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions], values [B]) of observations [B, ...]."""
        ...


@runtime_checkable
class StateEvaluator(Protocol):
    """Values positions by the states themselves."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions] or None for even ones, values [B]) of states."""
        ...


@runtime_checkable
class PackedEvaluator(Protocol):
    """The fast form, for compiled games: packed planes and legal actions go up, logits of legal actions come down."""

    def evaluate_packed(self, packed: Packed) -> tuple[Any, Any]:
        """(logits of `packed.legal_actions` [L], values [B])."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What an evaluator said of a batch, checked."""

    policy: NDArray[np.float32] | None
    """[rows, num_actions], or [number of legal actions] from the packed form; None where all moves are alike."""
    values: NDArray[np.float64]
    """[rows] for the player to move, or [rows, num_players]."""
    probabilities: bool
    """The policy holds probabilities, not logits."""


def check_evaluator(evaluator: Any) -> None:
    """Refuses what has none of the forms."""
    forms = ("evaluate_packed", "evaluate_states", "evaluate")
    if isinstance(evaluator, type) or not (any(hasattr(evaluator, form) for form in forms) or callable(evaluator)):
        raise InvalidArgumentError(
            f"evaluator is {_brief(evaluator)}: it must have evaluate(observations) or evaluate_states(states), "
            "or be a function of observations"
        )
    if getattr(evaluator, "policy", "logits") not in ("logits", "probabilities"):
        raise InvalidArgumentError(f'evaluator.policy must be "logits" or "probabilities", not {evaluator.policy!r}')


def ask(evaluator: Any, batch: Batch) -> Answer:
    """The evaluator's answer to a batch, in the fastest form both know; its shapes and kinds checked."""
    packed = hasattr(evaluator, "evaluate_packed") and batch.packed is not None
    if packed and batch.packed is not None:
        asked: Packed | None = batch.packed()
        answer = _call(evaluator.evaluate_packed, asked)
    else:
        asked = None
        if hasattr(evaluator, "evaluate_states"):
            answer = _call(evaluator.evaluate_states, batch.states())
        else:
            answer = _call(getattr(evaluator, "evaluate", evaluator), batch.observations())
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise EvaluationError(f"the evaluator returned {_brief(answer)}: it must return (policy_logits, values)")
    shape = (batch.rows, batch.num_actions) if asked is None else (len(asked.legal_actions),)
    policy = None if answer[0] is None else check_policy(answer[0], shape)
    probabilities = getattr(evaluator, "policy", "logits") == "probabilities"
    return Answer(policy, check_values(answer[1], batch.rows, batch.num_players), probabilities)


def check_policy(given: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Logits or probabilities as a contiguous float32 array; what the numbers are, the engine checks."""
    array = _numbers(given, "policy_logits")
    if array.shape != shape:
        raise EvaluationError(f"policy_logits has shape {array.shape}: it must be {shape}")
    return np.ascontiguousarray(array, dtype=np.float32)


def check_values(given: Any, rows: int, num_players: int) -> NDArray[np.float64]:
    """Values as a contiguous float64 array, [rows] or [rows, num_players], all finite."""
    values = np.ascontiguousarray(_numbers(given, "values"), dtype=np.float64)
    if values.shape == (rows, 1) and num_players <= 2:
        values = values.reshape(rows)
    shapes = [(rows,), (rows, num_players)] if num_players <= 2 else [(rows, num_players)]
    if values.shape not in shapes:
        raise EvaluationError(f"values has shape {values.shape}: it must be {' or '.join(map(str, shapes))}")
    # A sum that is finite has only finite parts; the search for the culprit comes only if there may be one.
    if not math.isfinite(np.add.reduce(values, axis=None)) and not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise EvaluationError(f"values of row {row} are {values[row]}: every value must be a finite number")
    return values


def _numbers(given: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(given)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"their dtype is {array.dtype}")
    except Exception as error:
        raise EvaluationError(f"{name} cannot be read as numbers: {error}") from error
    return array


def _call(function: Callable[[Any], Any], batch: Any) -> Any:
    try:
        return function(batch)
    except PonderosaError:
        raise
    except Exception as error:
        raise EvaluationError(f"the evaluator raised {type(error).__name__}: {error}") from error


def _brief(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) < 80 else f"{text[:77]}..."
