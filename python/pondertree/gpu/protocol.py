"""The contract between a search and a backend that runs its network on a device.

A search queries once per run what a backend (an evaluator or a learned model) supports. If the answer is no, or if the
network's first output shows that it does not fit, the search rolls back the batch under way and evaluates batch by
batch from then on, where outputs of every form are read and errors are detailed. There is no other fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pondertree.gpu.tree_shape import TreeShape

#: Batches of more rows than this fill a device, so that padding costs time.
FINE_PADDING_ROWS = 512
#: Called between batches; True ends the run early.
ShouldStop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class RowLayout:
    """One request for a position of a compiled game, in 64-bit words: bit planes; scalars, two to a word (float32);
    legal actions, four to a word (uint16). Low bits come first; unused bits are 0.
    """

    plane_words: int
    """The words of all bit planes; a plane has one for every 64 cells."""
    scalars: int
    legal: int
    """The most legal actions of any position."""
    words: int
    height: int
    width: int
    num_actions: int

    @property
    def first_scalar(self) -> int:
        """The index of the first scalar in a row of 32-bit numbers."""
        return 2 * self.plane_words

    @property
    def first_action(self) -> int:
        """The index of the first legal action in a row of 16-bit numbers."""
        return 4 * (self.plane_words + (self.scalars + 1) // 2)

    @property
    def words_per_plane(self) -> int:
        """The words of one bit plane."""
        return -(-self.height * self.width // 64)

    @property
    def planes(self) -> int:
        """The number of bit planes."""
        return self.plane_words // self.words_per_plane


class Mode(Enum):
    """How a backend may serve a search, other than batch by batch."""

    PIPELINED = "double-buffered batches"
    DEVICE = "trees on the device"


class Support(NamedTuple):
    """The result of a capability query."""

    ok: bool
    reason: str = ""
    """The reason if not ok."""


SUPPORTED = Support(True)


class UnsupportedOutput(Exception):  # noqa: N818 (`GraphCache.launch` returns it as a `Support`)
    """The output of a network has a form that buffers and kernels cannot hold."""


@dataclass(frozen=True, slots=True)
class Job:
    """The requirements of a search, which a backend checks in `supports`."""

    trees: int
    layout: RowLayout | None = None
    """Layout of requests for positions of a compiled game."""
    hidden: Any = None
    """Hidden states of the roots, if the backend is a learned model."""
    shapes: Sequence[TreeShape] = ()
    """One shape per group of trees, for `Mode.DEVICE`."""


class InferenceBuffer(Protocol):
    """Pinned memory for one batch of requests and its responses; one batch is in flight at a time."""

    @property
    def requests(self) -> NDArray[Any]:
        """[capacity, words]: uint64 rows (`RowLayout`), or int64 (parent slot, action, new slot) of a learned model.

        Must not be written between `submit` and `wait`.
        """
        ...

    @property
    def responses(self) -> NDArray[np.float32]:
        """[capacity, legal + 1]: policy of each legal action, and the value for the player to move.

        Of a learned model: reward, value, discount if it gives one, and the policy; see `LatentBuffer`.
        """
        ...

    def submit(self, rows: int) -> Support:
        """Starts the inference of the first `rows` requests; not ok if the network's output does not fit."""
        ...

    def wait(self) -> None:
        """Blocks until the responses are complete."""
        ...


class LatentBuffer(InferenceBuffer, Protocol):
    """A buffer for steps of a learned model."""

    has_discount: bool
    top_k: int | None
    """The policy of a response holds logits of all actions if None; else log-sum-exp in two parts, the `top_k` highest
    logits, and their actions.
    """


class DeviceContext(Protocol):
    """Buffers and device trees of one network, leased by one search at a time."""

    def trees(self, shapes: Sequence[TreeShape]) -> Sequence[Any] | None:
        """A group of `DeviceTrees` for each shape; None if memory or the kernel is missing."""
        ...


class GameContext(DeviceContext, Protocol):
    """The context of a compiled game."""

    def buffers(self, capacities: Sequence[int]) -> Sequence[InferenceBuffer]:
        """One buffer for each capacity."""
        ...


class LatentContext(DeviceContext, Protocol):
    """The context of a learned model, which also holds the hidden states of a forest."""

    pool: Any

    def buffers(self, capacities: Sequence[int], max_visits: int) -> Sequence[LatentBuffer]:
        """One buffer for each capacity; no node is visited more often than `max_visits`."""
        ...


class InferenceBackend(Protocol):
    """A network on a device, as the GPU path uses it."""

    def supports(self, job: Job, mode: Mode) -> Support:
        """The capability query."""
        ...

    def rows_per_batch(self, rows: int) -> int:
        """The best batch size for `rows` rows: smaller where halves are computed alternately."""
        ...

    def acquire(self, job: Job) -> Any:
        """Leases a context for a job that `Mode.PIPELINED` supports."""
        ...

    def release(self, context: Any) -> None:
        """Takes a context back for later searches. Finalizers call it, so that it takes no lock."""
        ...


def is_backend(network: Any) -> bool:
    """Whether an evaluator or model implements `InferenceBackend`."""
    return hasattr(network, "supports") and hasattr(network, "acquire")


def query(backend: Any, job: Job, mode: Mode) -> Support:
    """What any evaluator or model supports; those without a `supports` method compute batch by batch."""
    if not is_backend(backend):
        return Support(False, f"{type(backend).__name__} computes batch by batch")
    support: Support = backend.supports(job, mode)
    return support


def graph_batch_size(rows: int) -> int:
    """Rounds a number of rows up to one that graphs are captured for: few sizes for small batches; for large ones,
    multiples of a sixteenth of a power of two.
    """
    power = 1 << max(rows - 1, 0).bit_length()
    if power > FINE_PADDING_ROWS:
        step = power // 16
        return -(-rows // step) * step
    return power * 3 // 4 if power >= 8 and rows <= power * 3 // 4 else power
