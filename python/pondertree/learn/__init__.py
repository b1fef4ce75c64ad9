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
    "default_config",
    "read_config",
    "text_of_config",
    "train",
]

_WHERE = {
    "Config": "config.schema",
    "default_config": "config.defaults",
    "read_config": "config.schema",
    "text_of_config": "config.schema",
    "train": "loop.train",
    "TrainingResult": "loop.train",
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
