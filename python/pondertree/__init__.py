"""Pondertree: Monte Carlo tree search, one compiled engine for many searches.

For example, the most visited moves of Connect 4:

    import pondertree
    from pondertree.games import ConnectFour

    print(pondertree.UCT(num_simulations=10_000).run(ConnectFour()).root.to_text())
"""

from typing import TYPE_CHECKING

from pondertree import errors, evaluators, games
from pondertree.errors import (
    EvaluationError,
    GameContractError,
    GameOverError,
    InternalError,
    InvalidActionError,
    InvalidArgumentError,
    InvalidPositionError,
    MissingExtraError,
    MissingFileError,
    PlayerCountWarning,
    PlayerError,
    PondertreeError,
    RandomGeneratorInStateWarning,
    StorageError,
    TrainingError,
    UnfinishedPlayoutWarning,
    UnknownOptionError,
    UnsearchedWarning,
    UnsolvedError,
    UsageError,
)
from pondertree.evaluators.protocol import Evaluator
from pondertree.game import CHANCE, Game
from pondertree.games.batch_game import BatchGame
from pondertree.node import Node
from pondertree.optional import lazy_names
from pondertree.presets import UCT, AlphaZero, Gumbel, MuZero
from pondertree.result import SearchResult
from pondertree.search.arguments import Temperature
from pondertree.search.forest import Forest
from pondertree.search.saved_tree import load_tree
from pondertree.search.tree import Tree
from pondertree.specifications.uct import playout

if TYPE_CHECKING:
    from pondertree import chess, envs, learn, match, models, reference, testing, tune
    from pondertree.chess.hybrid import Hybrid
    from pondertree.models.players import MCTSConfig, MuZeroConfig
    from pondertree.networks import load
    from pondertree.specifications.muzero import select_action

__version__ = "0.1.0"

__all__ = [
    "CHANCE",
    "UCT",
    "AlphaZero",
    "BatchGame",
    "EvaluationError",
    "Evaluator",
    "Forest",
    "Game",
    "GameContractError",
    "GameOverError",
    "Gumbel",
    "Hybrid",
    "InternalError",
    "InvalidActionError",
    "InvalidArgumentError",
    "InvalidPositionError",
    "MCTSConfig",
    "MissingExtraError",
    "MissingFileError",
    "MuZero",
    "MuZeroConfig",
    "Node",
    "PlayerCountWarning",
    "PlayerError",
    "PondertreeError",
    "RandomGeneratorInStateWarning",
    "SearchResult",
    "StorageError",
    "Temperature",
    "TrainingError",
    "Tree",
    "UnfinishedPlayoutWarning",
    "UnknownOptionError",
    "UnsearchedWarning",
    "UnsolvedError",
    "UsageError",
    "__version__",
    "chess",
    "envs",
    "errors",
    "evaluators",
    "games",
    "learn",
    "load",
    "load_tree",
    "match",
    "models",
    "playout",
    "reference",
    "select_action",
    "testing",
    "tune",
]


#: Modules, and names with their module.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "": ["chess", "envs", "learn", "match", "models", "reference", "testing", "tune"],
        "chess.hybrid": ["Hybrid"],
        "models.players": ["MCTSConfig", "MuZeroConfig"],
        "networks": ["load"],
        "specifications.muzero": ["select_action"],
    },
)
