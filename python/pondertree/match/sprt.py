"""The sequential test: a match goes on until the results speak clearly for one of two hypotheses.

H0 says that player 1 is stronger by `elo0`, H1 by `elo1`. The log-likelihood ratio of the two is that of the most
likely distributions of results with the score either hypothesis expects (generalised SPRT: Van den Bergh, "A practical
introduction to the GSPRT"; the stopping bounds are Wald's, 1945).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pondertree import check
from pondertree.errors import InvalidArgumentError
from pondertree.match.elo import check_counts, score_of, scores_of

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
            object.__setattr__(self, name, check.number(getattr(self, name), name, least=-2000.0, most=2000.0))
        if not self.elo0 < self.elo1:
            raise InvalidArgumentError(f"elo0 must be below elo1: {self.elo0} is not below {self.elo1}")
        for name in ("alpha", "beta"):
            share = check.number(getattr(self, name), name)
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
    if not check.is_listed(given) or len(given) != 2:
        raise InvalidArgumentError(f"sprt must be a pair (elo0, elo1) or a Sprt, not {check.shown(given)}")
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
