"""Noise at the root, so that self-play also tries what the network would not: Dirichlet noise on the priors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ponderosa.reference.policy import float32, softmax
from ponderosa.reference.random import Random


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

    Computed in logarithms: with a small alpha the variates themselves are often too small for a float.
    """
    return softmax([_log_gamma_variate(alpha, random) for _ in range(count)])


def _log_gamma_variate(alpha: float, random: Random) -> float:
    """The logarithm of a gamma variate of shape `alpha` (Marsaglia & Tsang 2000)."""
    if alpha < 1.0:
        boosted = _log_gamma_variate(alpha + 1.0, random)
        return boosted + math.log(1.0 - random.uniform()) / alpha
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
            return math.log(d * v)


def _normal(random: Random) -> float:
    """A standard normal number (Box & Muller 1958); the second of the pair is not used."""
    u = 1.0 - random.uniform()
    v = random.uniform()
    return math.sqrt(-2.0 * math.log(u)) * math.cos(math.tau * v)
