"""Checks of arguments: errors name the argument and its row."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pondertree import validation
from pondertree.chess import categorize
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.game import describe, is_over, player_numbers
from pondertree.games import Chess, TicTacToe
from pondertree.games.connect_four import solve_many
from pondertree.match import score_of


@pytest.mark.parametrize("wrong", [math.nan, -1.0, "hot", math.inf, True])
@pytest.mark.parametrize("make", [list, tuple, lambda values: np.array(values, dtype=object)])
def test_invalid_temperature_is_named_by_its_row(wrong: Any, make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^temperature\[1\] must be"):
        validation.per_row(make([1.0, wrong, None]), 3, "temperature", validation.optional_temperature)


def test_invalid_scalar_is_named_without_a_row() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^temperature must be"):
        validation.per_row(math.nan, 3, "temperature", validation.optional_temperature)
    with pytest.raises(InvalidArgumentError, match=r"^temperature\[0\] must be"):
        validation.per_row([math.nan], 1, "temperature", validation.optional_temperature)


def test_valid_values_are_converted() -> None:
    assert validation.per_row([1, None, 0.5], 3, "temperature", validation.optional_temperature) == [1.0, None, 0.5]
    assert validation.per_row(None, 2, "temperature", validation.optional_temperature) == [None, None]
    assert validation.per_row(3, 2, "n", validation.whole_number) == [3, 3]
    assert validation.per_row([3, 4], 2, "n") == [3, 4]
    with pytest.raises(InvalidArgumentError, match="n has 1 entries for 2"):
        validation.per_row([3], 2, "n")


class Failing:
    """A number, and a list of numbers, whose conversions raise."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def fail(self) -> Any:
        raise self.error

    __index__ = __float__ = __iter__ = __bool__ = fail


CONVERSIONS: dict[str, Callable[[Failing], Any]] = {
    "whole_number": lambda value: validation.whole_number(value, "n"),
    "number": lambda value: validation.number(value, "x"),
    "elo": lambda value: score_of(value),  # type: ignore[arg-type]
    "numbers": lambda value: player_numbers(value, describe(TicTacToe()), "returns()"),
    "solve_many": lambda value: solve_many(value),
    "killers": lambda value: categorize(Chess(), killers=value),  # type: ignore[arg-type]
    "history": lambda value: categorize(Chess(), history=[value]),  # type: ignore[arg-type]
    "is_over": lambda value: is_over(SimpleNamespace(is_terminal=value)),
}


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), OverflowError("mine")])
def test_conversion_error_is_the_cause_of_the_typed_error(name: str, error: Exception) -> None:
    with pytest.raises((InvalidArgumentError, GameContractError)) as raised:
        CONVERSIONS[name](Failing(error))
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("name", CONVERSIONS)
def test_memory_error_in_a_conversion_propagates(name: str) -> None:
    with pytest.raises(MemoryError):
        CONVERSIONS[name](Failing(MemoryError()))


def test_long_texts_are_cut_to_the_length_asked_for() -> None:
    assert validation.brief("x" * 300) == "x" * 300
    assert validation.brief("x" * 301) == "x" * 297 + "..."
    assert validation.brief("x" * 301, 10) == "xxxxxxx..."
    assert validation.shown("x" * 500) == "'" + "x" * 196 + "..."


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks on this system")
def test_usable_cpus_follow_the_affinity_mask() -> None:
    before = os.sched_getaffinity(0)
    assert 1 <= validation.useful_threads(1024) <= len(before)  # fewer under a CPU quota
    os.sched_setaffinity(0, {min(before)})
    try:
        assert validation.useful_threads(1024) == 1
    finally:
        os.sched_setaffinity(0, before)
