"""`MoveScores`: how promising a move looks before it is tried, as a sum of weights of what can be told of it."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Sequence
from typing import Any, Self

from pondertree._core import MoveWeights
from pondertree.chess.position import open_position
from pondertree.errors import InvalidArgumentError
from pondertree.files import current_format, reading, write_bytes

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
        chess, answer = open_position(state)
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
