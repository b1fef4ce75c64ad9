"""Groups of trees that take turns with a network: while it computes for one, the engine searches the others."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from pondertree._core import Forest as EngineForest
from pondertree.config import Settings
from pondertree.evaluators.outputs import check_values
from pondertree.evaluators.protocol import call
from pondertree.game import GameInfo
from pondertree.gpu.protocol import InferenceBuffer, NotForLanes, PipelinedEvaluator, RowLayout
from pondertree.models.context import DeviceContext, PipelinedModel
from pondertree.search.world import Over


class Turns(ABC):
    """The groups of one forest, each with its lane through a network."""

    def __init__(self, core: EngineForest, buffers: Sequence[InferenceBuffer], over: Over | None) -> None:
        self._core = core
        self._buffers = buffers
        self._over = over
        self._under_way: deque[int] = deque()
        """Groups whose questions are being answered, the earliest first."""

    def run(self) -> None:
        """Until no tree wants more, or it is time to come back. After an exception the caller rolls back."""
        try:
            for group in range(len(self._buffers)):
                self._next(group, None)
            while self._under_way:
                group = self._under_way[0]
                call(self._buffers[group].wait)
                self._under_way.popleft()
                self._next(group, self._buffers[group])
        finally:
            self.wait_for_all()

    def wait_for_all(self) -> None:
        """Nothing may be written into memory that others get next. Of several that fail, the first is told."""
        for group in self._under_way:
            with contextlib.suppress(Exception):
                self._buffers[group].wait()

    def _next(self, group: int, answered: InferenceBuffer | None) -> None:
        """Hands a group its answers, and submits its next questions."""
        buffer = self._buffers[group]
        rows, goes_on = 0, True
        while rows == 0 and goes_on:
            stop = self._core.stopped or (self._over is not None and answered is not None and self._over())
            requests = None if stop else buffer.requests
            asked = self._exchange(group, None if answered is None else answered.responses, requests)
            if asked is None:
                self._apply_with_care(group, buffer)
                asked = self._exchange(group, None, requests)
                assert asked is not None, "only answers can be unusual"
            rows, goes_on = asked
            # A batch of ends alone has no questions, and no answers.
            answered = buffer
        if rows:
            call(buffer.submit, rows)
            self._under_way.append(group)

    @abstractmethod
    def _exchange(self, group: int, responses: Any, requests: Any) -> tuple[int, bool] | None:
        """Answers in, questions out: how many, and whether the group goes on. None: the answers are unusual."""

    @abstractmethod
    def _apply_with_care(self, group: int, buffer: InferenceBuffer) -> None:
        """Hands over answers that have something unusual in them: most likely an error to be told in words."""


class GameTurns(Turns):
    """A forest of a compiled game, asking an evaluator."""

    def __init__(
        self, core: EngineForest, evaluator: PipelinedEvaluator, info: GameInfo, in_flight: int, over: Over | None
    ) -> None:
        self._evaluator = evaluator
        self._info = info
        self._probabilities = evaluator.policy == "probabilities"
        rows = evaluator.rows_per_call(len(core) * in_flight)
        self.sizes = sizes = core.form_groups(max(rows // in_flight, 1))
        """How many trees each group has."""
        self._layout = RowLayout(*core.row_layout(), *info.plane_shape, info.num_actions)
        super().__init__(core, evaluator.acquire_buffers(self._layout, [size * in_flight for size in sizes]), over)

    @property
    def buffers(self) -> Sequence[InferenceBuffer]:
        """The lane of each group."""
        return self._buffers

    def ask_about_roots(self) -> None:
        """Submits one batch of each group alone: of new trees, the roots, where they are not known yet."""
        first = 0
        for group, (buffer, size) in enumerate(zip(self._buffers, self.sizes, strict=True)):
            known = self._core.roots_evaluated(first, first + size)
            first += size
            asked = None if known else self._exchange(group, None, buffer.requests)
            if asked is not None and asked[0]:
                call(buffer.submit, asked[0])
                self._under_way.append(group)

    def answer_roots(self, group: int) -> None:
        """Hands a group its answers, and asks no more."""
        if group in self._under_way:
            call(self._buffers[group].wait)
            self._under_way.remove(group)
            if self._exchange(group, self._buffers[group].responses, None) is None:
                self._apply_with_care(group, self._buffers[group])

    def run(self) -> None:
        """Until no tree wants more, or it is time to come back."""
        try:
            super().run()
        finally:
            self._evaluator.release_buffers(self._buffers)

    def _exchange(self, group: int, responses: Any, requests: Any) -> tuple[int, bool] | None:
        return self._core.exchange(group, responses, requests, self._probabilities)

    def _apply_with_care(self, group: int, buffer: InferenceBuffer) -> None:
        offsets, _ = self._core.waiting_legal(group)
        counts = np.diff(offsets)
        rows = len(counts)
        responses = buffer.responses[:rows]
        policy = responses[:, : self._layout.legal][np.arange(self._layout.legal) < counts[:, None]]
        values = check_values(responses[:, self._layout.legal], rows, self._info.num_players, self._info)
        self._core.apply(policy, values, self._probabilities, group)


def asks_of_leaves(settings: Settings) -> bool:
    """Whether a search asks an evaluator about leaves as they are, for priors and a value."""
    return settings.score.has_priors and settings.max_depth in (None, 0) and settings.python_policy is None


class ModelTurns(Turns):
    """A forest of a learned model."""

    _buffers: Sequence[Any]

    def __init__(
        self,
        core: EngineForest,
        model: PipelinedModel,
        context: DeviceContext,
        in_flight: int,
        most_visits: int,
        over: Over | None,
    ) -> None:
        rows = model.rows_per_call(len(core) * in_flight)
        sizes = core.form_groups(max(rows // in_flight, 1))
        self._pool = context.pool
        buffers: Any = context.acquire_buffers([size * in_flight for size in sizes], most_visits)
        super().__init__(core, buffers, over)

    def _exchange(self, group: int, responses: Any, requests: Any) -> tuple[int, bool] | None:
        buffer = self._buffers[group]
        actions = None if responses is None or buffer.likeliest else responses.shape[1] - 2 - buffer.has_discount
        if actions not in (None, self._core.num_actions):
            raise NotForLanes("asked again batch by batch, it is told in words that logits are missing")
        asked = self._core.exchange_latent(group, responses, requests, buffer.has_discount, buffer.likeliest)
        slots = self._core.num_slots()
        if slots > self._pool.capacity:
            # The table moves: nobody may be reading it.
            for other in self._under_way:
                self._buffers[other].wait()
            self._pool.reserve(slots)
        return asked

    def _apply_with_care(self, group: int, buffer: InferenceBuffer) -> None:
        raise NotForLanes("asked again batch by batch, the model's answer is told in words")
