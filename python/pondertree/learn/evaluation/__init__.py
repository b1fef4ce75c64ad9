"""Strength of players: matches against anchor opponents, Elo, exact play, and the metrics file.

The names below need no PyTorch; `player_evaluation` and `async_evaluation` do.
"""

from pondertree.learn.evaluation.exact_play import (
    ExactPosition,
    share_of_value_keeping_moves,
    value_keeping_positions,
)
from pondertree.learn.evaluation.metrics import read_metrics

__all__ = ["ExactPosition", "read_metrics", "share_of_value_keeping_moves", "value_keeping_positions"]
