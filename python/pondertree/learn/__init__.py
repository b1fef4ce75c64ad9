"""Training by self-play: `train(config)` makes a player from nothing but the rules of a game.

    from pondertree.learn import default_config, train

    train(default_config("connect4", out="runs/connect4", minutes=30))

Needs PyTorch (`pip install ".[train]"`), which is imported on first use of `train`.
"""

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.learn.config import (
        Config,
        EvaluationConfig,
        LatentModelConfig,
        LearnerConfig,
        NetworkConfig,
        ReplayConfig,
        SelfPlayConfig,
        default_config,
        read_config,
        text_of_config,
    )
    from pondertree.learn.data import list_shards, read_shard
    from pondertree.learn.evaluation import share_of_value_keeping_moves, value_keeping_positions
    from pondertree.learn.executors import Executor, InProcessExecutor, ProcessExecutor, RayExecutor
    from pondertree.learn.loop import TrainingResult, relearn, train
    from pondertree.learn.report import Watcher

__all__ = [
    "Config",
    "EvaluationConfig",
    "Executor",
    "InProcessExecutor",
    "LatentModelConfig",
    "LearnerConfig",
    "NetworkConfig",
    "ProcessExecutor",
    "RayExecutor",
    "ReplayConfig",
    "SelfPlayConfig",
    "TrainingResult",
    "Watcher",
    "default_config",
    "list_shards",
    "read_config",
    "read_shard",
    "relearn",
    "share_of_value_keeping_moves",
    "text_of_config",
    "train",
    "value_keeping_positions",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "config": [name for name in __all__ if "Config" in name or "config" in name],
        "data": ["list_shards", "read_shard"],
        "evaluation": ["share_of_value_keeping_moves", "value_keeping_positions"],
        "executors": [name for name in __all__ if "Executor" in name],
        "loop": ["TrainingResult", "relearn", "train"],
        "report": ["Watcher"],
    },
)
