"""The residual policy-value network in PyTorch; imported by `ChessNN` on first use."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pondertree.chess.config import PLANES, POLICY_PLANES, ChessNetworkConfig
from pondertree.errors import InvalidArgumentError


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_1 = nn.BatchNorm2d(channels)
        self.conv_2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps [B, channels, 8, 8] to the same shape."""
        y = torch.relu(self.norm_1(self.conv_1(x)))
        return torch.relu(x + self.norm_2(self.conv_2(y)))


class ResidualNetwork(nn.Module):
    """Maps observations [B, 119, 8, 8] to (policy logits [B, 4672], values [B] in [-1, 1])."""

    def __init__(self, config: ChessNetworkConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.channels
        self.stem_conv = nn.Conv2d(PLANES, channels, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(channels)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(config.blocks))
        self.policy_conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.policy_norm = nn.BatchNorm2d(channels)
        self.policy_out = nn.Conv2d(channels, POLICY_PLANES, 1)
        self.value_conv = nn.Conv2d(channels, config.value_channels, 1, bias=False)
        self.value_norm = nn.BatchNorm2d(config.value_channels)
        self.value_hidden = nn.Linear(64 * config.value_channels, config.value_hidden)
        self.value_out = nn.Linear(config.value_hidden, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns policy logits and values for the side to move."""
        x = torch.relu(self.stem_norm(self.stem_conv(x)))
        for block in self.blocks:
            x = block(x)
        policy = self.policy_out(torch.relu(self.policy_norm(self.policy_conv(x))))
        # A move index is square * 73 + plane: channels last.
        policy = policy.permute(0, 2, 3, 1).flatten(1)
        value = torch.relu(self.value_norm(self.value_conv(x))).permute(0, 2, 3, 1).flatten(1)
        value = torch.tanh(self.value_out(torch.relu(self.value_hidden(value))))
        return policy, value.squeeze(1)


def get_weights(module: ResidualNetwork) -> dict[str, NDArray[np.float32]]:
    """Returns the weights as arrays."""
    state = module.state_dict()
    return {name: tensor.float().cpu().numpy() for name, tensor in state.items() if tensor.is_floating_point()}


def set_weights(module: ResidualNetwork, weights: dict[str, NDArray[np.float32]]) -> None:
    """Sets the weights."""
    state = module.state_dict()
    state.update({name: torch.from_numpy(array) for name, array in weights.items()})
    module.load_state_dict(state)


def fresh(config: ChessNetworkConfig, seed: int | None) -> ResidualNetwork:
    """Builds a network with PyTorch's default initialisation, without touching the global random state."""
    with torch.random.fork_rng(devices=[]):
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        return ResidualNetwork(config)


def of_tensors(config: ChessNetworkConfig, tensors: dict[str, torch.Tensor]) -> ResidualNetwork:
    """Builds a network from exactly these tensors."""
    # On the meta device: an untrusted config allocates no memory.
    with torch.device("meta"):
        module = ResidualNetwork(config)
    for name, empty in module.state_dict().items():
        if name in tensors and tensors[name].dtype != empty.dtype:
            raise InvalidArgumentError(f"{name} is {tensors[name].dtype}, not {empty.dtype}")
    module.load_state_dict(tensors, strict=True, assign=True)
    return module
