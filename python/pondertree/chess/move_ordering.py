"""What kind of move a move is: exchanges on a square, and the ten categories of the hybrid specification (4.1)."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pondertree import _core, validation
from pondertree._core import MoveWeights
from pondertree.chess.mate import MateAnswer
from pondertree.errors import GameOverError, InvalidArgumentError
from pondertree.files import current_format, reading, write_bytes
from pondertree.games.chess_interop import NUM_ACTIONS, any_action, legal_action, to_chess, to_chess_and_answer

#: Centipawns of pawn, knight, bishop, rook and queen in an exchange.
SEE_VALUES = (100, 320, 330, 500, 900)

#: No piece may be worth more, and no threshold larger.
_MOST = 20_000


class MoveCategory(IntEnum):
    """The kind of a move, in the hybrid specification's names. A lower number is tried earlier."""

    ForcedMate = 0
    """Mates at once, or begins a mate that is known."""
    PromotionToQueen = 1
    """A pawn becomes a queen, by a capture too."""
    WinningCapture = 2
    """A capture whose exchange wins more than the threshold."""
    KillerMove1 = 3
    """The first killer."""
    KillerMove2 = 4
    """The second killer."""
    EqualCapture = 5
    """A capture whose exchange is even, to within the threshold."""
    Check = 6
    """A quiet move that gives check."""
    HistoryHeuristic = 7
    """A quiet move with a high history score."""
    OtherQuiet = 8
    """Any other quiet move."""
    LosingCapture = 9
    """A capture whose exchange loses more than the threshold."""


#: By number, which is faster than calling the class.
_CATEGORIES = tuple(MoveCategory)


def see(state: Any, action: Any, values: Sequence[int] = SEE_VALUES) -> int:
    """Static exchange evaluation: the centipawns that a legal move wins for its mover by captures on its target square.

    After the move, both sides may go on capturing on that square, with any piece that may legally do so, or stop; each
    does what is best for it. A promotion counts for what it adds. A quiet move wins 0, or loses what it puts there.
    `values` are those of pawn, knight, bishop, rook and queen.
    """
    chess = to_chess(state)
    if not validation.is_listed(values):
        raise InvalidArgumentError(f"values must be a list of numbers, not {validation.shown(values)}")
    worth = [validation.whole_number(value, f"values[{place}]", most=_MOST) for place, value in enumerate(values)]
    if len(worth) != len(SEE_VALUES):
        raise InvalidArgumentError(f"values has {len(worth)} numbers: it must be pawn, knight, bishop, rook, queen")
    if chess.is_terminal:
        raise GameOverError(f"the game is over in {chess.fen()!r}: there is no exchange")
    pawn, knight, bishop, rook, queen = worth
    return _core.see(chess, legal_action(chess, action, "action"), (pawn, knight, bishop, rook, queen))


def categorize(
    state: Any,
    killers: Sequence[Any] = (),
    history: Mapping[Any, float] | ArrayLike | None = None,
    see_threshold: int = 0,
    *,
    mate: Any = None,
) -> dict[Any, MoveCategory]:
    """The category of every legal move: `{action: MoveCategory}` (for a board of python-chess, `{chess.Move: ...}`).

    The first rule that fits gives it: mates at once, or is `mate`, a move known to begin a forced mate; promotion to a
    queen, by a capture too; captures, en passant and underpromotions by capture too, by their exchange (`see`): winning
    above `see_threshold` centipawns, equal within it on either side, losing below; first, second of `killers`; check;
    high history; the rest.

    A killer that is not legal here, or not quiet, does not count. `history` holds scores by action, as a mapping or as
    an array over all 4672. A score is high if it is above 0 and at least half of the highest among the quiet moves here
    (those that neither capture nor promote to a queen).
    """
    chess, answer = to_chess_and_answer(state)
    threshold = validation.whole_number(see_threshold, "see_threshold", most=_MOST)
    first, second = _killers(chess, killers)
    # The answer of `mate_search` will do: it knows its first move, or none.
    mate = mate.action if isinstance(mate, MateAnswer) else mate
    known = None if mate is None else legal_action(chess, mate, "mate")
    found = _core.categorize(chess, known, (first, second), _history(chess, history), threshold)
    return {answer(action): _CATEGORIES[category] for action, category in found}


