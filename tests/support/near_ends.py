"""Positions of games of chance in which play is over within ten plies, moves and outcomes counted; exact values."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from tests.support.exact_chance import (
    ROLLS,
    Home,
    after_roll,
    bear_off_of_roll,
    homes,
    outlook,
    pig_values,
    solve_pig,
    xgid,
)

from pondertree.games import Backgammon, Pig, TwentyFortyEight

PLIES = 10
#: In Pig, where no number of plies is certain, the probability of an end within `PLIES` by best play.
LIKELY = 0.95
#: Sums of both scores below which Pig is hardly ever over within `PLIES`.
LEAST_SUM = 170
TARGET = 100


class Position(NamedTuple):
    """A decision, and what a search of it should find."""

    state: Any
    value: float
    """Its exact value for the player to move."""
    scale: float = 1.0
    """What a value is divided by to be in [-1, 1], up to an offset."""


def pig(count: int, seed: int = 0) -> list[Position]:
    """Returns decisions of Pig between rolling and holding."""
    wins = solve_pig(TARGET, least=LEAST_SUM)

    @cache
    def over(own: int, other: int, total: int, plies: int) -> float:
        """The probability of an end within `plies` by best play; too low where a sum is below `LEAST_SUM`."""
        if plies <= 0 or (own, other, total) not in wins:
            return float(plies > 0 and own + total >= TARGET)
        rolled, held = pig_values(wins, TARGET, own, other, total)
        if held >= rolled:
            return over(other, own + total, 0, plies - 1)
        return (
            over(other, own, 0, plies - 2) + sum(over(own, other, total + face, plies - 2) for face in range(2, 7))
        ) / 6

    near = [key for key in sorted(wins) if 1 not in key and over(*key, PLIES) >= LIKELY]
    return [Position(_pig_state(*key), 2.0 * wins[key] - 1.0) for key in random.Random(seed).sample(near, count)]


def _pig_state(own: int, other: int, total: int) -> Pig:
    """Plays to a state: a turn of each player, and the rolls of the next one."""
    state = Pig(TARGET)
    for points, holds in ((own, True), (other, True), (total, False)):
        while points:
            # No face has one point.
            face = min(points, 6) - (points == 7)
            state, points = state.play(0).play(face), points - face
        state = state.play(1) if holds else state
    return state


def bear_off(count: int, seed: int = 0) -> list[Position]:
    """Returns decisions of backgammon with all checkers home, whose longest line has seven to ten plies."""

    @cache
    def longest(mover: Home, other: Home) -> int:
        return max(1 + longest_of_roll(mover, other, *roll) for roll, _ in ROLLS)

    @cache
    def longest_of_roll(mover: Home, other: Home, high: int, low: int) -> int:
        # A double is played in two moves.
        played = 2 if high == low else 1
        return played + max(longest(other, after) if any(after) else 0 for after in after_roll(mover, high, low))

    def draw(numbers: random.Random) -> Position | None:
        mover, other = numbers.choice(places), numbers.choice(places)
        roll, _ = numbers.choice(ROLLS)
        state = Backgammon(xgid(mover, other, *roll))
        if len(state.legal_actions()) < 2 or not 7 <= longest_of_roll(mover, other, *roll) <= PLIES:
            return None
        return Position(state, 2.0 * bear_off_of_roll(mover, other, *roll) - 1.0)

    places = homes(4)
    return _drawn(draw, count, seed)


def full_boards(count: int, seed: int = 0) -> list[Position]:
    """Returns decisions of 2048 whose longest line has four to ten plies: large tiles, and two equal ones.

    Values are scaled by half the highest sum of rewards that is possible.
    """

    def draw(numbers: random.Random) -> Position | None:
        tiles = [2 ** numbers.randint(3, 10) for _ in range(16)]
        for place in numbers.sample(range(16), 2):
            tiles[place] = 2
        state = TwentyFortyEight(" ".join(map(str, tiles)))
        found = None if len(state.legal_actions()) < 2 else outlook(state, 3000, PLIES)
        if found is None or found.plies < 4:
            return None
        return Position(state, found.value, found.highest / 2)

    return _drawn(draw, count, seed)


def _drawn(draw: Callable[[random.Random], Position | None], count: int, seed: int) -> list[Position]:
    numbers, found = random.Random(seed), []
    while len(found) < count:
        position = draw(numbers)
        found += [] if position is None else [position]
    return found


class Errors(NamedTuple):
    """Mean distances from the exact values, in values scaled to [-1, 1]."""

    of_value: float
    """Of `result.value`, the mean over the visits of the root."""
    of_move: float
    """Of Q of the chosen move."""
    largest: float
    """The largest of `result.value`."""


def errors(search: Any, positions: list[Position]) -> Errors:
    """Returns the errors of a search."""
    results = [(search.run(position.state, seeds=1), position) for position in positions]
    of_value = [abs(result.value - position.value) / position.scale for result, position in results]
    of_move = [abs(result.q[result.action] - position.value) / position.scale for result, position in results]
    return Errors(float(np.mean(of_value)), float(np.mean(of_move)), max(of_value))
