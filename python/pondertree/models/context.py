"""What a search in a learned model keeps from one run to the next: the table of hidden states, and lanes through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from pondertree.gpu.offload import Trees
from pondertree.gpu.tree_shape import TreeShape
from pondertree.models.pool import HiddenPool


class LatentBuffer(Protocol):
    """One batch of steps at a time on its way through a model. A question is the slot of a position, an action, and the
    slot of the position after it.
    """

    requests: NDArray[np.int64]
    """[capacity, 3]."""
    responses: NDArray[np.float32]
    """[capacity, ...]: reward, value, discount if the model says one, then what it says of actions; see `likeliest`."""
    has_discount: bool
    likeliest: int | None
    """Of so many of the likeliest actions alone: the logarithm of the sum of all exponentials, their logits, the
    actions. None: a logit for each action.
    """

    def submit(self, rows: int) -> None:
        """Begins to answer the first `rows` questions."""
        ...

    def wait(self) -> None:
        """Comes back when they are answered."""
        ...


class DeviceContext(Protocol):
    """A table of hidden states, and lanes that read and write it."""

    pool: HiddenPool

    def acquire_buffers(self, capacities: Sequence[int], most_visits: int) -> Sequence[LatentBuffer]:
        """A lane for each capacity; no node of the search is visited more often than `most_visits`."""
        ...

    def open_trees(self, shape: TreeShape) -> Trees | None:
        """Trees that are searched where the model computes; None where they cannot be, or need not."""
        ...


class PipelinedModel(Protocol):
    """A model that has studios."""

    def rows_per_call(self, rows: int) -> int:
        """How many of `rows` rows it would like to be asked at once."""
        ...

    def acquire(self, hidden: Any, trees: int) -> DeviceContext | None:
        """A studio for hidden states like these, for as long as a forest lives; None if there can be none."""
        ...

    def refresh(self, context: DeviceContext | None) -> None:
        """Before each search: the model may have been changed, and a studio forgets what it knows of the old one."""
        ...

    def release(self, context: DeviceContext) -> None:
        """Takes it back; the next forest may have it again."""
        ...


def is_pipelined(model: Any) -> TypeGuard[PipelinedModel]:
    """Whether a model answers in lanes."""
    return hasattr(model, "acquire")
