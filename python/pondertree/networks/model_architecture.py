"""What must be known to build the networks of a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from pondertree import validation
from pondertree.errors import InvalidArgumentError
from pondertree.networks.architecture import CHESS_PLANES, MOST_ACTIONS, NetworkConfig, read_shape
from pondertree.validation import brief

#: How often an image may be halved.
MOST_HALVINGS = 32


@dataclass(frozen=True, slots=True)
class ModelArchitecture:
    """Everything that must be known to build the networks of a model, in plain data."""

    shape: tuple[int, ...]
    """The shape of an observation."""
    num_actions: int
    policy_planes: int
    """Planes of moves from each square, as in chess; 0 where the policy is read by a dense layer."""
    action_planes: str
    """How a hidden state is told an action: "cells", "columns", "squares" (chess), "constant", "learned", "vector"."""
    halvings: int
    """How often an image is halved."""
    support: int
    """Whole numbers on each side that values are spread over; 0: chances of winning, drawing and losing."""
    discount: float
    """What comes with each step; below 0 players take turns."""
    dynamics_blocks: int
    compares: bool
    """Whether there are layers that compare hidden states, to learn by."""
    size: NetworkConfig

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """The shape of a hidden state."""
        if len(self.shape) != 3:
            return (self.size.channels,)
        sides: tuple[int, ...] = self.shape[1:]
        for _ in range(self.halvings):
            sides = tuple((side + 1) // 2 for side in sides)
        return (self.size.channels, *sides)

    def as_data(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "model", **asdict(self), "shape": list(self.shape)}

    @classmethod
    def of_data(cls, data: Any) -> ModelArchitecture:
        """From plain data that `as_data` gave."""
        try:
            told = {name: value for name, value in data.items() if name != "kind"}
            told["shape"] = shape = read_shape(told["shape"])
            told["size"] = NetworkConfig(**told["size"])
            validation.whole_number(told["num_actions"], "num_actions", least=1, most=MOST_ACTIONS)
            validation.whole_number(told["policy_planes"], "policy_planes", most=MOST_ACTIONS)
            validation.whole_number(told["halvings"], "halvings", most=MOST_HALVINGS)
            validation.whole_number(told["support"], "support", most=10_000)
            validation.whole_number(told["dynamics_blocks"], "dynamics_blocks", most=256)
            validation.number(told["discount"], "discount", least=-1.0, most=1.0)
            validation.flag(told["compares"], "compares")
            kinds = ("vector",) if len(shape) != 3 else ("cells", "columns", "squares", "constant", "learned")
            if told["action_planes"] not in kinds:
                raise InvalidArgumentError(f"action_planes must be {' or '.join(kinds)} for the shape {shape}")
            return cls(**told)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(f"this describes no model: {brief(str(error))}") from None


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
