"""Exact play, where a game has a solver: how often a player's moves keep the value of the game."""

from __future__ import annotations

import importlib.util
from typing import Any, Protocol

from ponderosa.learn.arena import BatchPlayer
from ponderosa.learn.game_spec import GameSpec


class Exam(Protocol):
    """Positions in which some moves are right and some are wrong."""

    def share(self, player: BatchPlayer) -> float:
        """The share of the positions in which the player's move is right."""
        ...


def exam_of(spec: GameSpec, count: int) -> Exam | None:
    """The positions of a game to be examined in; None where it has no solver."""
    if spec.info.name != "connect_four" or not spec.info.compiled:
        return None
    if importlib.util.find_spec("ponderosa.learn.connect_four_exact") is None:
        return None
    from ponderosa.learn import connect_four_exact

    return _ConnectFour(connect_four_exact, count)


class _ConnectFour:
    def __init__(self, solver: Any, count: int) -> None:
        self._solver = solver
        self._positions = solver.value_keeping_positions(count)

    def share(self, player: BatchPlayer) -> float:
        share = self._solver.share_of_value_keeping_moves(
            lambda states: player(states, list(range(len(states)))), self._positions
        )
        return float(share)
