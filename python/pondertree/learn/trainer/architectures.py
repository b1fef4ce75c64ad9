"""Network architectures for a game: heads, action encoding and downsampling by the shape of its observations."""

from __future__ import annotations

from pondertree.learn.config import Config, GameSpec
from pondertree.networks import Architecture, ModelArchitecture

#: Images are downsampled by stride-2 convolutions until no side exceeds this.
MAX_SIDE = 12
#: Above this number of actions each gets a learned embedding plane; up to it, a constant plane of its own.
MAX_ACTION_PLANES = 32


def policy_value_architecture(spec: GameSpec, config: Config) -> Architecture:
    """Returns the policy-value architecture for a game."""
    support = config.returns.support if spec.info.has_rewards else 0
    return Architecture(spec.shape, spec.info.num_actions, spec.info.policy_planes, config.network, support)


def model_architecture(spec: GameSpec, config: Config) -> ModelArchitecture:
    """Returns the architecture of a learned model for a game."""
    halvings = 0
    if spec.is_environment and len(spec.shape) == 3:
        while max(spec.shape[1:]) > MAX_SIDE << halvings:
            halvings += 1
    discount = config.muzero.discount
    return ModelArchitecture(
        spec.shape,
        spec.info.num_actions,
        spec.info.policy_planes,
        _action_planes(spec),
        halvings,
        config.muzero.support,
        -discount if spec.info.num_players == 2 else discount,
        config.muzero.dynamics_blocks,
        config.muzero.consistency > 0.0,
        config.network,
    )


def _action_planes(spec: GameSpec) -> str:
    """Returns the action encoding of the dynamics network, one of `ModelArchitecture.action_planes`."""
    if spec.info.policy_planes > 1:
        return "squares"
    if len(spec.shape) != 3:
        return "vector"
    actions, (_, height, width) = spec.info.num_actions, spec.shape
    if spec.is_environment:
        return "constant" if actions <= MAX_ACTION_PLANES else "learned"
    if actions in (height * width, height * width + 1):
        return "cells"  # the extra action is a pass, which marks no cell
    if actions == width:
        return "columns"
    return "learned"
