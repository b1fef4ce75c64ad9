"""Groups of trees that take turns with a learned model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree import _core
from pondertree.evaluators.lane import Lane, NotForLanes
from pondertree.models.lane import LaneModel, Studio
from pondertree.turns import Turns
from pondertree.world import Over


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
        actions = None if answers is None or lane.likeliest else answers.shape[1] - 2 - lane.has_discount
        if actions not in (None, self._core.num_actions):
            raise NotForLanes("asked again batch by batch, it is told in words that logits are missing")
        asked = self._core.exchange_latent(group, answers, questions, lane.has_discount, lane.likeliest)
        slots = self._core.num_slots()
        if slots > self._pool.capacity:
            # The table moves: nobody may be reading it.
            for other in self._under_way:
                self._lanes[other].wait()
            self._pool.reserve(slots)
        return asked

    def _apply_with_care(self, group: int, lane: Lane) -> None:
        raise NotForLanes("asked again batch by batch, the model's answer is told in words")
