"""Noise at the root, so that self-play also tries what the network would not: Dirichlet noise on the priors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pondertree.random import Random
from pondertree.reference.policy import float32, softmax

#: A smaller concentration than this is taken for it: logarithms would be infinite, and the draw has one weight anyway.
LEAST = 1e-300
#: From this concentration on no gamma variate is too small for a float.
NONE_VANISHES = 0.1


def noised(priors: Mapping[int, float], alpha: float, epsilon: float, random: Random) -> dict[int, float]:
    """(1 - epsilon) P + epsilon noise of each move, in 32 bits; `alpha` is the concentration of each.

    The noise is drawn for the legal moves alone, after the mask, in ascending order: the moves of a tree change places
    as they are tried.
    """
    noise = dirichlet(alpha, len(priors), random)
    return {
        action: float32((1.0 - epsilon) * priors[action] + epsilon * share)
        for action, share in zip(sorted(priors), noise, strict=True)
    }


def dirichlet(alpha: float, count: int, random: Random) -> list[float]:
    """A draw from the symmetric Dirichlet distribution: gamma variates over their sum.

    With a very small alpha many variates are too small for a float: then in logarithms.
    """
    alpha = max(alpha, LEAST)
    if alpha < NONE_VANISHES:
        return softmax([_below_one(alpha, random)[1] for _ in range(count)])
    variates = [_gamma_variate(alpha, random) for _ in range(count)]
    total = 0.0
    for variate in variates:  # `sum` would round otherwise
        total += variate
    return [variate / total for variate in variates]


def _gamma_variate(alpha: float, random: Random) -> float:
    """A gamma variate of shape `alpha` (Marsaglia & Tsang 2000)."""
    if alpha < 1.0:
        return _below_one(alpha, random)[0]
    d = alpha - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(random)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = 1.0 - random.uniform()
        if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


def _below_one(alpha: float, random: Random) -> tuple[float, float]:
    """A gamma variate of a shape below 1, and its logarithm (Ahrens & Dieter 1974, algorithm GS)."""
    b = 1.0 + alpha / math.e
    while True:
        p = b * (1.0 - random.uniform())
        u = 1.0 - random.uniform()
        if p <= 1.0:
            log = math.log(p) / alpha
            x = math.exp(log)
            if u <= 1.0 - x or math.log(u) <= -x:
                return x, log
        elif p < b:
            x = -math.log((b - p) / alpha)
            log = math.log(x)
            if math.log(u) <= (alpha - 1.0) * log:
                return x, log


def _normal(random: Random) -> float:
    """A standard normal number (Box & Muller 1958); the second of the pair is not used."""
    u = 1.0 - random.uniform()
    v = random.uniform()
    return math.sqrt(-2.0 * math.log(u)) * math.cos(math.tau * v)
