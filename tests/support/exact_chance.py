"""Exact values of small games of chance, by which searches are measured."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pondertree.games import TwentyFortyEight

#: The 21 rolls with their probabilities.
ROLLS = [((high, low), (1 if high == low else 2) / 36) for high in range(1, 7) for low in range(1, high + 1)]


#: Own score, the other's, and the total of the turn.
Score = tuple[int, int, int]


def solve_pig(target: int, tolerance: float = 1e-12, least: int = 0) -> dict[Score, float]:
    """Returns the probability that the player to move wins by (own score, other's score, total of the turn).

    Pairs of scores whose sum is below `least` are left out.

    Value iteration (Neller and Presser 2004) for pairs of scores by descending sum: a pair depends on itself with the
    sides exchanged, and on pairs of a higher sum.
    """
    wins: dict[Score, float] = {}
    for points in reversed(range(least, 2 * target - 1)):
        for first in range(points // 2 + 1):
            second = points - first
            change = 1.0 if second < target else 0.0
            while change > tolerance:
                change = 0.0
                for own, other in {(first, second), (second, first)}:
                    for total in reversed(range(target - own)):
                        value = max(pig_values(wins, target, own, other, total))
                        change = max(change, abs(value - wins.get((own, other, total), 0.5)))
                        wins[own, other, total] = value
    return wins


def pig_values(wins: dict[Score, float], target: int, own: int, other: int, total: int) -> tuple[float, float]:
    """Returns the probabilities to win by rolling and by holding; 1/2 for what is not in `wins`."""

    def win(own: int, other: int, total: int) -> float:
        return 1.0 if own + total >= target else wins.get((own, other, total), 0.5)

    gained = sum(win(own, other, total + face) for face in range(2, 7))
    return (1.0 - win(other, own, 0) + gained) / 6, 1.0 - win(other, own + total, 0)


#: Numbers of checkers by point from 1.
Home = tuple[int, ...]


def after_die(home: Home, die: int) -> set[Home]:
    """Returns the positions after one die of a player whose checkers are all home; none without checkers."""
    last = max((point for point, count in enumerate(home, start=1) if count), default=0)
    found = set()
    for point, count in enumerate(home, start=1):
        if not count or (point < die and point != last):
            continue
        after = list(home)
        after[point - 1] -= 1
        if point > die:
            after[point - die - 1] += 1
        found.add(tuple(after))
    return found


@cache
def after_roll(home: Home, high: int, low: int) -> frozenset[Home]:
    """Returns the positions after a roll; at home every die can be played until no checker is left."""
    orders = [(high,) * 4] if high == low else [(high, low), (low, high)]
    found: set[Home] = set()
    for order in orders:
        reached = {home}
        for die in order:
            reached = {after for position in reached for after in (after_die(position, die) or {position})}
        found |= reached
    return frozenset(found)


def bear_off_of_roll(mover: Home, other: Home, high: int, low: int) -> float:
    """Returns the probability that the player to move is off first; all checkers are home and do not meet."""
    return max(1.0 if not any(after) else 1.0 - bear_off(other, after) for after in after_roll(mover, high, low))


@cache
def bear_off(mover: Home, other: Home) -> float:
    """Returns the same before the roll."""
    return sum(chance * bear_off_of_roll(mover, other, *roll) for roll, chance in ROLLS)


def homes(checkers: int) -> list[Home]:
    """Returns all positions of 1 to `checkers` checkers at home."""
    return [home for home in product(range(checkers + 1), repeat=6) if 0 < sum(home) <= checkers]


def xgid(mover: Home, other: Home, high: int, low: int) -> str:
    """Returns the position with X to play a roll, in the form that `Backgammon` takes."""
    letters = ["-"] * 26
    for point, (own, others) in enumerate(zip(mover, other, strict=True), start=1):
        letters[point] = chr(ord("A") + own - 1) if own else "-"
        letters[25 - point] = chr(ord("a") + others - 1) if others else "-"
    return f"XGID={''.join(letters)}:0:0:1:{high}{low}"


class Outlook(NamedTuple):
    """What can follow a state of 2048."""

    value: float
    """The expected sum of rewards of best play."""
    highest: float
    """The highest sum of rewards that is possible."""
    plies: int
    """Moves and outcomes of the longest line."""


def outlook(state: Any, limit: int, most_plies: int) -> Outlook | None:
    """Returns what can follow a state of 2048; None beyond `limit` states or `most_plies` plies."""
    known: dict[Any, Outlook] = {}

    def after(node: Any, plies: int = 0) -> Outlook:
        if node.is_terminal:
            return Outlook(0.0, 0.0, 0)
        key = "\n".join(str(node).splitlines()[:-1]), node.to_play
        if key not in known:
            if len(known) >= limit or plies >= most_plies:
                raise OverflowError
            children = [node.play(action) for action in node.legal_actions()]
            below = [(child.rewards()[0], after(child, plies + 1)) for child in children]
            values = [reward + found.value for reward, found in below]
            is_chance = node.to_play < 0
            expected = (
                sum(p * value for (_, p), value in zip(node.chance_outcomes(), values, strict=True))
                if is_chance
                else 0.0
            )
            highest = max(reward + found.highest for reward, found in below)
            known[key] = Outlook(
                expected if is_chance else max(values), highest, 1 + max(found.plies for _, found in below)
            )
        return known[key]

    try:
        return after(state)
    except OverflowError:
        return None


def best_sum(state: Any, limit: int = 200_000) -> float | None:
    """Returns the expected sum of rewards of best play of 2048 to the end; None beyond `limit` states or 100 plies."""
    found = outlook(state, limit, 100)
    return None if found is None else found.value


def nearly_over(seed: int, limit: int = 3000) -> tuple[Any, float]:
    """Returns a decision of 2048 with few continuations, and its `best_sum`: large tiles, and two equal ones."""
    numbers = np.random.default_rng(seed)
    while True:
        tiles = 2 ** numbers.integers(3, 11, 16)
        tiles[numbers.choice(16, 2, replace=False)] = 2
        state = TwentyFortyEight(" ".join(map(str, tiles)))
        known = best_sum(state, limit)
        if known:
            return state, known
