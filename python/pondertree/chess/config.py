"""The shape of the residual network, whichever framework runs it."""

from __future__ import annotations

from dataclasses import dataclass

from pondertree import check

#: Planes of an observation: AlphaZero's 119, of 8 x 8 squares.
PLANES = 119
#: Kinds of moves from a square; the number of a move is `square * 73 + plane`.
POLICY_PLANES = 73
NUM_MOVES = 64 * POLICY_PLANES


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """How deep and wide the network is."""

    blocks: int = 6
    """Residual blocks of two convolutions each."""
    channels: int = 64
    """Features of every convolution."""
    value_channels: int = 8
    """Features of a square that the value is read from."""
    value_hidden: int = 64
    """Width of the hidden layer of the value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check.whole_number(self.blocks, "blocks", most=256))
        for name in ("channels", "value_channels", "value_hidden"):
            object.__setattr__(self, name, check.whole_number(getattr(self, name), name, least=1, most=4096))
