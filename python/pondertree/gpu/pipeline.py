"""Groups of trees that take turns with a network: while it computes for one, the engine searches the others."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pondertree import _core
from pondertree.config import SearchConfig
from pondertree.evaluators.outputs import check_values
from pondertree.evaluators.protocol import call
from pondertree.game import GameInfo
from pondertree.gpu.protocol import Lane, LaneEvaluator, Line, NotForLanes
from pondertree.models.context import LaneModel, Studio

#: Asked between batches whether to end the run early.
Over = Callable[[], bool]


class Turns(ABC):
    """The groups of one forest, each with its lane through a network."""

    def __init__(self, core: _core.Forest, lanes: Sequence[Lane], over: Over | None) -> None:
        self._core = core
        self._lanes = lanes
        self._over = over
        self._under_way: deque[int] = deque()
        """Groups whose questions are being answered, the earliest first."""

    def run(self) -> None:
        """Until no tree wants more, or it is time to come back. After an exception the caller rolls back."""
        try:
            for group in range(len(self._lanes)):
                self._next(group, None)
            while self._under_way:
                group = self._under_way[0]
                call(self._lanes[group].wait)
                self._under_way.popleft()
                self._next(group, self._lanes[group])
        finally:
            self.wait_for_all()

    def wait_for_all(self) -> None:
        """Nothing may be written into memory that others get next. Of several that fail, the first is told."""
        for group in self._under_way:
            with contextlib.suppress(Exception):
                self._lanes[group].wait()

    def _next(self, group: int, answered: Lane | None) -> None:
        """Hands a group its answers, and submits its next questions."""
        lane = self._lanes[group]
        rows, goes_on = 0, True
        while rows == 0 and goes_on:
            stop = self._core.stopped or (self._over is not None and answered is not None and self._over())
            questions = None if stop else lane.questions
            asked = self._exchange(group, None if answered is None else answered.answers, questions)
            if asked is None:
                self._apply_with_care(group, lane)
                asked = self._exchange(group, None, questions)
                assert asked is not None, "only answers can be unusual"
            rows, goes_on = asked
            # A batch of ends alone has no questions, and no answers.
            answered = lane
        if rows:
            call(lane.submit, rows)
            self._under_way.append(group)

    @abstractmethod
    def _exchange(self, group: int, answers: Any, questions: Any) -> tuple[int, bool] | None:
        """Answers in, questions out: how many, and whether the group goes on. None: the answers are unusual."""

    @abstractmethod
    def _apply_with_care(self, group: int, lane: Lane) -> None:
        """Hands over answers that have something unusual in them: most likely an error to be told in words."""


class GameTurns(Turns):
    """A forest of a compiled game, asking an evaluator."""

    def __init__(
        self, core: _core.Forest, evaluator: LaneEvaluator, info: GameInfo, in_flight: int, over: Over | None
    ) -> None:
        self._evaluator = evaluator
        self._info = info
        self._probabilities = evaluator.policy == "probabilities"
        rows = evaluator.rows_per_call(len(core) * in_flight)
        self.sizes = sizes = core.form_groups(max(rows // in_flight, 1))
        """How many trees each group has."""
        self._line = Line(*core.question_line(), *info.plane_shape, info.num_actions)
        super().__init__(core, evaluator.open_lanes(self._line, [size * in_flight for size in sizes]), over)

    @property
    def lanes(self) -> Sequence[Lane]:
        """The lane of each group."""
        return self._lanes

    def ask_about_roots(self) -> None:
        """Submits one batch of each group alone: of new trees, the roots, where they are not known yet."""
        first = 0
        for group, (lane, size) in enumerate(zip(self._lanes, self.sizes, strict=True)):
            known = self._core.roots_known(first, first + size)
            first += size
            asked = None if known else self._exchange(group, None, lane.questions)
            if asked is not None and asked[0]:
                call(lane.submit, asked[0])
                self._under_way.append(group)

    def answer_roots(self, group: int) -> None:
        """Hands a group its answers, and asks no more."""
        if group in self._under_way:
            call(self._lanes[group].wait)
            self._under_way.remove(group)
            if self._exchange(group, self._lanes[group].answers, None) is None:
                self._apply_with_care(group, self._lanes[group])

    def run(self) -> None:
        """Until no tree wants more, or it is time to come back."""
        try:
            super().run()
        finally:
            self._evaluator.close_lanes(self._lanes)

    def _exchange(self, group: int, answers: Any, questions: Any) -> tuple[int, bool] | None:
        return self._core.exchange(group, answers, questions, self._probabilities)

    def _apply_with_care(self, group: int, lane: Lane) -> None:
        offsets, _ = self._core.waiting_legal(group)
        counts = np.diff(offsets)
        rows = len(counts)
        answers = lane.answers[:rows]
        policy = answers[:, : self._line.legal][np.arange(self._line.legal) < counts[:, None]]
        values = check_values(answers[:, self._line.legal], rows, self._info.num_players, self._info)
        self._core.apply(policy, values, self._probabilities, group)


def asks_of_leaves(config: SearchConfig) -> bool:
    """Whether a search asks an evaluator about leaves as they are, for priors and a value."""
    return config.rule.has_priors and config.max_depth in (None, 0) and config.python_policy is None


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
        slots = self._core.most_slots()
        if slots > self._pool.capacity:
            # The table moves: nobody may be reading it.
            for other in self._under_way:
                self._lanes[other].wait()
            self._pool.reserve(slots)
        return asked

    def _apply_with_care(self, group: int, lane: Lane) -> None:
        raise NotForLanes("asked again batch by batch, the model's answer is told in words")
