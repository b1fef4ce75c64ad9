"""What a search in a learned model keeps from one run to the next: the table of hidden states, and lanes through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ponderosa import _core
from ponderosa.evaluators.lane import Lane, NotForLanes
from ponderosa.models.pool import HiddenPool
from ponderosa.turns import Turns
from ponderosa.world import Over


class ModelLane(Protocol):
    """One batch of steps at a time on its way through a model. A question is the slot of a position, an action, and the
    slot of the position after it.
    """

    questions: NDArray[np.int64]
    """[capacity, 3]."""
    answers: NDArray[np.float32]
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


class Studio(Protocol):
    """A table of hidden states, and lanes that read and write it."""

    pool: HiddenPool

    def open_lanes(self, capacities: Sequence[int], most_visits: int) -> Sequence[ModelLane]:
        """A lane for each capacity; no node of the search is visited more often than `most_visits`."""
        ...


class LaneModel(Protocol):
    """A model that has studios."""

    def rows_per_call(self, rows: int) -> int:
        """How many of `rows` rows it would like to be asked at once."""
        ...

    def hire_studio(self, hidden: Any, trees: int) -> Studio | None:
        """A studio for hidden states like these, for as long as a forest lives; None if there can be none."""
        ...

    def return_studio(self, studio: Studio) -> None:
        """Takes it back; the next forest may have it again."""
        ...


def has_studios(model: Any) -> TypeGuard[LaneModel]:
    """Whether a model answers in lanes."""
    return hasattr(model, "hire_studio")


class ModelTurns(Turns):
    """A forest of a learned model."""

    _lanes: Sequence[Any]

    def __init__(
        self,
        core: _core.Forest,
        model: LaneModel,
        studio: Studio,
        in_flight: int,
        most_visits: int,
        over: Over | None,
    ) -> None:
        rows = model.rows_per_call(len(core) * in_flight)
        sizes = core.form_groups(max(rows // in_flight, 1))
        self._pool = studio.pool
        lanes: Any = studio.open_lanes([size * in_flight for size in sizes], most_visits)
        super().__init__(core, lanes, over)

    def _exchange(self, group: int, answers: Any, questions: Any) -> tuple[int, bool] | None:
        lane = self._lanes[group]
        asked = self._core.exchange_latent(group, answers, questions, lane.has_discount, lane.likeliest)
        slots = self._core.most_slots()
        if slots > self._pool.capacity:
            # The table moves: nobody may be reading it.
            for other in self._under_way:
                self._lanes[other].wait()
            self._pool.reserve(slots)
        return asked

    def _apply_with_care(self, group: int, lane: Lane) -> None:
        raise NotForLanes("asked again batch by batch, the model's answer is told in words")
