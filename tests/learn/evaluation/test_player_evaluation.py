"""Evaluations, concurrent with training and inline."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn.data.checkpoint import Counters
from pondertree.learn.evaluation.player_evaluation import AsyncEvaluation, Evaluation


class Slow:
    """An evaluator that blocks until it is released."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.seen: list[int] = []

    def evaluate(self, player: Any, counters: Counters) -> Evaluation:
        assert self.may_end.wait(30.0)
        if player == "nonsense":
            raise ValueError("such a player cannot be evaluated")
        self.seen.append(counters.step)
        return Evaluation(f"step {counters.step}", {})


def test_concurrent_evaluation_does_not_block_training() -> None:
    evaluator, counters = Slow(), Counters(step=5)
    evaluation_queue = AsyncEvaluation(evaluator, concurrent=True)  # type: ignore[arg-type]
    evaluation_queue.begin("player", counters, 1.5)
    assert evaluation_queue.is_busy
    assert evaluation_queue.finished(wait=False) is None
    counters.step = 9
    evaluator.may_end.set()
    found = evaluation_queue.finished(wait=True)
    assert found is not None
    assert found.evaluation == Evaluation("step 5", {})
    assert (found.counters.step, found.counters.elapsed) == (5, 1.5)
    assert not evaluation_queue.is_busy
    assert evaluation_queue.finished(wait=True) is None
    evaluation_queue.close()


@pytest.mark.parametrize("concurrent", [True, False])
def test_evaluation_error_is_raised_on_fetch(concurrent: bool) -> None:
    evaluator = Slow()
    evaluator.may_end.set()
    evaluation_queue = AsyncEvaluation(evaluator, concurrent=concurrent)  # type: ignore[arg-type]

    def evaluate() -> None:
        evaluation_queue.begin("nonsense", Counters(), 0.0)
        evaluation_queue.finished(wait=True)

    with pytest.raises(ValueError, match="cannot be evaluated"):
        evaluate()
    evaluation_queue.close()


def test_inline_evaluation_is_complete_after_begin() -> None:
    evaluator = Slow()
    evaluator.may_end.set()
    evaluation_queue = AsyncEvaluation(evaluator, concurrent=False)  # type: ignore[arg-type]
    evaluation_queue.begin("player", Counters(step=2), 0.0)
    assert evaluator.seen == [2]
    assert evaluation_queue.finished(wait=False) is not None
    evaluation_queue.close()
