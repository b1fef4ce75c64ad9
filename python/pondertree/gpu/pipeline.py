"""Double-buffered batches: while the network computes for one group of trees, the engine searches the others."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from pondertree.errors import call_evaluator
from pondertree.gpu.protocol import SUPPORTED, InferenceBuffer, ShouldStop, Support


class Exchange(Protocol):
    """The engine's side of the pipeline: applies responses to a group of trees and gathers its next requests."""

    @property
    def stopped(self) -> bool:
        """Whether the search was stopped from outside."""
        ...

    def exchange(
        self, group: int, responses: InferenceBuffer | None, requests: InferenceBuffer | None
    ) -> tuple[int, bool] | None:
        """Applies the responses in one buffer and writes requests into another; either may be None.

        Returns the number of requests, and whether the group is unfinished. None, with nothing changed, if
        the responses need `revalidate`.
        """
        ...

    def revalidate(self, group: int, buffer: InferenceBuffer) -> Support:
        """Applies responses with full validation, which raises a detailed error; not ok if it cannot read them."""
        ...


class InferencePipeline:
    """Groups of trees, each with its own buffer, that use a network alternately."""

    def __init__(
        self, exchange: Exchange, buffers: Sequence[InferenceBuffer], should_stop: ShouldStop | None = None
    ) -> None:
        self._exchange = exchange
        self._buffers = buffers
        self._should_stop = should_stop
        self._in_flight: deque[int] = deque()
        """Groups with a submitted batch, the oldest first."""

    def run(self) -> Support:
        """Runs until every tree has its simulations or the search is to stop.

        If the result is not ok, or after an exception, the caller rolls back the batch under way.
        """
        try:
            for group in range(len(self._buffers)):
                support = self._advance(group, is_answered=False)
                if not support.ok:
                    return support
            while self._in_flight:
                group = self._in_flight[0]
                call_evaluator(self._buffers[group].wait)
                self._in_flight.popleft()
                support = self._advance(group, is_answered=True)
                if not support.ok:
                    return support
            return SUPPORTED
        finally:
            self.drain()

    def submit(self, groups: Iterable[int]) -> Support:
        """Submits one batch of each of these groups."""
        for group in groups:
            result = self._exchange.exchange(group, None, self._buffers[group])
            if result is not None and result[0]:
                support: Support = call_evaluator(self._buffers[group].submit, result[0])
                if not support.ok:
                    return support
                self._in_flight.append(group)
        return SUPPORTED

    def complete(self, group: int) -> Support:
        """Waits for the batch of a group, if it has one in flight, and applies its responses."""
        if group not in self._in_flight:
            return SUPPORTED
        call_evaluator(self._buffers[group].wait)
        self._in_flight.remove(group)
        if self._exchange.exchange(group, self._buffers[group], None) is None:
            return self._exchange.revalidate(group, self._buffers[group])
        return SUPPORTED

    def drain(self) -> None:
        """Waits for all batches in flight: no device may write into buffers that another search acquires."""
        for group in self._in_flight:
            with contextlib.suppress(Exception):
                self._buffers[group].wait()

    def _advance(self, group: int, is_answered: bool) -> Support:
        """Applies the responses of a group and submits its next requests."""
        buffer = self._buffers[group]
        rows, wants_more = 0, True
        while rows == 0 and wants_more:
            stop = self._exchange.stopped or (self._should_stop is not None and is_answered and self._should_stop())
            requests = None if stop else buffer
            result: Any = self._exchange.exchange(group, buffer if is_answered else None, requests)
            if result is None:
                support = self._exchange.revalidate(group, buffer)
                if not support.ok:
                    return support
                result = self._exchange.exchange(group, None, requests)
                assert result is not None, "only responses need validation"
            rows, wants_more = result
            # A batch of terminal leaves alone has no requests, and no responses.
            is_answered = True
        if rows:
            submitted: Support = call_evaluator(buffer.submit, rows)
            if not submitted.ok:
                return submitted
            self._in_flight.append(group)
        return SUPPORTED
