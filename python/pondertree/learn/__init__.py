"""Learning by self-play: `train(config)` makes a player out of nothing but the rules of a game.

    from pondertree.learn import default_config, train

    train(default_config("connect4", out="runs/connect4", minutes=30))

Needs PyTorch (`pip install ".[train]"`), which is imported when something here is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pondertree.learn.config.defaults import default_config
    from pondertree.learn.config.schema import Config, read_config, text_of_config
    from pondertree.learn.config.sections import (
        EvaluationConfig,
        LearnerConfig,
        MuZeroConfig,
        NetworkConfig,
        ReplayConfig,
        SelfPlayConfig,
    )
    from pondertree.learn.data.shards import list_shards, read_shard
    from pondertree.learn.evaluation.exact_play import share_of_value_keeping_moves, value_keeping_positions
    from pondertree.learn.evaluation.progress import Watcher
    from pondertree.learn.loop.train import TrainingResult, train

__all__ = [
    "Config",
    "EvaluationConfig",
    "LearnerConfig",
    "MuZeroConfig",
    "NetworkConfig",
    "ReplayConfig",
    "SelfPlayConfig",
    "TrainingResult",
    "Watcher",
    "default_config",
    "list_shards",
    "read_config",
    "read_shard",
    "share_of_value_keeping_moves",
    "text_of_config",
    "train",
    "value_keeping_positions",
]

_WHERE = {
    "Config": "config.schema",
    "default_config": "config.defaults",
    "read_config": "config.schema",
    "text_of_config": "config.schema",
    "train": "loop.train",
    "TrainingResult": "loop.train",
    "Watcher": "evaluation.progress",
    "list_shards": "data.shards",
    "read_shard": "data.shards",
    "share_of_value_keeping_moves": "evaluation.exact_play",
    "value_keeping_positions": "evaluation.exact_play",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pondertree.learn' has no attribute {name!r}")
    where = _WHERE.get(name, "config.sections")
    if where == "loop.train":
        from pondertree.optional import require

        require("torch", "train", "learning")
        require("safetensors", "train", "learning")
    return getattr(import_module(f"pondertree.learn.{where}"), name)
