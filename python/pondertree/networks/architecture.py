"""Architectures of policy-value networks as plain data, from which PyTorch and NumPy build the same network."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from pondertree import validation
from pondertree.config import bounded_int, option
from pondertree.errors import InvalidArgumentError
from pondertree.validation import brief

#: Outcomes of the value head: win, draw and loss for the player to move.
OUTCOMES = 3
#: Largest categorical support.
MAX_SUPPORT = 10_000
#: Largest number of actions, and of elements of an observation, that a file may claim.
MAX_ACTIONS, MAX_NUMBERS = 1 << 24, 1 << 28

width = bounded_int(1, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Size of the network."""

    blocks: int = option(4, bounded_int(0, 256))
    """Residual blocks of two convolutions, or of two dense layers where observations are not boards."""
    channels: int = option(32, width)
    """Channels of every convolution, or the width of every dense layer."""
    policy_channels: int = option(16, width)
    """Channels of the policy head before its dense layer (unused with policy planes, as in chess)."""
    value_channels: int = option(8, width)
    """Channels of the value head."""
    value_hidden: int = option(64, width)
    """Width of the value head's hidden layer."""

    def __post_init__(self) -> None:
        validation.check_fields(self, "network.")


@dataclass(frozen=True, slots=True)
class Architecture:
    """A policy-value network as plain data."""

    shape: tuple[int, ...]
    """Shape of an observation."""
    num_actions: int
    policy_planes: int
    """Actions per square, which are `square * policy_planes + plane`, as in chess; 0 for a dense policy head."""
    size: NetworkConfig
    support: int = 0
    """Categorical support of the value head, from -support to support; 0 for win, draw and loss probabilities."""

    def __post_init__(self) -> None:
        planes, actions = self.policy_planes, self.num_actions
        if planes and not (self.is_board and planes * self.cells == actions):
            raise InvalidArgumentError(
                f"policy_planes must be 0, or be the {actions:,} actions by the squares of a board, not {planes:,} "
                f"for observations of shape {self.shape}"
            )

    @property
    def is_board(self) -> bool:
        """Whether observations are board planes, processed by convolutions."""
        return len(self.shape) == 3

    @property
    def value_outputs(self) -> int:
        """Logits of the value head."""
        return 2 * self.support + 1 if self.support else OUTCOMES

    @property
    def inputs(self) -> int:
        """Input channels of the first layer: board planes, or all elements of another observation."""
        return self.shape[0] if self.is_board else math.prod(self.shape)

    @property
    def cells(self) -> int:
        """Squares of the board; 1 where observations are not boards."""
        return self.shape[1] * self.shape[2] if self.is_board else 1

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of all weights by name, with batch norms folded into the preceding layers."""
        size, width = self.size, self.size.channels
        # (inputs, outputs, kernel size): convolutions of boards, and dense layers otherwise.
        layers: dict[str, tuple[int, int, int]] = {"stem": (self.inputs, width, 3)}
        for number in range(size.blocks):
            layers |= {f"blocks.{number}.{name}": (width, width, 3) for name in ("first", "second")}
        layers["value_layer"] = (width, size.value_channels, 1)
        dense = {"value_hidden": (size.value_channels * self.cells, size.value_hidden)}
        dense["value_out"] = (size.value_hidden, self.value_outputs)
        if self.policy_planes:
            layers |= {"policy_layer": (width, width, 3), "policy_out": (width, self.policy_planes, 1)}
        else:
            layers["policy_layer"] = (width, size.policy_channels, 1)
            dense["policy_out"] = (size.policy_channels * self.cells, self.num_actions)
        shapes: dict[str, tuple[int, ...]] = {}
        for name, (inputs, outputs, kernel_size) in layers.items():
            kernel = (kernel_size, kernel_size) if self.is_board else ()
            shapes |= {f"{name}.weight": (outputs, inputs, *kernel), f"{name}.bias": (outputs,)}
        for name, (inputs, outputs) in dense.items():
            shapes |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
        return shapes

    def as_data(self) -> dict[str, Any]:
        """Returns the architecture as JSON-compatible data."""
        return {**asdict(self), "shape": list(self.shape)}

    @classmethod
    def of_data(cls, data: Any) -> Architecture:
        """Parses what `as_data` returned; raises `InvalidArgumentError` for anything else."""
        try:
            actions = validation.whole_number(data["num_actions"], "num_actions", least=1, most=MAX_ACTIONS)
            planes = validation.whole_number(data["policy_planes"], "policy_planes", most=MAX_ACTIONS)
            support = validation.whole_number(data.get("support", 0), "support", most=MAX_SUPPORT)
            return cls(read_shape(data["shape"]), actions, planes, NetworkConfig(**data["size"]), support)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(f"not a network description: {brief(str(error))}") from None


def read_shape(data: Any) -> tuple[int, ...]:
    """Parses the shape of an observation."""
    shape = tuple(validation.whole_number(length, "shape", least=1, most=MAX_NUMBERS) for length in data)
    if not 1 <= len(shape) <= 8 or math.prod(shape) > MAX_NUMBERS:
        raise InvalidArgumentError(f"shape must have 1 to 8 axes and at most {MAX_NUMBERS:,} numbers")
    return shape
