"""Dirichlet noise on the priors of the root, for exploration in self-play."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pondertree.random import Random
from pondertree.reference.priors import float32, normalised, softmax

#: Lower bound of the concentration: below it logarithms would overflow, and a sample is one-hot in any case.
MIN_ALPHA = 1e-300
#: From this concentration on, gamma variates do not underflow.
MIN_ALPHA_WITHOUT_UNDERFLOW = 0.1


def noised(priors: Mapping[int, float], alpha: float, epsilon: float, random: Random) -> dict[int, float]:
    """Returns (1 - epsilon) P + epsilon noise of each move, in 32 bits; `alpha` is the concentration per move.

    Noise is sampled for the legal moves alone, in ascending order: the order of a node's children changes during
    search.
    """
    noise = dirichlet(alpha, len(priors), random)
    return {
        action: float32((1.0 - epsilon) * priors[action] + epsilon * share)
        for action, share in zip(sorted(priors), noise, strict=True)
    }


def dirichlet(alpha: float, count: int, random: Random) -> list[float]:
    """Samples the symmetric Dirichlet distribution: gamma variates divided by their sum.

    For a small alpha the variates would underflow, so their logarithms are normalised instead.
    """
    alpha = max(alpha, MIN_ALPHA)
    if alpha < MIN_ALPHA_WITHOUT_UNDERFLOW:
        return softmax([_gamma_below_one(alpha, random)[1] for _ in range(count)])
    return normalised([_gamma_variate(alpha, random) for _ in range(count)])


def _gamma_variate(alpha: float, random: Random) -> float:
    """Samples the gamma distribution of shape `alpha` (Marsaglia & Tsang 2000)."""
    if alpha < 1.0:
        return _gamma_below_one(alpha, random)[0]
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


def _gamma_below_one(alpha: float, random: Random) -> tuple[float, float]:
    """Samples a gamma variate of shape below 1, with its logarithm (Ahrens & Dieter 1974, algorithm GS)."""
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
    """Samples the standard normal distribution (Box & Muller 1958); the second variate of the pair is discarded."""
    u = 1.0 - random.uniform()
    v = random.uniform()
    return math.sqrt(-2.0 * math.log(u)) * math.cos(math.tau * v)
