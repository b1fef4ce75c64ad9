"""Training configuration: sections, defaults per game, TOML files, and the trained game. Imports no PyTorch."""

from pondertree.learn.config.defaults import default_config, with_defaults
from pondertree.learn.config.game_spec import GameSpec, game_spec
from pondertree.learn.config.schema import Config, read_config, text_of_config
from pondertree.learn.config.sections import (
    EvaluationConfig,
    LatentModelConfig,
    LearnerConfig,
    ReplayConfig,
    SelfPlayConfig,
)
from pondertree.networks.architecture import NetworkConfig

__all__ = [
    "Config",
    "EvaluationConfig",
    "GameSpec",
    "LatentModelConfig",
    "LearnerConfig",
    "NetworkConfig",
    "ReplayConfig",
    "SelfPlayConfig",
    "default_config",
    "game_spec",
    "read_config",
    "text_of_config",
    "with_defaults",
]
