"""The positions of one evaluation, in the forms that evaluators take; each form is computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError
from pondertree.game import GameInfo, describe


@dataclass(frozen=True, slots=True)
class Packed:
    """Positions of a compiled game in packed form: for chess, about a thirtieth of the unpacked size."""

    planes: NDArray[np.uint64]
    """Words of bit planes [B, W]: a plane has one for every 64 cells; cell row * width + column is bit cell % 64."""
    scalars: NDArray[np.float32]
    """Values of the scalar planes [B, S], which follow the bit planes."""
    height: int
    width: int
    legal_offsets: NDArray[np.int64]
    """The legal actions of row i are `legal_actions[legal_offsets[i]:legal_offsets[i + 1]]` [B + 1]."""
    legal_actions: NDArray[np.uint16]
    """The legal actions of all rows, concatenated."""
    num_actions: int

    def __len__(self) -> int:
        return len(self.planes)

    def unpack(self) -> NDArray[np.float32]:
        """The observations, float32 [B, P + S, height, width]."""
        cells = self.height * self.width
        constants = np.broadcast_to(self.scalars[:, :, None], (*self.scalars.shape, cells))
        whole = np.concatenate([plane_bits(self.planes, cells), constants], axis=1, dtype=np.float32)
        return whole.reshape(len(self), -1, self.height, self.width)

    def rows(self) -> NDArray[np.int64]:
        """The row of each legal action."""
        return np.repeat(np.arange(len(self)), np.diff(self.legal_offsets))


def plane_bits(words: NDArray[np.uint64], cells: int) -> NDArray[np.uint8]:
    """The bits [B, P, cells] of planes [B, W] of so many cells."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")
    return bits.reshape(len(words), -1, 64 * -(-cells // 64))[:, :, :cells]


@dataclass(slots=True)  # not frozen: one is made for every batch
class Batch:
    """Positions to be evaluated."""

    rows: int
    num_players: int
    num_actions: int
    states: Callable[[], Sequence[Any]]
    read_observations: Callable[[], NDArray[np.float32]] | None = None
    """Returns the observations; None to stack those of the states."""
    packed: Callable[[], Packed] | None = None
    info: GameInfo | None = None
    """The game; values are checked against its range only if it is given."""

    @classmethod
    def of(cls, states: Sequence[Any]) -> Batch:
        """A batch of these states."""
        info = describe(states[0])
        return cls(len(states), info.num_players, info.num_actions, lambda: states, info=info)

    def observations(self) -> NDArray[np.float32]:
        """The observations of the positions, [rows, ...]."""
        return stack_observations(self.states()) if self.read_observations is None else self.read_observations()


def stack_observations(states: Sequence[Any]) -> NDArray[np.float32]:
    """Stacks the observations of states."""
    name = type(states[0]).__name__
    if not hasattr(states[0], "observation"):
        raise GameContractError(
            f"{name} has no observation(): an evaluator of observations needs one "
            "(or give an evaluator with evaluate_states)"
        )
    try:
        # Copies each one: a game may return the same array every time.
        return np.stack([np.array(state.observation(), dtype=np.float32) for state in states])
    except Exception as error:
        raise GameContractError(f"{name}.observation() failed: {error}") from error


def take_rows(packed: Packed, rows: NDArray[np.int64]) -> Packed:
    """Selects rows of a packed batch, in this order; rows may repeat."""
    counts = np.diff(packed.legal_offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    places = np.arange(offsets[-1]) + np.repeat(packed.legal_offsets[rows] - offsets[:-1], counts)
    return Packed(
        packed.planes[rows],
        packed.scalars[rows],
        packed.height,
        packed.width,
        offsets.astype(np.int64),
        packed.legal_actions[places],
        packed.num_actions,
    )
