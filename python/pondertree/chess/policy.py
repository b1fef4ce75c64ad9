"""The hybrid specification's `PolicyNetwork`: priors of moves and a value; `PestoPolicy` needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Chess
from pondertree.chess.pesto import Pesto
from pondertree.errors import EvaluationError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.games.chess_interop import NUM_ACTIONS, legal_action, to_chess_and_answer

#: Priors are kept as float32.
_LARGEST_PRIOR = float(np.finfo(np.float32).max)


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
            raise InvalidArgumentError(f"pesto must be a Pesto, not {validation.shown(pesto)}")
        self.pesto = Pesto() if pesto is None else pesto
        self.quiescence = validation.flag(quiescence, "quiescence")

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        """({move: prior}, value from 0 to 1 for the player to move)."""
        chess, answer = to_chess_and_answer(state)
        if chess.is_terminal:
            return {}, (chess.returns()[chess.to_play] + 1.0) / 2.0
        legal = chess.legal_actions()
        value = self.pesto.compiled.value(chess, self.quiescence)
        return {answer(action): 1.0 / len(legal) for action in legal}, (value + 1.0) / 2.0

    def __repr__(self) -> str:
        return f"PestoPolicy({self.pesto!r}, quiescence={self.quiescence})"


def is_evaluator(network: Any) -> bool:
    """Whether it is asked in batches, as evaluators are (a `ChessNN` is one), and not as a `PolicyNetwork`."""
    return any(hasattr(network, form) for form in ("evaluate_states", "evaluate_packed"))


class PolicyEvaluator:
    """A `PolicyNetwork` in the form in which searches ask: probabilities of all moves, values from -1 to 1.

    A legal move that it does not name has the prior 0; one that is not legal is refused.
    """

    policy = "probabilities"

    def __init__(self, network: PolicyNetwork) -> None:
        self.network = network

    def evaluate_states(self, states: Sequence[Chess]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """(priors [B, 4672], values [B] for the player to move)."""
        priors = np.zeros((len(states), NUM_ACTIONS), dtype=np.float32)
        values = np.zeros(len(states))
        for row, state in enumerate(states):
            values[row] = self._one(state, priors[row])
        return priors, values

    def _one(self, state: Chess, priors: NDArray[np.float32]) -> float:
        """Writes the priors of one state; its value."""
        name = type(self.network).__name__
        try:
            answer = self.network.evaluate(state)
        except UsageError:
            # It has entered the search that asks it: its own words are clearer.
            raise
        except Exception as error:
            raise EvaluationError(
                f"{name}.evaluate raised {type(error).__name__} at {state.fen()!r}: {error}"
            ) from error
        try:
            moves, value = answer
            value = _number(value)
            pairs = [(move, _number(prior)) for move, prior in _items(moves)]
        except (TypeError, ValueError) as error:
            raise EvaluationError(
                f"{name}.evaluate must give ({{move: prior}}, value), not {validation.shown(answer, 80)}, "
                f"at {state.fen()!r}: {error}"
            ) from None
        if not 0.0 <= value <= 1.0:
            raise EvaluationError(f"{name}.evaluate gave the value {value} at {state.fen()!r}: it must be from 0 to 1")
        named: set[int] = set()
        for move, prior in pairs:
            if not 0.0 <= prior <= _LARGEST_PRIOR:  # a NaN is not, either
                raise EvaluationError(
                    f"{name}.evaluate gave the prior {prior} for {move!r} at {state.fen()!r}: "
                    f"priors are from 0 to {_LARGEST_PRIOR:.4g}"
                )
            try:
                action = state.parse_action(move) if isinstance(move, str) else legal_action(state, move, "move")
            except PondertreeError as error:
                raise EvaluationError(
                    f"{name}.evaluate gave a prior for {move!r} at {state.fen()!r}, which is not legal there: {error}"
                ) from None
            if action in named:
                raise EvaluationError(f"{name}.evaluate gave two priors for {move!r} at {state.fen()!r}: give one")
            named.add(action)
            priors[action] = prior
        return 2.0 * value - 1.0


def _number(given: Any) -> float:
    if isinstance(given, (bool, str)):
        raise TypeError(f"{validation.shown(given)} is not a number")
    return float(given)


def _items(moves: Any) -> list[tuple[Any, Any]]:
    if not isinstance(moves, Mapping):
        raise TypeError("the priors must be a dict")
    return list(moves.items())
