"""Joint Elo ratings of many players with 95 % intervals.

The Bradley-Terry model (1952): scores are logistic in rating differences. Ratings are maximum a posteriori under a wide
normal prior, which keeps the rating of a player that won every game finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.match.statistics import scores_of

#: Elo per unit of the logistic function.
SCALE = 400.0 / math.log(10.0)
#: Standard deviation of the prior around the anchor, in Elo.
SPREAD = 1000.0
#: The 95 % quantile of chi-squared with one degree of freedom, halved: the drop of the log-likelihood at the ends of a
#: profile-likelihood interval.
PROFILE_DROP = 1.920729410347062
#: The 97.5 % quantile of the normal distribution.
NORMAL_QUANTILE = 1.959963984540054
#: Bisection steps per end of an interval: about half an Elo.
HALVINGS = 12
#: Intervals with a half-length above this many Elo are reported as one bound.
MAX_HALF_LENGTH = 400.0
#: Ratio of the sides of such an interval from which the nearer bound is informative.
SKEWED = 1.5


class Games(NamedTuple):
    """The games between two players."""

    one: str
    other: str
    points: float
    """Points of `one`."""
    played: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A rating with its 95 % profile-likelihood interval, which may be asymmetric."""

    elo: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Half-length of the interval."""
        return (self.high - self.low) / 2.0

    @property
    def bound(self) -> str | None:
        """None for an informative interval; else the informative bound: ">" lower, "<" upper, "" neither."""
        below, above = self.elo - self.low, self.high - self.elo
        if max(below, above) <= MAX_HALF_LENGTH:
            return None
        if max(below, above) < SKEWED * min(below, above):
            return ""
        return ">" if below < above else "<"

    @property
    def shown(self) -> float:
        """The displayed number: the informative bound, or the rating."""
        return {">": self.low, "<": self.high}.get(self.bound or "", self.elo)

    def __str__(self) -> str:
        match self.bound:
            case None:
                return f"{self.elo:+.0f} ± {self.error:.0f}"
            case "":
                return f"{self.low:+.0f} to {self.high:+.0f}"
            case sign:
                return f"{'≥' if sign == '>' else '≤'} {self.shown:+.0f}"


def interval(games: Sequence[Games], anchor: str, name: str) -> Interval:
    """Rates one player relative to the anchor, with its 95 % profile-likelihood interval.

    The ends are where the likelihood, maximised over all other ratings, has dropped by `PROFILE_DROP`. The upper end of
    a player that won every game is determined by the prior alone.
    """
    likelihood = _Likelihood(games, anchor)
    if name not in likelihood.names:
        return Interval(0.0, 0.0, 0.0)
    place = likelihood.names.index(name)
    best, curvature = likelihood.maximum()
    floor = likelihood.log_posterior(best) - PROFILE_DROP
    deviation = math.sqrt(np.linalg.inv(curvature)[place, place])

    def end(direction: float) -> float:
        """Finds an end: doubles the distance until the likelihood is below the floor, then bisects."""
        near, far, strengths = 0.0, 2.0 * deviation, best
        is_bracketed = False
        for _ in range(HALVINGS + 8):  # the prior bounds the distance to a few doublings
            distance = (near + far) / 2.0 if is_bracketed else far
            strengths, _ = likelihood.maximum(strengths, place, best[place] + direction * distance)
            if likelihood.log_posterior(strengths) <= floor:
                far, is_bracketed = distance, True
            else:
                near, far = distance, far if is_bracketed else 2.0 * far
            if is_bracketed and far - near < 2.0 * deviation / (1 << HALVINGS):
                break
        return float(SCALE * (best[place] + direction * (near + far) / 2.0))

    return Interval(float(SCALE * best[place]), end(-1.0), end(1.0))


def rating_of(line: dict[str, Any]) -> Interval | None:
    """Returns the Elo interval of a line of metrics; None if it has none."""
    elo, error = line.get("elo"), line.get("elo_error")
    if elo is None or error is None:
        return None
    low, high = line.get("elo_low"), line.get("elo_high")
    # Older lines have the half-length alone.
    return Interval(elo, elo - error if low is None else low, elo + error if high is None else high)


def mean_score(counts: list[int]) -> float:
    """Returns the mean score per game, from 0 to 1, of pentanomial counts."""
    return sum(count * score for count, score in zip(counts, scores_of(counts), strict=True)) / max(sum(counts), 1)


def mean_interval(numbers: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % interval of a mean by the normal approximation."""
    count = len(numbers)
    mean = sum(numbers) / count
    variance = sum((number - mean) ** 2 for number in numbers) / max(count - 1, 1)
    error = NORMAL_QUANTILE * math.sqrt(variance / count)
    return mean - error, mean + error


def games_of(lines: Iterable[dict[str, Any]]) -> list[Games]:
    """Returns all games in lines of metrics: of evaluated players, and calibration games between anchors."""
    found = []
    for line in lines:
        if line["kind"] == "evaluation":
            for one, others in {line["name"]: line["matches"], **line.get("references", {})}.items():
                for other, counts in others.items():
                    count = 2 * sum(counts)
                    found.append(Games(one, other, count * mean_score(counts), count))
    return found


class _Likelihood:
    """The log-posterior of all ratings but the anchor's, in logistic units."""

    def __init__(self, games: Sequence[Games], anchor: str) -> None:
        self.names = sorted({name for one in games for name in (one.one, one.other)} - {anchor})
        place = {name: number for number, name in enumerate(self.names)}
        #: One row per match: +1 for the first player, -1 for the other; the anchor has no column.
        self._signs = np.zeros((len(games), len(self.names)))
        for row, one in enumerate(games):
            for name, sign in ((one.one, 1.0), (one.other, -1.0)):
                if name != anchor:
                    self._signs[row, place[name]] += sign
        self._points = np.array([one.points for one in games], dtype=np.float64)
        self._counts = np.array([one.played for one in games], dtype=np.float64)
        self._prior = (SCALE / SPREAD) ** 2

    def log_posterior(self, strength: NDArray[np.float64]) -> float:
        """Returns the log-posterior up to a constant."""
        gaps = self._signs @ strength
        # Log-probabilities of a win and a loss.
        won, lost = -np.logaddexp(0.0, -gaps), -np.logaddexp(0.0, gaps)
        found = self._points @ won + (self._counts - self._points) @ lost
        return float(found - self._prior * (strength @ strength) / 2.0)

    def maximum(
        self, start: NDArray[np.float64] | None = None, fixed: int | None = None, value: float = 0.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns (maximum-a-posteriori ratings, curvature), by Newton's method; one rating may be fixed."""
        count = len(self.names)
        strength = np.zeros(count) if start is None else start.copy()
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
            # Far from the maximum the logistic function is flat, and a full step would overshoot.
            strength[free] += np.clip(step, -2.0, 2.0)
            if np.abs(step).max() < 1e-9:
                break
        return strength, curvature
