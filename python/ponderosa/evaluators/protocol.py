"""The forms an evaluator may have, and how its answer is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ponderosa.errors import EvaluationError, GameContractError, InvalidArgumentError


@runtime_checkable
class Evaluator(Protocol):
    """Values positions by what they look like."""

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions], values [B]) of observations [B, ...]."""
        ...


@runtime_checkable
class StateEvaluator(Protocol):
    """Values positions by the states themselves."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[Any, Any]:
        """(policy_logits [B, num_actions], values [B]) of states."""
        ...


def check_evaluator(evaluator: Any) -> None:
    """Refuses what has none of the forms."""
    if not (hasattr(evaluator, "evaluate_states") or hasattr(evaluator, "evaluate") or callable(evaluator)):
        raise InvalidArgumentError(
            f"evaluator is a {type(evaluator).__name__}: it must have evaluate(observations) or evaluate_states(states), "
            "or be a function of observations"
        )


def values_of(
    evaluator: Any,
    states: Callable[[], Sequence[Any]],
    observations: Callable[[], NDArray[np.float32]],
    rows: int,
    num_players: int,
) -> NDArray[np.float64]:
    """The evaluator's values of a batch, checked: [rows] for the player to move, or [rows, num_players]."""
    if hasattr(evaluator, "evaluate_states"):
        answer = _call(evaluator.evaluate_states, states())
    else:
        answer = _call(getattr(evaluator, "evaluate", evaluator), observations())
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise EvaluationError(f"the evaluator returned {_brief(answer)}: it must return (policy_logits, values)")
    try:
        given = np.asarray(answer[1])
        if given.dtype.kind not in "biufO":
            raise TypeError(f"their dtype is {given.dtype}")
        values = given.astype(np.float64)
    except Exception as error:
        raise EvaluationError(f"values cannot be read as numbers: {error}") from error
    if values.shape == (rows, 1) and num_players <= 2:
        values = values[:, 0]
    shapes = [(rows,), (rows, num_players)] if num_players <= 2 else [(rows, num_players)]
    if values.shape not in shapes:
        raise EvaluationError(f"values has shape {values.shape}: it must be {' or '.join(map(str, shapes))}")
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise EvaluationError(f"values of row {row} are {values[row]}: every value must be a finite number")
    return values


def stack_observations(states: Sequence[Any]) -> NDArray[np.float32]:
    """The observations of states of a Python game, as one batch."""
    if not hasattr(states[0], "observation"):
        raise GameContractError(
            f"{type(states[0]).__name__} has no observation(): an evaluator of observations needs one "
            "(or give an evaluator with evaluate_states)"
        )
    try:
        return np.stack([np.asarray(state.observation(), dtype=np.float32) for state in states])
    except Exception as error:
        raise GameContractError(f"{type(states[0]).__name__}.observation() failed: {error}") from error


def _call(function: Callable[[Any], Any], batch: Any) -> Any:
    try:
        return function(batch)
    except Exception as error:
        raise EvaluationError(f"the evaluator raised {type(error).__name__}: {error}") from error


def _brief(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) < 80 else f"{text[:77]}..."
