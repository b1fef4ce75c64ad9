"""Default hyperparameters per game, algorithm and device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pondertree import validation
from pondertree.envs.gymnasium import PREFIX
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.learn.config.game_spec import GameSpec, game_spec
from pondertree.learn.config.schema import ALGORITHMS, LEARNS_MODEL, Config
from pondertree.learn.config.sections import EvaluationConfig

#: Anchor opponents of every game. Games with simulations of microseconds get a longer ladder; the strongest anchor of
#: each costs at most half a minute per evaluation.
LADDER = EvaluationConfig().ladder
#: Compiled games without overrides of their own are trained like tic-tac-toe up to this number of cells, else like
#: Othello.
SMALL_BOARD = 25
#: Overrides of the field defaults, by the name of the compiled game.
BY_GAME: dict[str, dict[str, Any]] = {
    "tic_tac_toe": {
        "network": {"blocks": 2, "channels": 32, "value_hidden": 32},
        "self_play": {"simulations": 24, "games_at_once": 64, "temperature_moves": 4, "opening_plies": 4},
        "replay": {"window": 20_000, "learned_first": 1_000},
        "learner": {"passes": 8.0},
        "evaluation": {"simulations": 50, "every_minutes": 1.0},
        "cycle_moves": 8,
    },
    "connect_four": {
        "network": {"blocks": 3, "channels": 32},
        "self_play": {"simulations": 16, "games_at_once": 128, "temperature_moves": 10, "opening_plies": 6},
        "learner": {"passes": 4.0, "root_value_share": 0.5},
        "evaluation": {"every_minutes": 5.0, "ladder": (*LADDER, "UCT 6400", "UCT 25600")},
    },
    "othello": {
        "network": {"blocks": 5, "channels": 64},
        "self_play": {"simulations": 32, "temperature_moves": 16, "opening_plies": 8},
        "replay": {"window": 300_000},
        "evaluation": {"ladder": (*LADDER, "UCT 6400")},
    },
    "backgammon": {
        "network": {"blocks": 3, "channels": 48},
        "self_play": {"simulations": 24, "temperature_moves": 8, "max_moves": 2000},
        "replay": {"window": 200_000},
        "learner": {"passes": 4.0},
        "evaluation": {"simulations": 50},
    },
    "twenty_forty_eight": {
        "network": {"blocks": 2, "channels": 32, "value_channels": 16},
        "self_play": {"simulations": 8, "games_at_once": 64, "temperature_moves": 0, "max_moves": 50_000},
        "replay": {"learned_first": 5_000},
        "learner": {"passes": 3.0, "value_weight": 0.5},
        "returns": {"discount": 0.997, "support": 200},
        "evaluation": {"simulations": 16, "games": 40},
    },
    "chess": {
        "network": {"blocks": 6, "channels": 64},
        "self_play": {
            "simulations": 32,
            "temperature_moves": 30,
            "opening_plies": 4,
            "max_moves": 300,
            "resign_below": -0.95,
        },
        "replay": {"window": 300_000},
        # Random playouts are weak at chess: a fourfold budget gains 70 Elo, and loses every game to Hybrid 2.
        "evaluation": {"ladder": ("UCT 100", "Hybrid 2", "Hybrid 8", "Hybrid 32", "Hybrid 128", "Hybrid 512")},
    },
}

#: Further overrides on a GPU, where large batches and training steps are cheap.
ON_GPU: dict[str, dict[str, Any]] = {
    "connect_four": {
        "network": {"blocks": 6, "channels": 96, "value_hidden": 128},
        # Long random openings: positions after a mistake must be learned, too.
        "self_play": {"games_at_once": 4096, "simulations": 32, "opening_plies": 24, "opening_share": 0.75},
        "replay": {"window": 2_000_000, "learned_first": 40_000},
        "learner": {"batch_size": 2048, "passes": 6.0, "averaged": 0.998},
        "evaluation": {"every_minutes": 1.0, "positions": 500},
    },
    "othello": {
        "network": {"blocks": 8, "channels": 96, "value_hidden": 128},
        "self_play": {"games_at_once": 1024},
        "replay": {"window": 1_000_000, "learned_first": 30_000},
        "learner": {"batch_size": 1024, "passes": 4.0},
    },
    "backgammon": {
        "network": {"blocks": 6, "channels": 96, "value_hidden": 128},
        "self_play": {"games_at_once": 1024, "simulations": 32, "threads": 8},
        "replay": {"window": 1_000_000, "learned_first": 30_000},
        "learner": {"batch_size": 1024, "passes": 4.0, "averaged": 0.998},
    },
    "twenty_forty_eight": {
        # A player of less than 1 MB.
        "network": {"blocks": 2, "channels": 72},
        "self_play": {"games_at_once": 1024, "simulations": 16, "threads": 8},
        "replay": {"window": 1_000_000, "learned_first": 50_000},
        "learner": {"batch_size": 2048, "passes": 4.0, "averaged": 0.998},
        "evaluation": {"every_minutes": 1.0},
    },
    "chess": {
        "network": {"blocks": 10, "channels": 128, "value_hidden": 128},
        "self_play": {"games_at_once": 1024},
        "replay": {"window": 500_000, "learned_first": 20_000},
        "learner": {"batch_size": 1024, "passes": 3.0},
    },
}


#: Further overrides for MuZero, which learns the rules as well and so reuses each position more often.
BY_MUZERO: dict[str, dict[str, Any]] = {
    "tic_tac_toe": {
        "network": {"blocks": 1, "channels": 32, "value_hidden": 32},
        "self_play": {"simulations": 24, "games_at_once": 64, "temperature_moves": 4, "opening_plies": 4},
        "replay": {"window": 30_000, "learned_first": 1_000},
        "learner": {"batch_size": 128, "passes": 4.0},
    },
}

#: Further overrides for MuZero on a GPU.
BY_MUZERO_ON_GPU: dict[str, dict[str, Any]] = {
    "connect_four": {
        "network": {"blocks": 4, "channels": 96, "value_hidden": 128},
        "self_play": {"games_at_once": 2048, "simulations": 32},
        "replay": {"window": 1_000_000, "learned_first": 30_000},
        "learner": {"batch_size": 1024, "passes": 3.0, "averaged": 0.998},
        "muzero": {"dynamics_blocks": 2},
    },
    "othello": {
        "network": {"blocks": 4, "channels": 96, "value_hidden": 128},
        "learner": {"batch_size": 1024, "passes": 3.0},
        "muzero": {"dynamics_blocks": 2},
    },
    "chess": {
        "network": {"blocks": 6, "channels": 128, "value_hidden": 128},
        "self_play": {"games_at_once": 512, "threads": 4, "resign_below": -1.0},
        "learner": {"batch_size": 512, "passes": 3.0},
        "muzero": {"dynamics_blocks": 3},
    },
}

#: Games in Python with rewards, searched by their rules.
WITH_REWARDS: dict[str, Any] = {
    "self_play": {"simulations": 16, "temperature_moves": 0, "max_moves": 100_000},
    "learner": {"value_weight": 0.5},
    "evaluation": {"simulations": 16},
}

#: MuZero in a Gymnasium environment or a game of rewards.
IN_ENVIRONMENTS: dict[str, Any] = {
    "network": {"blocks": 1, "channels": 64, "policy_channels": 64, "value_channels": 64, "value_hidden": 64},
    "self_play": {
        "simulations": 8,
        "games_at_once": 32,
        "temperature_moves": 0,
        "considered_actions": 8,
        "max_moves": 100_000,
    },
    "replay": {"window": 50_000, "learned_first": 1_000},
    "learner": {
        "batch_size": 128,
        "passes": 4.0,
        "learning_rate": 1e-3,
        "value_weight": 0.5,
        "root_value_share": 0.0,
    },
    "muzero": {"discount": 0.997, "support": 30, "td_steps": 20, "priority": 0.6, "fresh_values": True},
    "evaluation": {"every_minutes": 2.0, "simulations": 16},
}
#: Environments with image observations use a convolutional network.
OF_IMAGES: dict[str, Any] = {
    "network": {"blocks": 1, "channels": 16, "policy_channels": 8, "value_channels": 8, "value_hidden": 64},
    "learner": {"learning_rate": 2e-3},
}


def with_defaults(config: Config, spec: GameSpec, on_gpu: bool) -> Config:
    """Returns `config` with the overrides for a game, its algorithm and the device."""
    name = _trained_like(spec.info) if spec.info.compiled else ""
    config = config.with_values(**BY_GAME.get(name, {}))
    if on_gpu:
        config = config.with_values(**ON_GPU.get(name, {}))
    if not config.learns_model and spec.info.has_rewards and not name:
        return config.with_values(**WITH_REWARDS)
    if config.learns_model:
        config = config.with_values(**(BY_MUZERO_ON_GPU if on_gpu else BY_MUZERO).get(name, {}))
        if spec.info.has_rewards:
            config = config.with_values(**IN_ENVIRONMENTS)
            config = config.with_values(**OF_IMAGES) if len(spec.shape) == 3 else config
    return config


def _trained_like(info: GameInfo) -> str:
    """Returns the compiled game whose overrides apply to one: itself, or one of about the same size."""
    if info.name in BY_GAME:
        return info.name
    _, height, width = info.observation_shape
    return "tic_tac_toe" if height * width <= SMALL_BOARD else "othello"


def default_config(
    game: str = "connect4",
    *,
    factory: Callable[[], Any] | None = None,
    algorithm: str | None = None,
    on_gpu: bool = False,
    **values: Any,
) -> Config:
    """Returns the configuration for training `game`; `values` override the defaults.

    `factory` is that of `train`: starting states of a game in Python, or environments, that no name refers to.
    `algorithm` defaults to "gumbel", and to "muzero" for a Gymnasium environment.
    """
    validation.text(game, "game")
    validation.flag(on_gpu, "on_gpu")
    if not validation.is_one_of(algorithm, (None, *ALGORITHMS)):
        raise InvalidArgumentError(
            f"algorithm must be one of {', '.join(ALGORITHMS)}, not {validation.shown(algorithm)}"
        )
    if factory is None:
        algorithm = algorithm or usual_algorithm(game)
        spec = game_spec(game, model=LEARNS_MODEL[algorithm])
    else:
        spec = game_spec(game, factory, model=None if algorithm is None else LEARNS_MODEL[algorithm])
        algorithm = algorithm or ("muzero" if spec.is_environment else "gumbel")
    return with_defaults(Config(game=spec.name, algorithm=algorithm), spec, on_gpu).with_values(**values)


def usual_algorithm(game: str) -> str:
    """Returns the default algorithm of a game."""
    return "muzero" if game.startswith(PREFIX) else "gumbel"
