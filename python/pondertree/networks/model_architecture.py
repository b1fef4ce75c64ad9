"""Architectures of learned models as plain data, and the encoding of actions as input planes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from pondertree import validation
from pondertree.errors import InvalidArgumentError
from pondertree.networks.architecture import MAX_ACTIONS, MAX_SUPPORT, NetworkConfig, read_shape
from pondertree.validation import brief

#: How often an image may be halved.
MAX_HALVINGS = 32


@dataclass(frozen=True, slots=True)
class ModelArchitecture:
    """The networks of a learned model as plain data."""

    shape: tuple[int, ...]
    """Shape of an observation."""
    num_actions: int
    policy_planes: int
    """Actions per square, which are `square * policy_planes + plane`, as in chess; 0 for a dense policy head."""
    action_planes: str
    """Encoding of actions for the dynamics: "cells", "columns", "squares" (of `policy_planes`), "constant", "learned",
    "vector"."""
    halvings: int
    """Stride-2 downsampling layers for images."""
    support: int
    """Categorical support from -support to support; 0 for win, draw and loss probabilities."""
    discount: float
    """Discount of each step; negative if players alternate."""
    dynamics_blocks: int
    compares: bool
    """Whether there are projection layers for the consistency loss."""
    size: NetworkConfig

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """Shape of a hidden state."""
        if len(self.shape) != 3:
            return (self.size.channels,)
        sides: tuple[int, ...] = self.shape[1:]
        for _ in range(self.halvings):
            sides = tuple((side + 1) // 2 for side in sides)
        return (self.size.channels, *sides)

    def as_data(self) -> dict[str, Any]:
        """Returns the architecture as JSON-compatible data."""
        return {"kind": "model", **asdict(self), "shape": list(self.shape)}

    @classmethod
    def of_data(cls, data: Any) -> ModelArchitecture:
        """Parses what `as_data` returned; raises `InvalidArgumentError` for anything else."""
        try:
            values = {name: value for name, value in data.items() if name != "kind"}
            values["shape"] = shape = read_shape(values["shape"])
            values["size"] = NetworkConfig(**values["size"])
            validation.whole_number(values["num_actions"], "num_actions", least=1, most=MAX_ACTIONS)
            validation.whole_number(values["policy_planes"], "policy_planes", most=MAX_ACTIONS)
            validation.whole_number(values["halvings"], "halvings", most=MAX_HALVINGS)
            validation.whole_number(values["support"], "support", most=MAX_SUPPORT)
            validation.whole_number(values["dynamics_blocks"], "dynamics_blocks", most=256)
            validation.number(values["discount"], "discount", least=-1.0, most=1.0)
            validation.flag(values["compares"], "compares")
            kinds = ["vector"] if len(shape) != 3 else ["cells", "columns", "constant", "learned"]
            if len(shape) == 3 and values["policy_planes"] * shape[1] * shape[2] == values["num_actions"]:
                kinds.append("squares")
            if values["action_planes"] not in kinds:
                raise InvalidArgumentError(f"action_planes must be {' or '.join(kinds)} for the shape {shape}")
            return cls(**values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(f"not a model description: {brief(str(error))}") from None


class ActionPlanes(nn.Module):
    """Encodes actions [B] as planes [B, planes, height, width], or as vectors [B, num_actions]."""

    def __init__(self, architecture: ModelArchitecture) -> None:
        super().__init__()
        self.kind = architecture.action_planes
        self.num_actions = architecture.num_actions
        self.policy_planes = architecture.policy_planes
        self.sides = architecture.hidden_shape[1:]
        sizes = {"vector": self.num_actions, "squares": 1 + self.policy_planes, "constant": self.num_actions}
        self.planes = sizes.get(self.kind, 1)
        if self.kind == "learned":
            self.pictures = nn.Embedding(self.num_actions, self.sides[0] * self.sides[1])

    def forward(self, actions: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Returns the encoding in `dtype`."""
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
        squares = _marks(actions // self.policy_planes, height * width, dtype).reshape(-1, 1, height, width)
        kinds = _marks(actions % self.policy_planes, self.policy_planes, dtype)
        return torch.cat([squares, kinds[:, :, None, None].expand(-1, -1, height, width)], dim=1)


def _marks(numbers: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns a one-hot encoding [B, count], zero where out of range; unlike `one_hot` it never synchronises."""
    return (numbers[:, None] == torch.arange(count, device=numbers.device)).to(dtype)
