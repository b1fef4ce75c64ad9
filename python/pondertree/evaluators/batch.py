"""The positions of one evaluation, in whichever form an evaluator wants them; a form is made only if asked for."""

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
    """Positions of a compiled game, packed: about a thirtieth of the unpacked observations on chess."""

    planes: NDArray[np.uint64]
    """Bit planes [B, P]: bit row * width + column of a plane is its cell."""
    scalars: NDArray[np.float32]
    """The constants of the scalar planes [B, S], which follow the bit planes."""
    height: int
    width: int
    legal_offsets: NDArray[np.int64]
    """Where each row's legal actions begin, and where the last ends [B + 1]."""
    legal_actions: NDArray[np.uint16]
    """The legal actions of all rows, one row after another."""
    num_actions: int

    def __len__(self) -> int:
        return len(self.planes)

    def unpack(self) -> NDArray[np.float32]:
        """The observations, float32 [B, P + S, height, width]."""
        squares = np.arange(self.height * self.width, dtype=np.uint64)
        bits = ((self.planes[:, :, None] >> squares) & np.uint64(1)).astype(np.float32)
        constants = np.broadcast_to(self.scalars[:, :, None], (*self.scalars.shape, squares.size))
        whole = np.concatenate([bits, constants], axis=1)
        return whole.reshape(len(self), -1, self.height, self.width)

    def rows(self) -> NDArray[np.int64]:
        """The row each legal action belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.legal_offsets))


class Batch:
    """Positions waiting for an evaluator."""

    def __init__(
        self,
        rows: int,
        num_players: int,
        num_actions: int,
        states: Callable[[], Sequence[Any]],
        observations: Callable[[], NDArray[np.float32]] | None = None,
        packed: Callable[[], Packed] | None = None,
        info: GameInfo | None = None,
    ) -> None:
        """`info` is the game they belong to: only where it is known can values be held to its range."""
        self.rows = rows
        self.num_players = num_players
        self.num_actions = num_actions
        self.states = states
        self.packed = packed
        self.info = info
        self._observations = observations

    @classmethod
    def of(cls, states: Sequence[Any]) -> Batch:
        """A batch of these states."""
        info = describe(states[0])
        return cls(len(states), info.num_players, info.num_actions, lambda: states, info=info)

    def observations(self) -> NDArray[np.float32]:
        """What the positions look like, [rows, ...]."""
        return stack_observations(self.states()) if self._observations is None else self._observations()


def stack_observations(states: Sequence[Any]) -> NDArray[np.float32]:
    """The observations of states, as one batch."""
    name = type(states[0]).__name__
    if not hasattr(states[0], "observation"):
        raise GameContractError(
            f"{name} has no observation(): an evaluator of observations needs one "
            "(or give an evaluator with evaluate_states)"
        )
    try:
        # Each is copied when it is asked for: a game may fill and return the same array every time.
        return np.stack([np.array(state.observation(), dtype=np.float32) for state in states])
    except Exception as error:
        raise GameContractError(f"{name}.observation() failed: {error}") from error