def _killers(chess: _core.Chess, killers: Any) -> tuple[int | None, int | None]:
    try:
        given = list(killers)
    except MemoryError:
        raise
    except Exception as error:  # of its own __len__ or __iter__
        raise InvalidArgumentError(
            f"killers must be a list of at most two moves, not {validation.shown(killers)}"
        ) from error
    if len(given) > 2:
        raise InvalidArgumentError(f"killers has {len(given)} moves: two are the most")
    numbers = [None if k is None else any_action(chess, k, f"killers[{place}]") for place, k in enumerate(given)]
    first, second = [*numbers, None, None][:2]
    return first, second


def _history(chess: _core.Chess, history: Any) -> dict[int, float]:
    """The scores of the legal moves that have one."""
    if history is None:
        return {}
    legal = chess.legal_actions()
    if isinstance(history, Mapping):
        named = {any_action(chess, action, "history's key"): score for action, score in history.items()}
        return {action: validation.number(named[action], f"history[{action}]") for action in legal if action in named}
    try:
        scores = np.asarray(history, dtype=np.float64)
    except MemoryError:
        raise
    except Exception as error:  # of its own conversions, or numbers that no float can hold
        raise InvalidArgumentError("history must be a mapping from actions to scores, or an array of scores") from error
    if scores.shape != (NUM_ACTIONS,):
        raise InvalidArgumentError(f"history has the shape {scores.shape}: an array must be ({NUM_ACTIONS},)")
    return {action: validation.number(scores[action], f"history[{action}]") for action in legal}


_FORMAT = "pondertree move scores"


class MoveScores:
    """A score for each legal move of a position, by its features: `exp(score)` multiplies the prior of the move.

    A feature is a piece on the square it leaves or goes to, in middlegame or endgame; what a piece takes, how safe it
    was and will be; a check, an attack, a recapture, a passed pawn's step. Without `weights`, given in thousandths, the
    scores are those that were learned from searches (docs/hybrid.md).
    """

    def __init__(self, weights: Sequence[int] | None = None) -> None:
        try:
            numbers = None if weights is None else [int(weight) for weight in weights]
            array("i", numbers or ())  # numbers that the engine cannot hold
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgumentError("weights must be a list of whole numbers, thousandths of a score") from None
        self.compiled = MoveWeights(numbers)
        """The weights as the engine holds them."""
        self._is_learned = weights is None

    @property
    def weights(self) -> list[int]:
        """By feature, in thousandths."""
        return self.compiled.weights

    def factors(self, state: Any, see_threshold: int = 0) -> dict[Any, float]:
        """What the prior of each legal move is multiplied by: by action, or for a board by `chess.Move`."""
        chess, answer = to_chess_and_answer(state)
        return {answer(action): factor for action, factor in self.compiled.factors(chess, see_threshold)}

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Writes the weights as JSON."""
        text = json.dumps({"format": _FORMAT, "weights": self.weights})
        write_bytes(path, f"{text}\n".encode(), "path")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Weights that `to_file` wrote."""
        with reading(path, "a file of move scores") as file:
            found = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or current_format(found.get("format")) != _FORMAT:
                raise InvalidArgumentError(f'it holds no move scores: its "format" must be "{_FORMAT}"')
            return cls(list(found.get("weights", ())))  # None would be those that were learned

    def __eq__(self, other: object) -> bool:
        return self.weights == other.weights if isinstance(other, MoveScores) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.weights))

    def __repr__(self) -> str:
        return "MoveScores()" if self._is_learned else f"MoveScores(<{len(self.weights)} weights>)"

    def __reduce__(self) -> tuple[Any, ...]:
        return MoveScores, (None if self._is_learned else self.weights,)
