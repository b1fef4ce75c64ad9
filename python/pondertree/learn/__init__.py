"""Learning by self-play: `train(config)` makes a player out of nothing but the rules of a game.

    from pondertree.learn import default_config, train

    train(default_config("connect4", out="runs/connect4", minutes=30))

Needs PyTorch (`pip install ".[train]"`), which is imported when something here is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pondertree.learn.config import Config
    from pondertree.learn.config_file import read_config, text_of_config
    from pondertree.learn.config_sections import (
        EvaluationConfig,
        LearnerConfig,
        MuZeroConfig,
        NetworkConfig,
        ReplayConfig,
        SelfPlayConfig,
    )
    from pondertree.learn.defaults import default_config
    from pondertree.learn.loop import TrainingResult, train

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
    "Config": "config",
    "default_config": "defaults",
    "read_config": "config_file",
    "text_of_config": "config_file",
    "train": "loop",
    "TrainingResult": "loop",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pondertree.learn' has no attribute {name!r}")
    where = _WHERE.get(name, "config_sections")
    if where == "loop":
        from pondertree.extras import require

        require("torch", "train", "learning")
        require("safetensors", "train", "learning")
    return getattr(import_module(f"pondertree.learn.{where}"), name)
