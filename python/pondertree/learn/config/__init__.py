"""Training configuration: sections, defaults per game, TOML files, and the trained game. Imports no PyTorch."""

from pondertree.learn.config.defaults import default_config, usual_algorithm, with_defaults
from pondertree.learn.config.game_spec import (
    MAX_STARTS,
    GameSpec,
    game_spec,
    next_state,
    over_by_chance,
    read_observation,
    start_of_training,
)
from pondertree.learn.config.schema import (
    ALGORITHMS,
    Config,
    config_file,
    data_of_text,
    field_names,
    read_config,
    text_of_config,
)
from pondertree.learn.config.sections import (
    OPPONENT,
    EvaluationConfig,
    LatentModelConfig,
    LearnerConfig,
    ReplayConfig,
    ReturnsConfig,
    SelfPlayConfig,
)
from pondertree.networks import NetworkConfig

__all__ = [
    "MAX_STARTS",
    "ALGORITHMS",
    "Config",
    "EvaluationConfig",
    "GameSpec",
    "LatentModelConfig",
    "LearnerConfig",
    "NetworkConfig",
    "OPPONENT",
    "ReplayConfig",
    "ReturnsConfig",
    "SelfPlayConfig",
    "config_file",
    "data_of_text",
    "default_config",
    "field_names",
    "game_spec",
    "next_state",
    "read_config",
    "over_by_chance",
    "read_observation",
    "start_of_training",
    "text_of_config",
    "usual_algorithm",
    "with_defaults",
]
