"""Asynchronous evaluation: at most one at a time, in a worker thread while training continues, or inline."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from pondertree.learn.data.checkpoint import Counters
from pondertree.learn.evaluation.player_evaluation import Evaluation, PlayerEvaluator


class CompletedEvaluation(NamedTuple):
    """An evaluation, and the counters when its player was taken."""

    evaluation: Evaluation | None
    counters: Counters


class AsyncEvaluation:
    """Runs at most one evaluation at a time."""

    def __init__(self, evaluator: PlayerEvaluator, *, concurrent: bool) -> None:
        """`concurrent` runs evaluations in a worker thread: their small batches leave a GPU mostly idle."""
        self._evaluator = evaluator
        self._worker = ThreadPoolExecutor(1, "evaluation") if concurrent else None
        self._pending: Future[CompletedEvaluation] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an evaluation was started whose result has not been fetched."""
        return self._pending is not None

    def begin(self, player: Any, counters: Counters, elapsed: float) -> None:
        """Starts an evaluation; the player must not change from now on."""
        snapshot = replace(counters, elapsed=elapsed)

        def evaluate() -> CompletedEvaluation:
            return CompletedEvaluation(self._evaluator.evaluate(player, snapshot), snapshot)

        self._pending = _completed(evaluate) if self._worker is None else self._worker.submit(evaluate)

    def finished(self, *, wait: bool) -> CompletedEvaluation | None:
        """Returns the evaluation if it is done, or once it is with `wait`; re-raises its exception."""
        if self._pending is None or not (wait or self._pending.done()):
            return None
        pending, self._pending = self._pending, None
        return pending.result()

    def close(self) -> None:
        """Waits for a running evaluation and discards it."""
        self._pending = None
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)


def _completed(function: Callable[[], CompletedEvaluation]) -> Future[CompletedEvaluation]:
    future: Future[CompletedEvaluation] = Future()
    future.set_result(function())
    return future
