"""The AlphaZero specification's search by its own name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import check
from pondertree.chess.network import ChessNN
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.protocol import as_evaluator
from pondertree.game import GameInfo
from pondertree.options import bounded_float, one_of, option, preset, simulations
from pondertree.presets.alphazero import AlphaZero, PuctSearch, concentration, first_play_urgency
from pondertree.settings import Settings


@AlphaZero.register  # the same search with the same options, the first of them under another name
@preset
class MCTS(PuctSearch):
    """`AlphaZero` under the specification's names and defaults, for a `ChessGame`, a `chess.Board` or a state.

    `neural_network` is a `ChessNN`, or any evaluator. `search(game)` gives the move, `get_policy(game)` the move
    and the visit shares over the 4672 moves; both leave the game as it is, and raise ValueError if it is over.

    Unlike in `AlphaZero`, `solve` is False unless it is given: with proven results the policy of a won position has all
    its weight on a shortest win, and a move proven to lose has none, which is no share of visits any more.
    """

    neural_network: Any = field(metadata={"check": as_evaluator})
    num_simulations: int | Sequence[int] | None = simulations(100)
    c_puct: float = option(1.0, bounded_float(0.0))
    dirichlet_alpha: float | tuple[str, float] = option(0.3, concentration)
    dirichlet_epsilon: float = option(0.25, bounded_float(0.0, 1.0))
    _: KW_ONLY
    fpu: float | tuple[str, float] = option(0.0, first_play_urgency)
    parent_visits: str = option("node", one_of("node", "edges"))
    forced_playouts: float = option(0.0, bounded_float(0.0))
    solve: bool = option(False, check.flag)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.evaluator = self.neural_network

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
