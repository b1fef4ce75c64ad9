"""Elo of many players from the games between them, with error bars.

A player's score is logistic in the difference of ratings (Bradley and Terry 1952). Ratings are the most likely ones,
with a wide normal distribution assumed beforehand, so that a player who won everything gets a number, and wide bars.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.match.statistics import scores_of

#: Elo per unit of the logistic function.
SCALE = 400.0 / math.log(10.0)
#: What is assumed beforehand of a rating: its spread around the anchor, in Elo.
SPREAD = 1000.0
#: The 95 % quantile of chi-squared with one degree of freedom, halved: the drop of the log-likelihood at the ends of a
#: profile-likelihood interval.
PROFILE_DROP = 1.920729410347062
#: Halvings by which an end of an interval is found: about half an Elo.
HALVINGS = 12
#: Half-lengths of intervals above this many Elo say little: one bound is shown instead.
WIDE = 400.0
#: Such an interval has one bound worth showing if one side of it is so many times longer than the other.
SKEWED = 1.5


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
    """Half the length of the interval that holds it with 95 %, by the curvature of the likelihood."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A rating with the 95 % profile-likelihood interval, which is as skewed as the likelihood is."""

    elo: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2.0

    @property
    def bound(self) -> str | None:
        """None where the interval says enough; else the bound that does: ">" the lower, "<" the upper, "" neither."""
        below, above = self.elo - self.low, self.high - self.elo
        if max(below, above) <= WIDE:
            return None
        if max(below, above) < SKEWED * min(below, above):
            return ""
        return ">" if below < above else "<"

    @property
    def shown(self) -> float:
        """The number that is shown of it: the bound that is known, or the rating."""
        return {">": self.low, "<": self.high}.get(self.bound or "", self.elo)

    def __str__(self) -> str:
        match self.bound:
            case None:
                return f"{self.elo:+.0f} ± {self.error:.0f}"
            case "":
                return f"{self.low:+.0f} to {self.high:+.0f}"
            case sign:
                return f"{'≥' if sign == '>' else '≤'} {self.shown:+.0f}"


def rate(games: Sequence[Games], anchor: str) -> dict[str, Rating]:
    """The rating of every player; the anchor has 0."""
    likelihood = _Likelihood(games, anchor)
    strength, curvature = likelihood.maximum()
    variance = np.diag(np.linalg.inv(curvature)) if likelihood.names else np.zeros(0)
    found = {
        name: Rating(float(SCALE * strength[number]), 1.96 * SCALE * math.sqrt(variance[number]))
        for number, name in enumerate(likelihood.names)
    }
    return {anchor: Rating(0.0, 0.0), **found}


def interval(games: Sequence[Games], anchor: str, name: str) -> Interval:
    """The rating of one player above the anchor, and where it lies with 95 %.

    The ends are where the likelihood, maximised over all other ratings, has fallen by `PROFILE_DROP`. A player who won
    everything has a lower bound that counts its wins, and an upper bound far away, which only the prior gives.
    """
    likelihood = _Likelihood(games, anchor)
    if name not in likelihood.names:
        return Interval(0.0, 0.0, 0.0)
    place = likelihood.names.index(name)
    best, curvature = likelihood.maximum()
    floor = likelihood.log_posterior(best) - PROFILE_DROP
    deviation = math.sqrt(np.linalg.inv(curvature)[place, place])

    def end(direction: float) -> float:
        """Doubles the distance until the likelihood is below the floor, then halves the gap."""
        near, far, beside = 0.0, 2.0 * deviation, best
        is_bracketed = False
        for _ in range(HALVINGS + 8):  # the prior bounds the distance to a few doublings
            distance = (near + far) / 2.0 if is_bracketed else far
            beside, _ = likelihood.maximum(beside, place, best[place] + direction * distance)
            if likelihood.log_posterior(beside) <= floor:
                far, is_bracketed = distance, True
            else:
                near, far = distance, far if is_bracketed else 2.0 * far
            if is_bracketed and far - near < 2.0 * deviation / (1 << HALVINGS):
                break
        return float(SCALE * (best[place] + direction * (near + far) / 2.0))

    return Interval(float(SCALE * best[place]), end(-1.0), end(1.0))


def rating_of(line: dict[str, Any]) -> Interval | None:
    """The Elo of a line of metrics; None where it has none, or no interval."""
    elo, error = line.get("elo"), line.get("elo_error")
    if elo is None or error is None:
        return None
    low, high = line.get("elo_low"), line.get("elo_high")
    # Lines of earlier versions have half the length alone.
    return Interval(elo, elo - error if low is None else low, elo + error if high is None else high)


def score_of(counts: list[int]) -> float:
    """The share of points."""
    return sum(count * score for count, score in zip(counts, scores_of(counts), strict=True)) / max(sum(counts), 1)


def games_of(lines: Iterable[dict[str, Any]]) -> list[Games]:
    """The games that lines of metrics tell of: those of evaluated players, and between reference opponents."""
    found = []
    for line in lines:
        if line["kind"] == "evaluation":
            for one, others in {line["name"]: line["matches"], **line.get("references", {})}.items():
                for other, counts in others.items():
                    count = 2 * sum(counts)
                    found.append(Games(one, other, count * score_of(counts), count))
    return found


class _Likelihood:
    """The log-posterior of all ratings but the anchor's, in units of the logistic function."""

    def __init__(self, games: Sequence[Games], anchor: str) -> None:
        self.names = sorted({name for one in games for name in (one.one, one.other)} - {anchor})
        place = {name: number for number, name in enumerate(self.names)}
        #: One row a match: +1 for its first player, -1 for the other; the anchor has no column.
        self._signs = np.zeros((len(games), len(self.names)))
        for row, one in enumerate(games):
            for name, sign in ((one.one, 1.0), (one.other, -1.0)):
                if name != anchor:
                    self._signs[row, place[name]] += sign
        self._points = np.array([one.points for one in games], dtype=np.float64)
        self._counts = np.array([one.count for one in games], dtype=np.float64)
        self._prior = (SCALE / SPREAD) ** 2

    def log_posterior(self, strength: NDArray[np.float64]) -> float:
        """Up to a constant."""
        gaps = self._signs @ strength
        # log(1 / (1 + exp(-gap))) for the points won, and its mirror image for those lost.
        won, lost = -np.logaddexp(0.0, -gaps), -np.logaddexp(0.0, gaps)
        found = self._points @ won + (self._counts - self._points) @ lost
        return float(found - self._prior * (strength @ strength) / 2.0)

    def maximum(
        self, begun: NDArray[np.float64] | None = None, fixed: int | None = None, value: float = 0.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(the most likely ratings, the curvature there), by Newton's method; one rating may be fixed at a value."""
        count = len(self.names)
        strength = np.zeros(count) if begun is None else begun.copy()
        free = np.ones(count, dtype=bool)
        if fixed is not None:
            strength[fixed] = value
            free[fixed] = False
        curvature = np.eye(count) * self._prior
        for _ in range(100):
            expected = 0.5 * (1.0 + np.tanh((self._signs @ strength) / 2.0))
            weights = self._counts * expected * (1.0 - expected)
            gradient = self._signs.T @ (self._points - self._counts * expected) - self._prior * strength
            curvature = (self._signs.T * weights) @ self._signs + np.eye(count) * self._prior
            if not free.any():
                break
            step = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
            # Far from the maximum the logistic function is flat, and a whole step would overshoot.
            strength[free] += np.clip(step, -2.0, 2.0)
            if np.abs(step).max() < 1e-9:
                break
        return strength, curvature
