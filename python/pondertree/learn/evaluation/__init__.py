"""Strength of players and its report: matches against anchor opponents, Elo, exact play, metrics, plots, progress.

The names below need no PyTorch; `player_evaluation` and `async_evaluation` do.
"""

from pondertree.learn.evaluation.exact_play import (
    ExactPosition,
    share_of_value_keeping_moves,
    value_keeping_positions,
)
from pondertree.learn.evaluation.metrics import read_metrics
from pondertree.learn.evaluation.progress import LineWatcher, PanelWatcher, Status, Watcher
from pondertree.learn.evaluation.report import write_report

__all__ = [
    "ExactPosition",
    "LineWatcher",
    "PanelWatcher",
    "Status",
    "Watcher",
    "read_metrics",
    "share_of_value_keeping_moves",
    "value_keeping_positions",
    "write_report",
]
