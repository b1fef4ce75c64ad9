"""Ponderosa: Monte Carlo tree search, one compiled engine for many searches.

For example, to see which moves of Connect 4 a search has looked at:

    import ponderosa
    from ponderosa.games import ConnectFour

    print(ponderosa.UCT(num_simulations=10_000).run(ConnectFour()).root.to_text())
"""

from typing import TYPE_CHECKING, Any

from ponderosa import games
from ponderosa.errors import (
    EvaluationError,
    GameContractError,
    GameOverError,
    InvalidActionError,
    InvalidArgumentError,
    InvalidPositionError,
    MissingExtraError,
    PlayerError,
    PonderosaError,
    StorageError,
    TrainingError,
    UnsolvedError,
    UsageError,
)
from ponderosa.evaluators.protocol import Evaluator
from ponderosa.forest import Forest, Tree
from ponderosa.game import Game
from ponderosa.node import Node
from ponderosa.playout import playout
from ponderosa.presets import UCT, AlphaZero, Gumbel, Hybrid, MuZero
from ponderosa.result import SearchResult
from ponderosa.schedule import Temperature

if TYPE_CHECKING:
    from ponderosa import chess, learn, match, models
    from ponderosa.door_muzero import select_action
    from ponderosa.learn.load import load
    from ponderosa.reference.muzero import MCTSConfig, MuZeroConfig

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
    "Gumbel",
    "Hybrid",
    "InvalidActionError",
    "InvalidArgumentError",
    "InvalidPositionError",
    "MCTSConfig",
    "MissingExtraError",
    "MuZero",
    "MuZeroConfig",
    "Node",
    "PlayerError",
    "PonderosaError",
    "SearchResult",
    "StorageError",
    "Temperature",
    "TrainingError",
    "Tree",
    "UnsolvedError",
    "UsageError",
    "__version__",
    "chess",
    "games",
    "learn",
    "load",
    "match",
    "models",
    "playout",
    "select_action",
]


#: What is loaded when it is first asked for: modules, and names with the module they live in.
_LATER = {
    "chess": None,
    "learn": None,
    "load": "learn.load",
    "match": None,
    "models": None,
    "MCTSConfig": "reference.muzero",
    "MuZeroConfig": "reference.muzero",
    "select_action": "door_muzero",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'ponderosa' has no attribute {name!r}")
    from importlib import import_module

    module = _LATER[name]
    found = import_module(f"ponderosa.{module or name}")
    return found if module is None else getattr(found, name)
