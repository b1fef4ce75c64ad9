"""Evaluations beside a training, and in its way."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn.data.checkpoint import Counters
from pondertree.learn.evaluation.examiner import Evaluation, Examining


class Slow:
    """An examiner that waits to be let go."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.seen: list[int] = []

    def examine(self, player: Any, counters: Counters) -> Evaluation:
        assert self.may_end.wait(30.0)
        if player == "nonsense":
            raise ValueError("such a player cannot be examined")
        self.seen.append(counters.step)
        return Evaluation(f"step {counters.step}", {})


def test_a_training_goes_on_beside_an_evaluation() -> None:
    examiner, counters = Slow(), Counters(step=5)
    examining = Examining(examiner, beside=True)  # type: ignore[arg-type]
    examining.begin("player", counters, 1.5)
    assert examining.is_busy
    assert examining.finished(wait=False) is None
    counters.step = 9
    examiner.may_end.set()
    found = examining.finished(wait=True)
    assert found is not None
    assert found.evaluation == Evaluation("step 5", {})
    assert (found.counters.step, found.counters.elapsed) == (5, 1.5)
    assert not examining.is_busy
    assert examining.finished(wait=True) is None
    examining.close()


@pytest.mark.parametrize("beside", [True, False])
def test_what_goes_wrong_in_an_evaluation_is_told(beside: bool) -> None:
    examiner = Slow()
    examiner.may_end.set()
    examining = Examining(examiner, beside=beside)  # type: ignore[arg-type]

    def examine() -> None:
        examining.begin("nonsense", Counters(), 0.0)
        examining.finished(wait=True)

    with pytest.raises(ValueError, match="cannot be examined"):
        examine()
    examining.close()


def test_in_the_way_it_is_over_when_it_has_begun() -> None:
    examiner = Slow()
    examiner.may_end.set()
    examining = Examining(examiner, beside=False)  # type: ignore[arg-type]
    examining.begin("player", Counters(step=2), 0.0)
    assert examiner.seen == [2]
    assert examining.finished(wait=False) is not None
    examining.close()
