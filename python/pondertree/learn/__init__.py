"""Training by self-play: `train(config)` makes a player from nothing but the rules of a game.

    from pondertree.learn import default_config, train

    train(default_config("connect4", out="runs/connect4", minutes=30))

Needs PyTorch (`pip install ".[train]"`), which is imported on first use of `train`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pondertree.optional import require

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
    from pondertree.learn.data.shards import list_shards, read_shard
    from pondertree.learn.evaluation.exact_play import share_of_value_keeping_moves, value_keeping_positions
    from pondertree.learn.loop.train import TrainingResult, train
    from pondertree.learn.report.progress import Watcher

__all__ = [
    "Config",
    "EvaluationConfig",
    "LatentModelConfig",
    "LearnerConfig",
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

#: The modules of the lazily imported names; the others are in `config`.
_MODULES = {
    "train": "loop.train",
    "TrainingResult": "loop.train",
    "Watcher": "report.progress",
    "list_shards": "data.shards",
    "read_shard": "data.shards",
    "share_of_value_keeping_moves": "evaluation.exact_play",
    "value_keeping_positions": "evaluation.exact_play",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pondertree.learn' has no attribute {name!r}")
    module = _MODULES.get(name, "config")
    if module == "loop.train":
        require("torch", "train", "learning")
        require("safetensors", "train", "learning")
    return getattr(import_module(f"pondertree.learn.{module}"), name)
