"""Searches of every preset whose evaluator or model is as it is, or all coroutine functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.support.models import TableModel
from tests.support.search_helpers import PythonGame, hashed_value

import pondertree
from pondertree.evaluators import Cached, Symmetric, symmetries_of
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe


def workers() -> list[threading.Thread]:
    """Returns the threads of asynchronous searches."""
    return [thread for thread in threading.enumerate() if thread.name == "pondertree"]


class Outputs:
    """Pseudorandom logits and values of observations, whose sums are exact in any order."""

    def __init__(self, actions: int = 9) -> None:
        self.actions = actions

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        values = np.array([round(64 * hashed_value(row)) / 64 for row in observations])
        return np.outer(values * 64, np.arange(1, self.actions + 1)) % 7, values


class StateOutputs:
    """The same outputs of states."""

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        return Outputs().evaluate([state.observation() for state in states])


class Coroutines:
    """The methods of an evaluator or a model as coroutine functions; counts the calls that run at once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.busy = self.most_busy = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._inner, name)

        async def call(*arguments: Any) -> Any:
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
            try:
                await asyncio.sleep(0)
                return method(*arguments)
            finally:
                self.busy -= 1

        return call


Wrap = Callable[[Any], Any]


def symmetric(evaluator: Any) -> Any:
    return Cached(Symmetric(evaluator, symmetries_of("tictactoe")))


#: Searches with an evaluator or model as it is, or as coroutines, and the game.
PRESETS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "UCT": (lambda wrap, **options: pondertree.UCT(**options), ConnectFour),
    "UCT, evaluator": (lambda wrap, **options: pondertree.UCT(evaluator=wrap(Outputs(65)), **options), Othello),
    "UCT, truncated playouts": (
        lambda wrap, **options: pondertree.UCT(evaluator=wrap(Outputs()), max_depth=3, **options),
        lambda: PythonGame(TicTacToe()),
    ),
    "AlphaZero": (lambda wrap, **options: pondertree.AlphaZero(wrap(Outputs()), **options), TicTacToe),
    "AlphaZero, states": (
        lambda wrap, **options: pondertree.AlphaZero(wrap(StateOutputs()), **options),
        lambda: PythonGame(TicTacToe()),
    ),
    "AlphaZero, wrappers": (
        lambda wrap, **options: pondertree.AlphaZero(symmetric(wrap(Outputs())), **options),
        TicTacToe,
    ),
    "Gumbel": (lambda wrap, **options: pondertree.Gumbel(wrap(Outputs()), **options), TicTacToe),
    "Gumbel, model": (lambda wrap, **options: pondertree.Gumbel(model=wrap(TableModel(9)), **options), TicTacToe),
    "MuZero": (lambda wrap, **options: pondertree.MuZero(wrap(TableModel(9)), **options), TicTacToe),
    "Hybrid": (lambda wrap, **options: pondertree.Hybrid(**options), Chess),
    "Hybrid, evaluator": (lambda wrap, **options: pondertree.Hybrid(wrap(Outputs(4672)), **options), Chess),
}
