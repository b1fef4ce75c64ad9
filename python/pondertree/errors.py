"""Every exception and warning of Pondertree. Each message names the argument and says what would be right."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class PondertreeError(Exception):
    """The base of them all."""


class InvalidActionError(PondertreeError, ValueError):
    """An action that is not legal, or text that names none."""


class InvalidPositionError(PondertreeError, ValueError):
    """A position that cannot be: a broken FEN, an impossible board."""


class GameOverError(PondertreeError, ValueError):
    """The game is over where a move or a search was asked for."""


class InvalidArgumentError(PondertreeError, ValueError):
    """A setting or argument of the wrong kind or outside its range."""


class UnknownOptionError(InvalidArgumentError, TypeError):
    """A keyword that a search does not have; the message names the nearest one it has."""


class MissingFileError(InvalidArgumentError, FileNotFoundError):
    """A file that an argument names and that is not there."""


class GameContractError(PondertreeError, ValueError):
    """A game written by a user that broke the rules of the state interface (`pondertree.Game`)."""


class EvaluationError(PondertreeError, ValueError):
    """An evaluator that answered nonsense, or raised."""


class UsageError(PondertreeError, RuntimeError):
    """Calls in an order that makes no sense, such as entering a running search again."""


class InternalError(PondertreeError, RuntimeError):
    """A defect of the engine: it panicked. A search in which that happened refuses every further call."""


class MissingExtraError(PondertreeError, ImportError):
    """Something needs an optional package that is not installed."""


class UnsolvedError(PondertreeError, RuntimeError):
    """A position that was not solved within the limits it was given."""

    def __init__(self, message: str, solutions: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.solutions = solutions
        """What was solved, in the order of the states; None for those that were not."""


class PlayerError(PondertreeError, RuntimeError):
    """A player of a match that died, hung, raised or broke the rules; the message names it."""


class StorageError(PondertreeError, OSError):
    """Files of a training that cannot be written, are damaged, missing or of another version; nothing was changed."""


class PlayerCountWarning(UserWarning):
    """A search from a bare observation that nobody has told how many players there are: one is assumed."""


class TrainingError(PondertreeError, RuntimeError):
    """A training that cannot go on: numbers that are not finite, a device that has no memory left."""


class UnsearchedWarning(UserWarning):
    """An answer was read off a tree in which no move was tried: it is no better than a guess."""


class UnfinishedPlayoutWarning(UserWarning):
    """A random playout was cut because the game did not end; its value is that of a draw, or its rewards so far."""


class RandomGeneratorInStateWarning(UserWarning):
    """A state carries a random generator that `play` draws from, so that a search foresees its random numbers."""


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
    """Issues a warning that points at the code outside of Pondertree that called it."""
    package = str(Path(__file__).parent) + os.sep
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
