"""Elo of many players from the games between them, with error bars.

A player's score is logistic in the difference of ratings (Bradley and Terry 1952). Ratings are the most likely ones,
with a wide normal distribution assumed beforehand, so that a player who won everything gets a number, and wide bars.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Elo per unit of the logistic function.
SCALE = 400.0 / math.log(10.0)
#: What is assumed beforehand of a rating: its spread around the anchor, in Elo.
SPREAD = 1000.0


@dataclass(frozen=True, slots=True)
class Games:
    """Games between two players."""

    one: str
    other: str
    points: float
    """Points of `one`."""
    count: int


@dataclass(frozen=True, slots=True)
class Rating:
    """A player's strength."""

    elo: float
    """Above the anchor."""
    error: float
    """Half the length of the interval that holds it with 95 %."""


def rate(games: Sequence[Games], anchor: str) -> dict[str, Rating]:
    """The rating of every player; the anchor has 0."""
    names = sorted({name for one in games for name in (one.one, one.other)} - {anchor})
    place = {name: number for number, name in enumerate(names)}
    if not names:
        return {anchor: Rating(0.0, 0.0)}
    strength = np.zeros(len(names))
    prior = (SCALE / SPREAD) ** 2
    for _ in range(100):
        gradient = -prior * strength
        curvature = np.diag(np.full(len(names), prior))
        for one in games:
            ends = [(place[name], sign) for name, sign in ((one.one, 1.0), (one.other, -1.0)) if name != anchor]
            gap = sum(sign * strength[number] for number, sign in ends)
            expected = 1.0 / (1.0 + math.exp(-gap))
            weight = one.count * expected * (1.0 - expected)
            for number, sign in ends:
                gradient[number] += sign * (one.points - one.count * expected)
                for second, second_sign in ends:
                    curvature[number, second] += sign * second_sign * weight
        step = np.linalg.solve(curvature, gradient)
        # Far from the goal the logistic function is flat, and a whole step would overshoot.
        strength += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-9:
            break
    variance = np.diag(np.linalg.inv(curvature))
    found = {
        name: Rating(float(SCALE * strength[number]), 1.96 * SCALE * math.sqrt(variance[number]))
        for name, number in place.items()
    }
    return {anchor: Rating(0.0, 0.0), **found}
