"""`PolicyNetwork`, the evaluator interface of the hybrid chess specification, and its implementation by `Pesto`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Chess
from pondertree.chess.pesto import Pesto
from pondertree.errors import EvaluationError, PondertreeError, UsageError
from pondertree.evaluators.awaiting import awaited
from pondertree.games.chess_interop import NUM_ACTIONS, adapt_chess_state, legal_action

#: Priors are stored as float32.
_LARGEST_PRIOR = float(np.finfo(np.float32).max)


@runtime_checkable
class PolicyNetwork(Protocol):
    """Evaluates a position: priors of moves and a value."""

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        """Returns ({move: prior}, value in [0, 1] for the player to move)."""
        ...


class PestoPolicy:
    """Uniform priors, and the sigmoid of PeSTO's score as the value, from 0 (lost) to 1 (won).

    Moves are the actions of a `Chess` state, and `chess.Move` for a python-chess board. At the end of the game there
    are no moves, and the value is the result. With `quiescence` the score is that of a quiescence search.
    """

    def __init__(self, pesto: Pesto | None = None, *, quiescence: bool = False) -> None:
        self.pesto = Pesto() if pesto is None else validation.instance(pesto, Pesto, "pesto")
        self.quiescence = validation.flag(quiescence, "quiescence")

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        """Returns ({move: prior}, value in [0, 1] for the player to move)."""
        chess, answer = adapt_chess_state(state)
        if chess.is_terminal:
            return {}, (chess.returns()[chess.to_play] + 1.0) / 2.0
        legal = chess.legal_actions()
        value = self.pesto.compiled.value(chess, self.quiescence)
        return {answer(action): 1.0 / len(legal) for action in legal}, (value + 1.0) / 2.0

    def __repr__(self) -> str:
        return f"PestoPolicy({self.pesto!r}, quiescence={self.quiescence})"


def is_evaluator(network: Any) -> bool:
    """Whether an object is an evaluator (batched, such as a `ChessNN`) and not a `PolicyNetwork`."""
    return any(hasattr(network, form) for form in ("evaluate_states", "evaluate_packed"))


class PolicyEvaluator:
    """Adapts a `PolicyNetwork` to the evaluator interface: probabilities of all moves, values in [-1, 1].

    Legal moves without a prior get 0; illegal moves raise an EvaluationError.
    """

    policy = "probabilities"

    def __init__(self, network: PolicyNetwork) -> None:
        self.network = network

    def evaluate_states(self, states: Sequence[Chess]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Returns (priors [B, 4672], values [B] for the player to move)."""
        priors = np.zeros((len(states), NUM_ACTIONS), dtype=np.float32)
        values = np.zeros(len(states))
        for row, state in enumerate(states):
            values[row] = self._one(state, priors[row])
        return priors, values

    def _one(self, state: Chess, priors: NDArray[np.float32]) -> float:
        """Fills the priors of one state and returns its value."""
        name = type(self.network).__name__
        try:
            answer = awaited(self.network.evaluate, state)
        except UsageError:
            # Re-entry into the running search: that message is clearer.
            raise
        except Exception as error:
            raise EvaluationError(
                f"{name}.evaluate raised {type(error).__name__} at {state.fen()!r}: {error}"
            ) from error
        try:
            moves, value = answer
            value = _number(value)
            if not isinstance(moves, Mapping):
                raise TypeError("the priors must be a dict")
            pairs = [(move, _number(prior)) for move, prior in moves.items()]
        except (TypeError, ValueError) as error:
            raise EvaluationError(
                f"{name}.evaluate must give ({{move: prior}}, value), not {validation.shown(answer, 80)}, "
                f"at {state.fen()!r}: {error}"
            ) from None
        if not 0.0 <= value <= 1.0:
            raise EvaluationError(f"{name}.evaluate gave the value {value} at {state.fen()!r}: it must be from 0 to 1")
        named: set[int] = set()
        for move, prior in pairs:
            if not 0.0 <= prior <= _LARGEST_PRIOR:  # NaN fails as well
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
