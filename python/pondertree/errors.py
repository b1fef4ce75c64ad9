"""All exceptions and warnings. A message names the argument and says what is expected."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class PondertreeError(Exception):
    """The base class of all exceptions."""


class InvalidActionError(PondertreeError, ValueError):
    """An action that is not legal, or text that denotes no action."""


class InvalidPositionError(PondertreeError, ValueError):
    """An invalid position: a malformed FEN, an impossible board."""


class GameOverError(PondertreeError, ValueError):
    """A move or a search in a finished game."""


class InvalidArgumentError(PondertreeError, ValueError):
    """An option or argument of the wrong type or out of range."""


class UnknownOptionError(InvalidArgumentError, TypeError):
    """An unknown keyword of a search; the message suggests the nearest option."""


class MissingFileError(InvalidArgumentError, FileNotFoundError):
    """An argument names a file that does not exist."""


class GameContractError(PondertreeError, ValueError):
    """A user's game violates the contract of states (`pondertree.Game`)."""


class SnapshotError(InvalidArgumentError):
    """No way to copy an environment passed its probe, or its randomness cannot be reseeded."""

    def __init__(self, message: str, reasons: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.reasons = reasons or {}
        """Why each method of copying failed, by its name."""


class EvaluationError(PondertreeError, ValueError):
    """An evaluator raised an exception or returned an invalid result."""


class UsageError(PondertreeError, RuntimeError):
    """Calls in an invalid order, such as re-entering a running search."""


class InternalError(PondertreeError, RuntimeError):
    """A panic of the engine. The forest in which it happened refuses all further calls."""


class MissingExtraError(PondertreeError, ImportError):
    """A required optional package is not installed."""


class UnsolvedError(PondertreeError, RuntimeError):
    """A position was not solved within the given limits."""

    def __init__(self, message: str, solutions: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.solutions = solutions
        """The solutions in the order of the states; None for unsolved ones."""


class PlayerError(PondertreeError, RuntimeError):
    """A player of a match crashed, hung, raised or violated the rules; the message names it."""


class StorageError(PondertreeError, OSError):
    """Files of a training run cannot be written, or are damaged, missing or of another version; no file was changed."""


class PlayerCountWarning(UserWarning):
    """The number of players of a bare observation is unknown and assumed to be 1."""


class TrainingError(PondertreeError, RuntimeError):
    """A training run cannot continue: non-finite numbers, or a device out of memory."""


class UnsearchedWarning(UserWarning):
    """A result was read from a tree without simulations: it has no visits behind it."""


class UnfinishedPlayoutWarning(UserWarning):
    """A random playout was truncated because the game did not end; its value is a draw, or the rewards so far."""


class RandomGeneratorInStateWarning(UserWarning):
    """A state holds a random generator that `play` draws from, so that a search knows its random numbers in advance."""


#: The start of the message if an evaluator raised.
EVALUATOR_RAISED = "the evaluator raised"


def call_evaluator(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls an evaluator; wraps what it raises in `EvaluationError`."""
    try:
        return function(*arguments)
    except PondertreeError:
        raise
    except Exception as error:
        raise EvaluationError(f"{EVALUATOR_RAISED} {type(error).__name__}: {error}") from error


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issues a warning at the caller's line, the first frame outside this package."""
    package = str(Path(__file__).parent) + os.sep
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
