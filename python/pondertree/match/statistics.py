"""Elo from results: a difference of strength with its error bars.

Games are played in pairs, one opening with both colours, and what is counted is pairs: how many of them brought
player 1 0, 1/2, 1, 3/2 and 2 points (five counts, pentanomial). The two games of a pair are not independent: an opening
that favours one side helps either player once. Counting games one by one (win, draw, loss: trinomial) overlooks that,
and gives bars that are too wide. Where no pairs are known, three counts (losses, draws, wins) do as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError

#: One unit of t = (score - 1/2) / deviation of a game, in normalised Elo: the slope of logistic Elo at 1/2.
NORMALISED = 800.0 / math.log(10.0)


def elo_of(score: float) -> float:
    """The difference in Elo that a score from 0 to 1 stands for, in the logistic model; infinite at both ends."""
    score = _number(score, "score")
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return 400.0 * math.log10(score / (1.0 - score))


def score_of(elo: float) -> float:
    """The score that a difference in Elo leads to expect."""
    elo = _number(elo, "elo")
    # Written for the negative side, where the power cannot overflow.
    power = math.pow(10.0, -abs(elo) / 400.0)
    score = power / (1.0 + power)
    return 1.0 - score if elo > 0.0 else score


def _number(value: Any, name: str) -> float:
    """A number, which may be infinite where one side has won everything, and NaN where nothing was played."""
    try:
        return float(value)
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"{name} must be a number, not {validation.shown(value)}") from error


def check_counts(counts: Any) -> tuple[int, ...]:
    """Five counts of pairs or three of games, from the worst result to the best."""
    if not validation.is_listed(counts) or len(counts) not in (3, 5):
        raise InvalidArgumentError(
            f"counts must be five (pairs with 0, 1/2, 1, 3/2, 2 points) or three (losses, draws, wins), "
            f"not {validation.shown(counts)}"
        )
    return tuple(validation.whole_number(count, f"counts[{place}]") for place, count in enumerate(counts))


def scores_of(counts: Sequence[float]) -> list[float]:
    """The score, from 0 to 1, that each count stands for."""
    return [place / (len(counts) - 1) for place in range(len(counts))]


def moments(counts: Sequence[float]) -> tuple[float, float, float]:
    """(how many, mean, variance) of the scores of pairs, or of games."""
    total = sum(counts)
    scores = scores_of(counts)
    mean = sum(count * score for count, score in zip(counts, scores, strict=True)) / total
    variance = sum(count * (score - mean) ** 2 for count, score in zip(counts, scores, strict=True)) / total
    return total, mean, variance


@dataclass(frozen=True, slots=True)
class Elo:
    """How much stronger player 1 is, by the results. With no results every number is unknown (NaN or infinite)."""

    score: float
    """Points per game, from 0 to 1."""
    elo: float
    """The difference in Elo, by the logistic model; infinite where one side won everything."""
    low: float
    high: float
    """Where the difference lies at the level of confidence; infinite where the results give no bound."""
    normalised: float
    """Normalised Elo: the same in deviations of a single game, so that it does not depend on how many are drawn."""
    los: float
    """Likelihood of superiority: how likely player 1 is the stronger one."""
    confidence: float = 0.95

    @property
    def error(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2.0

    def __str__(self) -> str:
        if math.isnan(self.score):
            return "Elo unknown: no games"
        share = f"{self.confidence * 100:g}"
        return f"Elo {self.elo:+.1f} ({share} %: {self.low:+.1f} to {self.high:+.1f}), LOS {self.los:.1%}"


def estimate(counts: Any, confidence: float = 0.95) -> Elo:
    """Elo of the first player from counts of pairs (five) or of games (three)."""
    counts = check_counts(counts)
    confidence = validation.number(confidence, "confidence")
    if not 0.0 < confidence < 1.0:
        raise InvalidArgumentError(f"confidence must lie between 0 and 1, not {confidence}")
    if sum(counts) == 0:
        return Elo(math.nan, math.nan, -math.inf, math.inf, math.nan, 0.5, confidence)
    total, mean, variance = moments(counts)
    reach = quantile((1.0 + confidence) / 2.0)
    if variance > 0.0:
        error = math.sqrt(variance / total)
        low, high = mean - reach * error, mean + reach * error
        los = normal((mean - 0.5) / error)
        # A pair holds two games: its variance, of the mean of the two, is half that of one game.
        games = 2.0 if len(counts) == 5 else 1.0
        normalised = (mean - 0.5) / math.sqrt(games * variance) * NORMALISED
    else:
        # All alike. The likelihood of that is (1 - q)^total if a share q is otherwise; q may be as large as the
        # likelihood ratio does not refute, and its results as far away as there are any.
        q = 1.0 - math.exp(-reach * reach / 2.0 / total)
        low, high = mean * (1.0 - q), mean + (1.0 - mean) * q
        # By Laplace's rule of succession, as for a coin that always fell the same way.
        los = 0.5 if mean == 0.5 else 1.0 - 0.5 ** (total + 1.0) if mean > 0.5 else 0.5 ** (total + 1.0)
        normalised = 0.0 if mean == 0.5 else math.copysign(math.inf, mean - 0.5)
    return Elo(mean, elo_of(mean), elo_of(low), elo_of(high), normalised, los, confidence)


def normal(x: float) -> float:
    """The normal distribution function."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def quantile(share: float) -> float:
    """Where the normal distribution function reaches `share`."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if normal(middle) < share else (low, middle)
    return (low + high) / 2.0


#: What a count of nothing is taken for: a result that never came up is unlikely, not impossible.
NEARLY_NONE = 1e-3


@dataclass(frozen=True, slots=True)
class SprtState:
    """How a test stands."""

    llr: float
    """Log-likelihood ratio of H1 to H0."""
    lower: float
    upper: float
    """Where it ends: H0 is accepted at `lower`, H1 at `upper`."""
    verdict: str | None
    """"H0", "H1", or None while it is open."""

    def __str__(self) -> str:
        word = "open" if self.verdict is None else f"{self.verdict} accepted"
        return f"LLR {self.llr:+.2f} ({self.lower:+.2f}, {self.upper:+.2f}): {word}"


@dataclass(frozen=True, slots=True)
class Sprt:
    """A test of `elo0` against `elo1`: it accepts H1 wrongly with probability `alpha`, H0 with `beta`, at most."""

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        for name in ("elo0", "elo1"):
            object.__setattr__(self, name, validation.number(getattr(self, name), name, least=-2000.0, most=2000.0))
        if not self.elo0 < self.elo1:
            raise InvalidArgumentError(f"elo0 must be below elo1: {self.elo0} is not below {self.elo1}")
        for name in ("alpha", "beta"):
            share = validation.number(getattr(self, name), name)
            if not 0.0 < share < 0.5:
                raise InvalidArgumentError(f"{name} must lie between 0 and 0.5, not {share}")
            object.__setattr__(self, name, share)

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0 and H1 are accepted."""
        return math.log(self.beta / (1.0 - self.alpha)), math.log((1.0 - self.beta) / self.alpha)

    def state(self, counts: Any) -> SprtState:
        """How the test stands after these results: five counts of pairs, or three of games."""
        ratio = llr(counts, self.elo0, self.elo1)
        lower, upper = self.bounds
        verdict = "H0" if ratio <= lower else "H1" if ratio >= upper else None
        return SprtState(ratio, lower, upper, verdict)


