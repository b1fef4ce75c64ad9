"""Temperature schedules."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from pondertree import Temperature
from pondertree.errors import InvalidArgumentError


def test_temperature_schedules_of_alphazero_chess_and_puct() -> None:
    for until in (30, 10):
        schedule = Temperature(1.0, until=until)
        for move_number in range(100):
            assert schedule(move_number) == (1.0 if move_number < until else 0.0)


def test_temperature_schedule_with_then_and_without_until() -> None:
    assert [Temperature(1.5, until=2, then=0.25)(n) for n in range(4)] == [1.5, 1.5, 0.25, 0.25]
    assert Temperature(0.5)(10_000) == 0.5
    assert Temperature(1.0, until=0)(0) == 0.0
    assert Temperature()(0) == 1.0


def test_temperature_schedule_is_a_frozen_value() -> None:
    schedule = Temperature(1, until=np.int64(30))  # type: ignore[arg-type]
    assert schedule == Temperature(1.0, until=30, then=0.0)
    assert hash(schedule) == hash(Temperature(1.0, until=30))
    assert repr(schedule) == "Temperature(value=1.0, until=30, then=0.0)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.value = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"value": -1.0}, "value"),
        ({"value": float("nan")}, "value"),
        ({"value": "warm"}, "value"),
        ({"value": 1.0, "until": -1}, "until"),
        ({"value": 1.0, "until": 2.5}, "until"),
        ({"value": 1.0, "then": float("inf")}, "then"),
    ],
)
def test_temperature_schedule_refuses_invalid_arguments(arguments: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidArgumentError, match=names):
        Temperature(**arguments)


@pytest.mark.parametrize("move_number", [-1, 1.5, None])
def test_temperature_schedule_refuses_invalid_move_numbers(move_number: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="move_number"):
        Temperature()(move_number)
