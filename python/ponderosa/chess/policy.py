"""Seed 4's `PolicyNetwork`: priors of moves and a value in one answer; and the one that needs no network."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ponderosa import check
from ponderosa.chess.pesto import Pesto
from ponderosa.chess.position import open_position
from ponderosa.errors import InvalidArgumentError


@runtime_checkable
class PolicyNetwork(Protocol):
    """Says how likely each move is, and what the position is worth."""

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        """({move: prior}, value from 0 to 1 for the player to move)."""
        ...


class PestoPolicy:
    """Every legal move has the prior 1/N; the value is the sigmoid of PeSTO's score, from 0 (lost) to 1 (won).

    Moves are the actions of a `Chess` state, and `chess.Move` for a board of python-chess. In a game that is over there
    are no moves, and the value is the result. With `quiescence`, the score is the one after the captures.
    """

    def __init__(self, pesto: Pesto | None = None, *, quiescence: bool = False) -> None:
        if pesto is not None and not isinstance(pesto, Pesto):
            raise InvalidArgumentError(f"pesto must be a Pesto, not {pesto!r}")
        self.pesto = Pesto() if pesto is None else pesto
        self.quiescence = check.flag(quiescence, "quiescence")

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        """({move: prior}, value from 0 to 1 for the player to move)."""
        chess, answer = open_position(state)
        if chess.is_terminal:
            return {}, (chess.returns()[chess.to_play] + 1.0) / 2.0
        legal = chess.legal_actions()
        value = self.pesto.compiled.value(chess, self.quiescence)
        return {answer(action): 1.0 / len(legal) for action in legal}, (value + 1.0) / 2.0

    def __repr__(self) -> str:
        return f"PestoPolicy({self.pesto!r}, quiescence={self.quiescence})"
