"""Evaluations while a training goes on: beside it where it plays and learns side by side, else in its way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from pondertree.learn.evaluate import Evaluation, Examiner
from pondertree.learn.session import Counters


class Examined(NamedTuple):
    """What an evaluation found, and when the player was taken."""

    evaluation: Evaluation | None
    counters: Counters


class Examining:
    """At most one evaluation at a time."""

    def __init__(self, examiner: Examiner, *, beside: bool) -> None:
        """`beside` lets the training go on meanwhile: games that wait for one answer at a time leave a device idle."""
        self._examiner = examiner
        self._worker = ThreadPoolExecutor(1, "evaluation") if beside else None
        self._pending: Future[Examined] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an evaluation has begun and was not yet asked for."""
        return self._pending is not None

    def begin(self, player: Any, counters: Counters, elapsed: float) -> None:
        """Begins an evaluation of a player, which nobody changes from now on."""
        then = replace(counters, elapsed=elapsed)

        def examine() -> Examined:
            return Examined(self._examiner.examine(player, then), then)

        self._pending = _done(examine) if self._worker is None else self._worker.submit(examine)

    def finished(self, *, wait: bool) -> Examined | None:
        """What the evaluation has found, if it is over, or once it is; what went wrong in it goes wrong here."""
        if self._pending is None or not (wait or self._pending.done()):
            return None
        pending, self._pending = self._pending, None
        return pending.result()

    def close(self) -> None:
        """Waits for what is under way, and forgets it."""
        self._pending = None
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)


def _done(work: Callable[[], Examined]) -> Future[Examined]:
    future: Future[Examined] = Future()
    future.set_result(work())
    return future
