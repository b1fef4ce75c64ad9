"""Seed 0's search by its own name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree.chess.network import ChessNN
from pondertree.game import GameInfo
from pondertree.presets import AlphaZero
from pondertree.settings import Settings


class MCTS(AlphaZero):
    """`AlphaZero` under seed 0's names and defaults; a position may be a `ChessGame`, a `chess.Board` or a state.

    `neural_network` is a `ChessNN`, or any evaluator. `search(game)` gives the move, `get_policy(game)` the move
    and the visit shares over the 4672 moves; both leave the game as it is, and raise ValueError if it is over.
    """

    def __init__(
        self,
        neural_network: Any,
        num_simulations: int | Sequence[int] | None = None,
        c_puct: float = 1.0,
        dirichlet_alpha: float | tuple[str, float] = 0.3,
        dirichlet_epsilon: float = 0.25,
        **shared: Any,
    ) -> None:
        super().__init__(neural_network, num_simulations, c_puct, dirichlet_alpha, dirichlet_epsilon, **shared)

    @property
    def neural_network(self) -> Any:
        """What values the leaves."""
        return self.evaluator

    def settings(self, info: GameInfo) -> Settings:
        """As AlphaZero's; a network that is not built is refused before anything is searched."""
        if isinstance(self.evaluator, ChessNN):
            self.evaluator.require_built()
        return super().settings(info)
