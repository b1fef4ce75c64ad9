"""How a network computes while the engine goes on: a lane has memory for the questions of one group of trees and for
the answers to them. Whoever fills it submits it, and waits for it only when nothing else is left to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import PondertreeError

#: Batches of more rows than this fill a device, so that each row too many takes its time.
FINE_FROM = 512


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What one question holds, in words of 64 bits: bit planes, one to a word; scalars, two to a word (float32); legal
    actions, four to a word (16 bits). Low bits come first, and what is beyond the last is 0.
    """

    planes: int
    scalars: int
    legal: int
    """Places for legal actions: as many as any position of the game has."""
    words: int
    height: int
    width: int
    num_actions: int

    @property
    def first_scalar(self) -> int:
        """Where the scalars begin, counted in numbers of 32 bits."""
        return 2 * self.planes

    @property
    def first_action(self) -> int:
        """Where the legal actions begin, counted in numbers of 16 bits."""
        return 4 * (self.planes + (self.scalars + 1) // 2)


class InferenceBuffer(Protocol):
    """One batch at a time on its way through a network."""

    requests: NDArray[np.uint64]
    """[capacity, line.words]; not to be written between `submit` and `wait`."""
    responses: NDArray[np.float32]
    """[capacity, line.legal + 1]: what the policy says of each legal action, and the value for the player to move."""

    def submit(self, rows: int) -> None:
        """Begins to answer the first `rows` questions."""
        ...

    def wait(self) -> None:
        """Comes back when they are answered."""
        ...


class PipelinedEvaluator(Protocol):
    """An evaluator that answers in lanes."""

    policy: str

    def rows_per_call(self, rows: int) -> int:
        """How many of `rows` rows it would like to be asked at once."""
        ...

    def acquire_buffers(self, layout: RowLayout, capacities: Sequence[int]) -> Sequence[InferenceBuffer]:
        """A lane for each capacity, for as long as a search lasts."""
        ...

    def release_buffers(self, buffers: Sequence[InferenceBuffer]) -> None:
        """Takes them back; the next search may have them again."""
        ...


class NotForLanes(PondertreeError):  # noqa: N818 (a signal inside the search, which nobody outside sees)
    """The network answers in a way that lanes have no room for; it must be asked batch by batch."""


def is_pipelined(evaluator: Any) -> TypeGuard[PipelinedEvaluator]:
    """Whether an evaluator has lanes."""
    return hasattr(evaluator, "acquire_buffers")


def padded(rows: int) -> int:
    """A number of rows that is recorded: few of them for small batches, and a sixteenth apart where rows cost much."""
    power = 1 << max(rows - 1, 0).bit_length()
    if power > FINE_FROM:
        step = power // 16
        return -(-rows // step) * step
    return power * 3 // 4 if power >= 8 and rows <= power * 3 // 4 else power
