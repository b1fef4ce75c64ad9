"""Variants: the parts of a training that depend on what learns. The loop around them is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pondertree.evaluators.torch_module import Torch
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config
from pondertree.learn.data.replay import Replay
from pondertree.learn.data.trajectories import Trajectories
from pondertree.learn.trainer.base import Optimised
from pondertree.learn.trainer.model import ModelLearner, errors_by_depth
from pondertree.learn.trainer.policy_value import Learner
from pondertree.models.torch_model import TorchModel


@dataclass(frozen=True, slots=True)
class Variant:
    """The parts of a training; its searches are in `searches.py`, by the same name."""

    learner: Callable[[GameSpec, Config, torch.device], Optimised]
    """A network that learns."""
    replay: Callable[[GameSpec, Config], Any]
    """What it learns from."""
    asked: Callable[[Any], Any]
    """What searches ask: an evaluator, or a model, around a network that plays."""
    quality: Callable[[Any, Any], dict[str, list[float | None]]] | None = None
    """(player, replay): errors by the number of steps that a model imagined."""


def variant_of(config: Config) -> Variant:
    """The parts of the algorithm of a configuration."""
    return VARIANTS[config.algorithm]


_POLICY_VALUE = Variant(Learner, lambda spec, config: Replay(spec, config.replay), Torch)

VARIANTS = {
    "gumbel": _POLICY_VALUE,
    "alphazero": _POLICY_VALUE,
    "muzero": Variant(ModelLearner, Trajectories, TorchModel, errors_by_depth),
}
