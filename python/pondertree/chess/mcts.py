"""Seed 0's search by its own name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.chess.network import ChessNN
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.presets import AlphaZero
from pondertree.settings import Settings


class MCTS(AlphaZero):
    """`AlphaZero` under seed 0's names and defaults; a position may be a `ChessGame`, a `chess.Board` or a state.

    `neural_network` is a `ChessNN`, or any evaluator. `search(game)` gives the move, `get_policy(game)` the move
    and the visit shares over the 4672 moves; both leave the game as it is, and raise ValueError if it is over.

    Unlike in `AlphaZero`, `solve` is False unless it is given: with proven results the policy of a won position has all
    its weight on a shortest win, and a move proven to lose has none, which is no share of visits any more.
    """

    def __init__(
        self,
        neural_network: Any,
        num_simulations: int | Sequence[int] | None = None,
        c_puct: float = 1.0,
        dirichlet_alpha: float | tuple[str, float] = 0.3,
        dirichlet_epsilon: float = 0.25,
        *,
        solve: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(
            neural_network, num_simulations, c_puct, dirichlet_alpha, dirichlet_epsilon, solve=solve, **shared
        )

    @property
    def neural_network(self) -> Any:
        """What values the leaves."""
        return self.evaluator

    def search(  # type: ignore[override]  # the document's name for the position
        self, game: Any = None, temperature: float | None = 1.0, add_noise: bool | None = False, *, state: Any = None
    ) -> Any:
        """Runs the search and returns the selected move: a `chess.Move` for a `ChessGame` or a `chess.Board`, else an
        int. `state` is another name of `game`.
        """
        return super().search(_position(game, state), temperature, add_noise)

    def get_policy(  # type: ignore[override]  # the document's name for the position
        self, game: Any = None, temperature: float | None = 1.0, add_noise: bool | None = False, *, state: Any = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """Runs the search and returns the selected move and the share of visits of each of the 4672 moves.

        The shares do not depend on the temperature. `state` is another name of `game`.
        """
        return super().get_policy(_position(game, state), temperature, add_noise)

    def settings(self, info: GameInfo) -> Settings:
        """As AlphaZero's; a network that is not built is refused before anything is searched."""
        if isinstance(self.evaluator, ChessNN):
            self.evaluator.require_built()
        return super().settings(info)


def _position(game: Any, state: Any) -> Any:
    """The position given, under one name or the other."""
    if (game is None) == (state is None):
        raise InvalidArgumentError("give one position: game= (or state=, its name in other searches)")
    return state if game is None else game
