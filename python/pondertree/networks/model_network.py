"""Networks of a learned model: representation, dynamics and prediction (MuZero, appendix F) in one module.

Boards and images use convolutions with batch norms, which players fold into the weights; vectors use dense layers with
layer norms. Hidden states are scaled to [0, 1]. Each step returns a discount, negative where players alternate, so that
a search needs no knowledge of the game.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from pondertree.models.arrays import min_max
from pondertree.networks.architecture import Architecture, NetworkConfig
from pondertree.networks.categories import Categories
from pondertree.networks.model_architecture import ActionPlanes, ModelArchitecture
from pondertree.networks.policy_value import Block, Normed, PolicyValueNetwork, check_observation_shape

#: Width of the projections that the consistency loss compares.
COMPARED = 128


class Prediction(PolicyValueNetwork):
    """The prediction network: a policy-value network without residual blocks on hidden states."""

    def __init__(self, architecture: ModelArchitecture, folded: bool) -> None:
        size = architecture.size
        inner = NetworkConfig(**{**asdict(size), "blocks": 0})
        shape = architecture.hidden_shape
        super().__init__(
            Architecture(shape, architecture.num_actions, architecture.policy_planes, inner, architecture.support),
            folded=folded,
        )

    def _layer(self, inputs: int, outputs: int, kernel_size: int = 3) -> nn.Module:
        return make_layer(inputs, outputs, kernel_size, is_board=self.is_board, folded=self.is_folded)


def make_layer(
    inputs: int, outputs: int, kernel_size: int = 3, *, is_board: bool, folded: bool, stride: int = 1
) -> nn.Module:
    """Returns a convolution and its batch norm, or a dense layer and its layer norm."""
    if not is_board:
        return nn.Sequential(nn.Linear(inputs, outputs), nn.LayerNorm(outputs))
    layer = nn.Conv2d(inputs, outputs, kernel_size, stride=stride, padding=kernel_size // 2, bias=folded)
    return layer if folded else Normed(layer, nn.BatchNorm2d(outputs))


class ModelNetwork(nn.Module):
    """A learned model with `initial_inference` and `recurrent_inference`."""

    #: Name of the trained game, for error messages.
    game = ""

    def __init__(self, architecture: ModelArchitecture, *, folded: bool = False) -> None:
        super().__init__()
        self.architecture = architecture
        self.is_folded = folded
        self.is_board = len(architecture.shape) == 3
        self.categories = Categories(architecture.support)
        size, channels = architecture.size, architecture.size.channels
        inputs = architecture.shape[0] if self.is_board else math.prod(architecture.shape)
        self.stem = self._layer(inputs, channels)
        self.halve = nn.ModuleList(self._layer(channels, channels, stride=2) for _ in range(architecture.halvings))
        self.blocks = nn.ModuleList(self._block(channels) for _ in range(size.blocks))
        self.action_planes = ActionPlanes(architecture)
        self.step_in = self._layer(channels + self.action_planes.planes, channels)
        self.step_blocks = nn.ModuleList(self._block(channels) for _ in range(architecture.dynamics_blocks))
        self.reward_layer = self._layer(channels, size.value_channels, 1)
        cells = math.prod(architecture.hidden_shape[1:])
        self.reward_hidden = nn.Linear(size.value_channels * cells, size.value_hidden)
        self.reward_out = nn.Linear(size.value_hidden, self.categories.count)
        self.predictor = Prediction(architecture, folded)
        if architecture.compares and not folded:
            self.projector, self.guesser = (
                nn.Sequential(
                    nn.Linear(inputs, COMPARED), nn.LayerNorm(COMPARED), nn.ReLU(), nn.Linear(COMPARED, COMPARED)
                )
                for inputs in (channels * cells, COMPARED)
            )

    def _layer(self, inputs: int, outputs: int, reach: int = 3, stride: int = 1) -> nn.Module:
        return make_layer(inputs, outputs, reach, is_board=self.is_board, folded=self.is_folded, stride=stride)

    def _block(self, channels: int) -> Block:
        return Block(self._layer(channels, channels), self._layer(channels, channels))

    def represent(self, observations: torch.Tensor) -> torch.Tensor:
        """Returns the hidden states of observations."""
        x = torch.relu(self.stem(observations if self.is_board else observations.flatten(1)))
        for halve in self.halve:
            x = torch.relu(halve(x))
        for block in self.blocks:
            x = block(x)
        return self._scaled(x)

    def step(self, hidden: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Returns the hidden states after actions."""
        inputs = torch.cat([hidden, self.action_planes(actions, hidden.dtype)], dim=1)
        # Residual: a move changes little of a position.
        x = torch.relu(hidden + self.step_in(inputs))
        for block in self.step_blocks:
            x = block(x)
        return self._scaled(x)

    def reward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the rewards received on the step to these hidden states."""
        x = torch.relu(self.reward_hidden(torch.relu(self.reward_layer(hidden)).flatten(1)))
        return self.reward_out(x)

    def heads(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns (policy logits, value logits)."""
        policy, value = self.predictor.heads(hidden)
        return policy, value

    def consistency_loss(self, hidden: torch.Tensor, observed_hidden: torch.Tensor) -> torch.Tensor:
        """Returns the negative cosine similarity [B] of predicted hidden states and those of the observations.

        Stops the gradient through the latter (EfficientZero, section 4.1).
        """
        prediction = self.guesser(self.projector(hidden.flatten(1)))
        with torch.no_grad():
            target = self.projector(observed_hidden.flatten(1))
        return -functional.cosine_similarity(prediction.float(), target.float(), dim=1)

    def initial_inference(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns (hidden_state, policy_logits, value)."""
        check_observation_shape(self, observations)
        hidden = self.represent(observations)
        policy, value = self.heads(hidden)
        return hidden, policy, self.categories.to_numbers(value)

    def recurrent_inference(self, hidden_states: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns (hidden_state, reward, policy_logits, value, discount)."""
        hidden = self.step(hidden_states, actions)
        policy, logits = self.heads(hidden)
        value = self.categories.to_numbers(logits)
        discount = torch.full_like(value, self.architecture.discount)
        return hidden, self.categories.to_numbers(self.reward(hidden)), policy, value, discount

    @staticmethod
    def _scaled(hidden: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = min_max(hidden)
        return scaled


class Method(nn.Module):
    """A method of a network as a module, which the ONNX exporter traces."""

    def __init__(self, network: ModelNetwork, name: str) -> None:
        super().__init__()
        self.network = network
        self.name = name

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Calls the method."""
        return getattr(self.network, self.name)(*inputs)


def fresh_model(architecture: ModelArchitecture, seed: int) -> ModelNetwork:
    """Returns an untrained model with uniform policies and zero values and rewards, without advancing global RNGs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ModelNetwork(architecture)
    for layer in (network.predictor.policy_out, network.predictor.value_out, network.reward_out):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    for block in (*network.blocks, *network.step_blocks):
        norm = block.second.norm if isinstance(block.second, Normed) else block.second[1]
        nn.init.zeros_(norm.weight)
    return network
