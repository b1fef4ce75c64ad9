"""The networks of the GPU benchmark: plain PyTorch modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    """Residual blocks; a policy head of 32 planes and a linear layer; a value head on the mean over the board."""

    def __init__(self, planes: int, board: tuple[int, int], channels: int, blocks: int, actions: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(planes, channels, 3, padding=1)
        pair = [nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2)) for _ in range(blocks)]
        self.blocks = nn.ModuleList(pair)
        self.policy = nn.Conv2d(channels, 32, 1)
        self.moves = nn.Linear(32 * board[0] * board[1], actions)
        self.value = nn.Linear(channels, 1)

    def forward(self, observations: Any) -> tuple[Any, Any]:
        """(logits [B, actions], values [B, 1])."""
        trunk = functional.relu(self.stem(observations))
        for first, second in self.blocks:
            trunk = functional.relu(trunk + second(functional.relu(first(trunk))))
        logits = self.moves(functional.relu(self.policy(trunk)).flatten(1))
        return logits, torch.tanh(self.value(trunk.mean((2, 3))))


class LatentModel(nn.Module):
    """A model with a two-layer transition and a single-layer head."""

    def __init__(self, width: int, actions: int) -> None:
        super().__init__()
        self.actions = actions
        self.first = nn.Linear(width + actions, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        self.heads = nn.Linear(width, actions + 2, bias=False)

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """Takes the observation as hidden state."""
        logits, value, _ = self._say(observations)
        return observations, logits, value

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, Any, Any, Any]:
        """Computes one step."""
        chosen = functional.one_hot(actions, self.actions).to(hidden.dtype)
        hidden = torch.tanh(self.second(functional.relu(self.first(torch.cat([hidden, chosen], 1)))))
        logits, value, reward = self._say(hidden)
        return hidden, reward, logits, value

    def _say(self, hidden: Any) -> tuple[Any, Any, Any]:
        output = self.heads(hidden).float()
        return output[:, : self.actions], torch.tanh(output[:, -2]), output[:, -1] * 0.1


class Table(nn.Module):
    """A network of hash functions, exact on every device: small integers of the observation."""

    def __init__(self, cells: int, actions: int) -> None:
        super().__init__()
        weights = torch.arange(cells, dtype=torch.float64) ** 2 % 257 + 1
        self.register_buffer("weights", weights)
        self.register_buffer("moves", torch.arange(actions, dtype=torch.float64) + 3)

    def forward(self, observations: Any) -> tuple[Any, Any]:
        """(logits [B, actions], values [B])."""
        keys = torch.round(observations.double().flatten(1) * 100) @ self.weights
        logits = torch.floor(keys[:, None] * self.moves / 7) % 17 / 4 - 2
        return logits.float(), ((keys % 33 - 16) / 16).float()