def check_sprt(given: Any) -> Sprt | None:
    """None, a `Sprt`, or a pair (elo0, elo1)."""
    if given is None or isinstance(given, Sprt):
        return given
    if not validation.is_listed(given) or len(given) != 2:
        raise InvalidArgumentError(f"sprt must be a pair (elo0, elo1) or a Sprt, not {validation.shown(given)}")
    return Sprt(*given)


def llr(counts: Any, elo0: float, elo1: float) -> float:
    """The generalised log-likelihood ratio of `elo1` to `elo0`, by counts of pairs (five) or of games (three)."""
    counts = check_counts(counts)
    if sum(counts) == 0:
        return 0.0
    weights = [count or NEARLY_NONE for count in counts]
    scores = scores_of(counts)
    # The most likely distribution with mean s gives result i the share p_i / (1 + theta (a_i - s)), p_i its share of
    # the results and a_i its score; in the ratio of two of them p_i cancels out.
    tilted = [_tilt(weights, [score - score_of(elo) for score in scores]) for elo in (elo0, elo1)]
    return math.fsum(weight * (math.log(b0) - math.log(b1)) for weight, b0, b1 in zip(weights, *tilted, strict=True))


def _tilt(weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """1 + theta * offset for each result, where theta solves sum(w * offset / (1 + theta * offset)) = 0."""
    # Between its poles the sum falls from +inf to -inf: Newton's steps, halved back whenever they leave the bracket.
    low, high = -1.0 / max(offsets), -1.0 / min(offsets)
    theta = 0.0
    for _ in range(200):
        terms = [offset / (1.0 + theta * offset) for offset in offsets]
        value = sum(weight * term for weight, term in zip(weights, terms, strict=True))
        low, high = (theta, high) if value > 0.0 else (low, theta)
        step = value / sum(weight * term * term for weight, term in zip(weights, terms, strict=True))
        following = theta + step
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - theta) <= 1e-13 * max(1.0, abs(theta)):
            break
        theta = following
    return [1.0 + theta * offset for offset in offsets]
