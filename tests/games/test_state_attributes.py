"""Comparison of attributes of states, robust against broken parts."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree.errors import GameContractError
from pondertree.games.state_attributes import hold_the_same


class Holder:
    def __init__(self, part: Any) -> None:
        self.part = part


class Incomparable:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no ==")


def cyclic() -> list[Any]:
    entries: list[Any] = []
    entries.append(entries)
    return entries


@pytest.mark.parametrize("make", [cyclic, lambda: {Incomparable()}])
def test_incomparable_parts_count_as_equal(make: Any) -> None:
    assert hold_the_same(Holder(make()), Holder(make()))


@pytest.mark.parametrize("kind", [int, float, np.int64, np.float32, Decimal, complex, str])
def test_numbers_of_every_kind_are_compared(kind: Any) -> None:
    assert hold_the_same(Holder(kind(1)), Holder(kind(1)))
    assert not hold_the_same(Holder(kind(1)), Holder(kind(2)))


DICE = random.Random(3)


class Race:
    """A move adds 3, or what a die shows; who reaches the goal first wins."""

    num_players = num_actions = 2

    def __init__(self, at: tuple[Any, Any] = (0, 0), to_play: int = 0) -> None:
        self.at = at
        self.to_play = to_play

    @property
    def is_terminal(self) -> bool:
        return max(self.at) >= 300

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [0, 1]

    def play(self, action: int) -> Race:
        at = list(self.at)
        at[self.to_play] += np.int64(DICE.randint(1, 6)) if action else 3
        return Race((at[0], at[1]), 1 - self.to_play)

    def returns(self) -> tuple[float, float]:
        return (1.0, -1.0) if self.at[0] >= 300 else (-1.0, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_search_refuses_dice_that_show_a_hundred_moves_later(seed: int) -> None:
    with pytest.raises(GameContractError, match="play"):
        pondertree.UCT(100, seed=seed).run(Race())
