"""Every exception Ponderosa raises on purpose. Each message names the argument and says what would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ponderosa.games.connect_four import Solution


class PonderosaError(Exception):
    """The base of them all."""


class InvalidActionError(PonderosaError, ValueError):
    """An action that is not legal, or text that names none."""


class InvalidPositionError(PonderosaError, ValueError):
    """A position that cannot be: a broken FEN, an impossible board."""


class GameOverError(PonderosaError, ValueError):
    """The game is over where a move or a search was asked for."""


class InvalidArgumentError(PonderosaError, ValueError):
    """A setting or argument of the wrong kind or outside its range."""


class GameContractError(PonderosaError, ValueError):
    """A game written by a user that broke the rules of the state interface (`ponderosa.Game`)."""


class EvaluationError(PonderosaError, ValueError):
    """An evaluator that answered nonsense, or raised."""


class UsageError(PonderosaError, RuntimeError):
    """Calls in an order that makes no sense, such as entering a running search again."""


class MissingExtraError(PonderosaError, ImportError):
    """Something needs an optional package that is not installed."""


class UnsolvedError(PonderosaError, RuntimeError):
    """A position that was not solved within the limits it was given."""

    def __init__(self, message: str, solutions: Sequence[Solution | None] = ()) -> None:
        super().__init__(message)
        self.solutions = solutions
        """What was solved, in the order of the states; None for those that were not."""


class PlayerError(PonderosaError, RuntimeError):
    """A player of a match that died, hung, raised or broke the rules; the message names it."""


class StorageError(PonderosaError, OSError):
    """Files of a training that cannot be written, are damaged, missing or of another version; nothing was changed."""


class TrainingError(PonderosaError, RuntimeError):
    """A training that cannot go on: numbers that are not finite, a device that has no memory left."""
