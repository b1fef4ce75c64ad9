"""Strength of players: matches against anchor opponents, Elo, exact play, and the metrics file.

`AsyncEvaluation` and `PlayerEvaluator` need PyTorch and are imported on first access.
"""

from typing import TYPE_CHECKING

from pondertree.learn.evaluation.arena import (
    REFERENCE_PLAYERS,
    EvaluationGame,
    games_path,
    play_episodes,
    read_games,
    search_player,
)
from pondertree.learn.evaluation.exact_play import ExactPosition, share_of_value_keeping_moves, value_keeping_positions
from pondertree.learn.evaluation.ladder import check_opponents, opponents_of
from pondertree.learn.evaluation.metrics import Metrics, read_metrics
from pondertree.learn.evaluation.ratings import games_of, interval, mean_interval, rating_of
from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.learn.evaluation.player_evaluation import (
        AsyncEvaluation,
        CompletedEvaluation,
        PlayerEvaluator,
        earlier_player,
    )

__all__ = [
    "AsyncEvaluation",
    "CompletedEvaluation",
    "EvaluationGame",
    "ExactPosition",
    "Metrics",
    "PlayerEvaluator",
    "REFERENCE_PLAYERS",
    "check_opponents",
    "earlier_player",
    "games_of",
    "games_path",
    "interval",
    "mean_interval",
    "opponents_of",
    "play_episodes",
    "rating_of",
    "read_games",
    "read_metrics",
    "search_player",
    "share_of_value_keeping_moves",
    "value_keeping_positions",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "player_evaluation": ["AsyncEvaluation", "CompletedEvaluation", "PlayerEvaluator", "earlier_player"],
    },
)
