"""Residual policy-value networks in PyTorch, with heads that fit the game.

Networks in training have batch norms. Players have them folded into the preceding convolutions: equal up to rounding,
at half the memory traffic.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from pondertree.errors import EvaluationError
from pondertree.networks.architecture import Architecture
from pondertree.networks.categories import Categories


class Normed(nn.Module):
    """A convolution or dense layer followed by its batch norm."""

    def __init__(self, layer: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.norm = norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the layer and the norm."""
        return self.norm(self.layer(x))

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (weight, bias) of one layer that equals both in eval mode."""
        scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        weight = self.layer.weight * scale.reshape(-1, *[1] * (self.layer.weight.ndim - 1))
        return weight, self.norm.bias - self.norm.running_mean * scale


class Block(nn.Module):
    """A residual block of two layers."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first = first
        self.second = second

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the block; keeps the shape."""
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class PolicyValueNetwork(nn.Module):
    """Maps observations to (policy logits [B, num_actions], values [B]), for the player to move.

    Values are in [-1, 1], with a support expected returns of any size.
    """

    #: Name of the trained game, for error messages.
    game = ""

    def __init__(self, architecture: Architecture, *, folded: bool = False) -> None:
        super().__init__()
        self.architecture = architecture
        self.is_folded = folded
        size = architecture.size
        self.is_board = architecture.is_board
        cells = architecture.cells
        self.stem = self._layer(architecture.inputs, size.channels)
        self.blocks = nn.ModuleList(
            Block(self._layer(size.channels, size.channels), self._layer(size.channels, size.channels))
            for _ in range(size.blocks)
        )
        if architecture.policy_planes:
            self.policy_layer = self._layer(size.channels, size.channels)
            self.policy_out: nn.Module = nn.Conv2d(size.channels, architecture.policy_planes, 1)
        else:
            self.policy_layer = self._layer(size.channels, size.policy_channels, 1)
            self.policy_out = nn.Linear(size.policy_channels * cells, architecture.num_actions)
        self.value_layer = self._layer(size.channels, size.value_channels, 1)
        self.value_hidden = nn.Linear(size.value_channels * cells, size.value_hidden)
        self.categories = Categories(architecture.support)
        self.value_out = nn.Linear(size.value_hidden, architecture.value_outputs)

    def _layer(self, inputs: int, outputs: int, kernel_size: int = 3) -> nn.Module:
        """Returns a convolution, or a dense layer where observations are not boards."""
        if self.is_board:
            layer: nn.Module = nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2, bias=self.is_folded)
            return layer if self.is_folded else Normed(layer, nn.BatchNorm2d(outputs))
        layer = nn.Linear(inputs, outputs, bias=self.is_folded)
        return layer if self.is_folded else Normed(layer, nn.BatchNorm1d(outputs))

    def heads(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (policy logits [B, num_actions], value logits [B, categories]): of win, draw and loss, or atoms."""
        x = torch.relu(self.stem(x if self.is_board else x.flatten(1)))
        for block in self.blocks:
            x = block(x)
        policy = torch.relu(self.policy_layer(x))
        if self.architecture.policy_planes:
            # An action is square * policy_planes + plane, so planes become the last axis.
            policy = self.policy_out(policy).permute(0, 2, 3, 1).flatten(1)
        else:
            policy = self.policy_out(policy.flatten(1))
        value = torch.relu(self.value_hidden(torch.relu(self.value_layer(x)).flatten(1)))
        return policy, self.value_out(value)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (policy logits, values)."""
        check_observation_shape(self, x)
        policy, value = self.heads(x)
        return policy, self.categories.to_numbers(value)


def check_observation_shape(network: Any, observations: Any) -> None:
    """Raises `EvaluationError` for observations of another shape than the network was trained on."""
    # Tracing passes placeholders whose shapes are meaningless.
    if not isinstance(observations, torch.Tensor) or torch.jit.is_tracing():
        return
    seen, learned = tuple(observations.shape[1:]), network.architecture.shape
    if seen != learned:
        name = f"of {network.game}, which" if network.game else "that"
        raise EvaluationError(f"this is a player {name} takes observations of shape {learned}, not {seen}")


def fresh(architecture: Architecture, seed: int) -> PolicyValueNetwork:
    """Returns an untrained network with uniform policy and zero value, without advancing global RNGs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PolicyValueNetwork(architecture)
    for layer in (network.policy_out, network.value_out):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    # Zero-initialised residual branches: deep networks train from the first step.
    for block in network.blocks:
        nn.init.zeros_(block.second.norm.weight)
    return network


def player_of(network: Any) -> Any:
    """Returns a player: the network with folded norms, in eval mode and without gradients."""
    device = next(network.parameters()).device
    player = type(network)(network.architecture, folded=True)
    player.to(device, memory_format=torch.channels_last)
    player.eval().requires_grad_(False)
    update_player(player, network.state_dict())
    return player


def update_player(player: Any, weights: dict[str, torch.Tensor]) -> None:
    """Copies training weights into a player in place, so that captured graphs see them."""
    with torch.device("meta"):  # allocates no memory and draws no random numbers
        source = type(player)(player.architecture)
    source.load_state_dict(weights, assign=True)
    with torch.no_grad():
        for name, target in player.named_modules():
            if next(target.parameters(recurse=False), None) is None:
                continue
            part = source.get_submodule(name)
            if isinstance(part, Normed):
                weight, bias = part.folded()
                target.weight.copy_(weight)
                target.bias.copy_(bias)
                continue
            for own, tensor in part.named_parameters(recurse=False):
                target.get_parameter(own).copy_(tensor)
