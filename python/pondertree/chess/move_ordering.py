"""Move ordering: static exchange evaluation, the ten move categories (hybrid chess, 4.1), learned move scores."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pondertree import validation
from pondertree._core import Chess, MoveWeights
from pondertree._core import categorize as engine_categorize
from pondertree._core import see as engine_see
from pondertree.chess.config import MoveCategory
from pondertree.chess.mate import MateAnswer
from pondertree.errors import GameOverError, InvalidArgumentError
from pondertree.files import current_format, reading, write_bytes
from pondertree.games.chess_interop import NUM_ACTIONS, adapt_chess_state, any_action, legal_action, to_chess

#: Default piece values of SEE in centipawns: pawn, knight, bishop, rook, queen.
SEE_VALUES = (100, 320, 330, 500, 900)

#: Maximum of piece values and thresholds.
_MAX_CENTIPAWNS = 20_000


#: Categories by number: faster than calling the enum.
_CATEGORIES = tuple(MoveCategory)


def see(state: Any, action: Any, values: Sequence[int] = SEE_VALUES) -> int:
    """Static exchange evaluation: the material balance in centipawns, for the mover, of the capture sequence that a
    legal move starts on its target square.

    After the move either side may recapture there with any legal capture, or stop; both play optimally. A promotion
    adds the difference in value. `values` are those of pawn, knight, bishop, rook and queen.
    """
    chess = to_chess(state)
    if not validation.is_listed(values):
        raise InvalidArgumentError(f"values must be a list of numbers, not {validation.shown(values)}")
    worth = [
        validation.whole_number(value, f"values[{place}]", most=_MAX_CENTIPAWNS) for place, value in enumerate(values)
    ]
    if len(worth) != len(SEE_VALUES):
        raise InvalidArgumentError(f"values has {len(worth)} numbers: it must be pawn, knight, bishop, rook, queen")
    if chess.is_terminal:
        raise GameOverError(f"the game is over in {chess.fen()!r}: there is no exchange")
    pawn, knight, bishop, rook, queen = worth
    return engine_see(chess, legal_action(chess, action, "action"), (pawn, knight, bishop, rook, queen))


def categorize(
    state: Any,
    killers: Sequence[Any] = (),
    history: Mapping[Any, float] | ArrayLike | None = None,
    see_threshold: int = 0,
    *,
    mate: Any = None,
) -> dict[Any, MoveCategory]:
    """Returns the category of every legal move: `{action: MoveCategory}`, or `{chess.Move: ...}` for a board.

    The first rule that holds decides: checkmate, or `mate`, the first move of a known forced mate; promotion to a
    queen; captures (en passant and capturing underpromotions included) by `see`: above `see_threshold` centipawns,
    within it, below it; first, second of `killers`; check; high history score; the rest.

    Killer moves that are not legal or not quiet are ignored. `history` is the history table, as a mapping from actions
    or an array [4672]. A score is high if it is positive and at least half of the highest among the quiet moves (those
    that neither capture nor promote to a queen).
    """
    chess, answer = adapt_chess_state(state)
    threshold = validation.whole_number(see_threshold, "see_threshold", most=_MAX_CENTIPAWNS)
    first, second = _killers(chess, killers)
    mate = mate.action if isinstance(mate, MateAnswer) else mate
    known = None if mate is None else legal_action(chess, mate, "mate")
    found = engine_categorize(chess, known, (first, second), _history(chess, history), threshold)
    return {answer(action): _CATEGORIES[category] for action, category in found}


def _killers(chess: Chess, killers: Any) -> tuple[int | None, int | None]:
    try:
        given = list(killers)
    except MemoryError:
        raise
    except Exception as error:  # raised by a custom __len__ or __iter__
        raise InvalidArgumentError(
            f"killers must be a list of at most two moves, not {validation.shown(killers)}"
        ) from error
    if len(given) > 2:
        raise InvalidArgumentError(f"killers has {len(given)} moves: at most two")
    numbers = [None if k is None else any_action(chess, k, f"killers[{place}]") for place, k in enumerate(given)]
    first, second = [*numbers, None, None][:2]
    return first, second


def _history(chess: Chess, history: Any) -> dict[int, float]:
    """The history scores of the legal moves."""
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
    except Exception as error:  # raised by a custom conversion, or a float overflow
        raise InvalidArgumentError("history must be a mapping from actions to scores, or an array of scores") from error
    if scores.shape != (NUM_ACTIONS,):
        raise InvalidArgumentError(f"history has the shape {scores.shape}: an array must be ({NUM_ACTIONS},)")
    return {action: validation.number(scores[action], f"history[{action}]") for action in legal}


_FORMAT = "pondertree move scores"


class MoveScores:
    """A linear model of move quality: `exp(score)` multiplies the prior of a move.

    Features: piece on its origin and target square, tapered from middlegame to endgame; captured piece and safety of
    both squares; checks, attacks, recaptures, steps of passed pawns. `weights` are in thousandths; the default weights
    were learned from searches (docs/hybrid.md).
    """

    def __init__(self, weights: Sequence[int] | None = None) -> None:
        try:
            numbers = None if weights is None else [int(weight) for weight in weights]
            array("i", numbers or ())  # raises OverflowError beyond 32 bits
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgumentError("weights must be a list of whole numbers, thousandths of a score") from None
        self.compiled = MoveWeights(numbers)
        """The engine's copy of the weights."""
        self._is_learned = weights is None

    @property
    def weights(self) -> list[int]:
        """Weights by feature, in thousandths."""
        return self.compiled.weights

    def factors(self, state: Any, see_threshold: int = 0) -> dict[Any, float]:
        """Returns the prior multiplier of each legal move, by action, or by `chess.Move` for a board."""
        chess, answer = adapt_chess_state(state)
        return {answer(action): factor for action, factor in self.compiled.factors(chess, see_threshold)}

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Writes the weights as JSON."""
        text = json.dumps({"format": _FORMAT, "weights": self.weights})
        write_bytes(path, f"{text}\n".encode(), "path")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Reads weights written by `to_file`."""
        with reading(path, "a file of move scores") as file:
            found = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or current_format(found.get("format")) != _FORMAT:
                raise InvalidArgumentError(f'its "format" must be "{_FORMAT}"')
            return cls(list(found.get("weights", ())))  # None would select the learned ones

    def __eq__(self, other: object) -> bool:
        return self.weights == other.weights if isinstance(other, MoveScores) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.weights))

    def __repr__(self) -> str:
        return "MoveScores()" if self._is_learned else f"MoveScores(<{len(self.weights)} weights>)"

    def __reduce__(self) -> tuple[Any, ...]:
        return MoveScores, (None if self._is_learned else self.weights,)
