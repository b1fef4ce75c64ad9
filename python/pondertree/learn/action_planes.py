"""How the dynamics of a model are told an action."""

from __future__ import annotations

import torch
from torch import nn

from pondertree.learn.architecture import CHESS_PLANES
from pondertree.learn.model_architecture import ModelArchitecture


class ActionPlanes(nn.Module):
    """Actions [B] as planes [B, planes, height, width], or as vectors [B, num_actions]."""

    def __init__(self, architecture: ModelArchitecture) -> None:
        super().__init__()
        self.kind = architecture.action_planes
        self.num_actions = architecture.num_actions
        self.sides = architecture.hidden_shape[1:]
        sizes = {"vector": self.num_actions, "squares": 1 + CHESS_PLANES, "constant": self.num_actions}
        self.planes = sizes.get(self.kind, 1)
        if self.kind == "learned":
            self.pictures = nn.Embedding(self.num_actions, self.sides[0] * self.sides[1])

    def forward(self, actions: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """As numbers of this type."""
        if self.kind == "learned":
            return self.pictures(actions).reshape(-1, 1, *self.sides).to(dtype)
        if self.kind == "vector":
            return _marks(actions, self.num_actions, dtype)
        if self.kind == "constant":
            marks = _marks(actions, self.num_actions, dtype)
            return marks[:, :, None, None].expand(-1, -1, *self.sides)
        height, width = self.sides
        if self.kind == "columns":
            return _marks(actions, width, dtype)[:, None, None, :].expand(-1, 1, height, -1)
        if self.kind == "cells":
            cells = height * width
            return _marks(actions, cells, dtype).reshape(-1, 1, height, width)
        # The number of a move in chess is square * 73 + plane.
        squares = _marks(actions // CHESS_PLANES, height * width, dtype).reshape(-1, 1, height, width)
        kinds = _marks(actions % CHESS_PLANES, CHESS_PLANES, dtype)
        return torch.cat([squares, kinds[:, :, None, None].expand(-1, -1, height, width)], dim=1)


def _marks(numbers: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
    """[B, count]: 1 in the place of each number, if it has one; never waits for the device, as `one_hot` may."""
    return (numbers[:, None] == torch.arange(count, device=numbers.device)).to(dtype)
