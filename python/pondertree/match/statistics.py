"""Match statistics: Elo with confidence intervals, and the sequential probability ratio test (SPRT).

Statistics are pentanomial: five counts of game pairs, by player 1's points 0, 1/2, 1, 3/2 and 2. The two games of a
pair are correlated, since an unbalanced opening favours either player once; trinomial statistics (losses, draws, wins)
ignore that and give wider intervals. They are accepted where pairs are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError

#: Normalised Elo per standard deviation of a game: the slope of logistic Elo at score 1/2.
NORMALISED = 800.0 / math.log(10.0)


def elo_of(score: float) -> float:
    """Returns the Elo difference of a score in [0, 1] by the logistic model; infinite at both ends."""
    score = validation.number(score, "score", finite=False)
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return 400.0 * math.log10(score / (1.0 - score))


def score_of(elo: float) -> float:
    """Returns the expected score of an Elo difference."""
    elo = validation.number(elo, "elo", finite=False)
    # Computed for the negative side, where the power cannot overflow.
    power = math.pow(10.0, -abs(elo) / 400.0)
    score = power / (1.0 + power)
    return 1.0 - score if elo > 0.0 else score


def check_counts(counts: Any) -> tuple[int, ...]:
    """Validates five counts of pairs or three of games, from the worst result to the best."""
    if not validation.is_listed(counts) or len(counts) not in (3, 5):
        raise InvalidArgumentError(
            f"counts must be five (pairs with 0, 1/2, 1, 3/2, 2 points) or three (losses, draws, wins), "
            f"not {validation.shown(counts)}"
        )
    return tuple(validation.whole_number(count, f"counts[{place}]") for place, count in enumerate(counts))


def scores_of(counts: Sequence[float]) -> list[float]:
    """Returns the score in [0, 1] of each count."""
    return [place / (len(counts) - 1) for place in range(len(counts))]


def moments(counts: Sequence[float]) -> tuple[float, float, float]:
    """Returns (number, mean, variance) of the scores of pairs or games."""
    total = sum(counts)
    scores = scores_of(counts)
    mean = sum(count * score for count, score in zip(counts, scores, strict=True)) / total
    variance = sum(count * (score - mean) ** 2 for count, score in zip(counts, scores, strict=True)) / total
    return total, mean, variance


@dataclass(frozen=True, slots=True)
class Elo:
    """The estimated Elo difference of player 1. Without results every number is NaN or infinite."""

    score: float
    """Points per game, in [0, 1]."""
    elo: float
    """Logistic Elo; infinite if one side won every game."""
    low: float
    high: float
    """Bounds of the confidence interval; infinite where the results give none."""
    normalised: float
    """Normalised Elo: in standard deviations of a single game, hence independent of the draw rate."""
    los: float
    """Likelihood of superiority: the probability that player 1 is stronger."""
    confidence: float = 0.95

    @property
    def error(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2.0

    def __str__(self) -> str:
        if math.isnan(self.score):
            return "Elo unknown: no games"
        share = f"{self.confidence * 100:g}"
        return f"Elo {self.elo:+.1f} ({share} %: {self.low:+.1f} to {self.high:+.1f}), LOS {self.los:.1%}"


def estimate(counts: Any, confidence: float = 0.95) -> Elo:
    """Estimates Elo of player 1 from counts of pairs (five) or of games (three)."""
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
        # The variance of a pair's mean score is half that of a game.
        games = 2.0 if len(counts) == 5 else 1.0
        normalised = (mean - 0.5) / math.sqrt(games * variance) * NORMALISED
    else:
        # All results are equal, with likelihood (1 - q)^total if a share q of the distribution differs: q is the
        # largest share that the likelihood ratio does not reject, at the extreme results.
        q = 1.0 - math.exp(-reach * reach / 2.0 / total)
        low, high = mean * (1.0 - q), mean + (1.0 - mean) * q
        # Laplace's rule of succession.
        los = 0.5 if mean == 0.5 else 1.0 - 0.5 ** (total + 1.0) if mean > 0.5 else 0.5 ** (total + 1.0)
        normalised = 0.0 if mean == 0.5 else math.copysign(math.inf, mean - 0.5)
    return Elo(mean, elo_of(mean), elo_of(low), elo_of(high), normalised, los, confidence)


def normal(x: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def quantile(share: float) -> float:
    """Returns the quantile of the standard normal distribution, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if normal(middle) < share else (low, middle)
    return (low + high) / 2.0


#: Replaces zero counts: a result that has not occurred is not impossible.
ZERO_COUNT = 1e-3


@dataclass(frozen=True, slots=True)
class SprtState:
    """The state of a test."""

    llr: float
    """Generalised log-likelihood ratio of H1 to H0."""
    lower: float
    upper: float
    """Decision bounds: H0 is accepted at `lower`, H1 at `upper`."""
    verdict: str | None
    """"H0", "H1", or None while it is open."""

    def __str__(self) -> str:
        status = "open" if self.verdict is None else f"{self.verdict} accepted"
        return f"LLR {self.llr:+.2f} ({self.lower:+.2f}, {self.upper:+.2f}): {status}"


@dataclass(frozen=True, slots=True)
class Sprt:
    """An SPRT of `elo0` against `elo1` with error rates `alpha` (H1 accepted wrongly) and `beta` (H0)."""

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
        """The log-likelihood ratios at which H0 and H1 are accepted (Wald)."""
        return math.log(self.beta / (1.0 - self.alpha)), math.log((1.0 - self.beta) / self.alpha)

    def state(self, counts: Any) -> SprtState:
        """Returns the state of the test after five counts of pairs or three of games."""
        ratio = llr(counts, self.elo0, self.elo1)
        lower, upper = self.bounds
        verdict = "H0" if ratio <= lower else "H1" if ratio >= upper else None
        return SprtState(ratio, lower, upper, verdict)


def check_sprt(given: Any) -> Sprt | None:
    """Converts None, a `Sprt`, or a pair (elo0, elo1)."""
    if given is None or isinstance(given, Sprt):
        return given
    if not validation.is_listed(given) or len(given) != 2:
        raise InvalidArgumentError(f"sprt must be a pair (elo0, elo1) or a Sprt, not {validation.shown(given)}")
    return Sprt(*given)


def llr(counts: Any, elo0: float, elo1: float) -> float:
    """Returns the generalised log-likelihood ratio of `elo1` to `elo0`, by counts of pairs (five) or games (three)."""
    counts = check_counts(counts)
    if sum(counts) == 0:
        return 0.0
    weights = [count or ZERO_COUNT for count in counts]
    scores = scores_of(counts)
    # The maximum likelihood distribution with mean s has probabilities p_i / (1 + theta (a_i - s)), with observed
    # frequencies p_i and scores a_i; in the ratio of two of them p_i cancels out.
    tilted = [_tilt(weights, [score - score_of(elo) for score in scores]) for elo in (elo0, elo1)]
    return math.fsum(weight * (math.log(b0) - math.log(b1)) for weight, b0, b1 in zip(weights, *tilted, strict=True))


def _tilt(weights: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """Returns 1 + theta * offset per result, where theta solves sum(w * offset / (1 + theta * offset)) = 0."""
    # Between its poles the sum decreases from +inf to -inf: Newton's method, safeguarded by bisection.
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
