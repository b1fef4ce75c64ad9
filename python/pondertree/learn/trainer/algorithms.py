"""The parts of a run that depend on its algorithm: trainer, replay buffer, and the player's form for searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pondertree.evaluators.torch_module import Torch
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data import ReplayBuffer, TrajectoryBuffer
from pondertree.learn.trainer.architectures import model_architecture, policy_value_architecture
from pondertree.learn.trainer.base import Trainer
from pondertree.learn.trainer.latent_model import LatentModelTrainer, prediction_errors_by_depth
from pondertree.learn.trainer.policy_value import PolicyValueTrainer
from pondertree.models.torch_model import TorchModel
from pondertree.networks import ModelNetwork, PolicyValueNetwork


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The parts of an algorithm; its searches are `self_play.searches.searches_of`."""

    trainer: Callable[[GameSpec, Config, torch.device], Trainer]
    replay: Callable[[GameSpec, Config], Any]
    evaluator: Callable[[Any], Any]
    """Wraps a player network as what its searches take: an evaluator or a model."""
    prediction_errors: Callable[[Any, Any], dict[str, list[float | None]]] | None = None
    """(player, replay buffer) -> errors of a learned model by unroll depth."""


def empty_player(spec: GameSpec, config: Config, device: torch.device) -> Any:
    """Returns the player network of a configuration, whose weights are to be loaded."""
    player: Any
    if config.algorithm == "muzero":
        player = ModelNetwork(model_architecture(spec, config), folded=True)
    else:
        player = PolicyValueNetwork(policy_value_architecture(spec, config), folded=True)
    player.to(device, memory_format=torch.channels_last)
    return player.eval().requires_grad_(False)


def algorithm_of(config: Config) -> Algorithm:
    """Returns the parts of the configured algorithm."""
    return ALGORITHMS_BY_NAME[config.algorithm]


_POLICY_VALUE = Algorithm(PolicyValueTrainer, ReplayBuffer, Torch)

ALGORITHMS_BY_NAME = {
    "gumbel": _POLICY_VALUE,
    "alphazero": _POLICY_VALUE,
    "muzero": Algorithm(LatentModelTrainer, TrajectoryBuffer, TorchModel, prediction_errors_by_depth),
}
