"""Ponderosa: Monte Carlo tree search, one compiled engine for many searches.

For example, to see which moves of Connect 4 a search has looked at:

    import ponderosa
    from ponderosa.games import ConnectFour

    print(ponderosa.UCT(num_simulations=10_000).run(ConnectFour()).root.to_text())
"""

from ponderosa import games
from ponderosa.errors import (
    EvaluationError,
    GameContractError,
    GameOverError,
    InvalidActionError,
    InvalidArgumentError,
    InvalidPositionError,
    MissingExtraError,
    PonderosaError,
    UsageError,
)
from ponderosa.evaluators.protocol import Evaluator
from ponderosa.forest import Forest, Tree
from ponderosa.game import Game
from ponderosa.node import Node
from ponderosa.playout import playout
from ponderosa.presets import UCT, AlphaZero
from ponderosa.result import SearchResult

__version__ = "0.1.0"

__all__ = [
    "UCT",
    "AlphaZero",
    "EvaluationError",
    "Evaluator",
    "Forest",
    "Game",
    "GameContractError",
    "GameOverError",
    "InvalidActionError",
    "InvalidArgumentError",
    "InvalidPositionError",
    "MissingExtraError",
    "Node",
    "PonderosaError",
    "SearchResult",
    "Tree",
    "UsageError",
    "__version__",
    "games",
    "playout",
]
