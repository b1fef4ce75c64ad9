"""Texel's method: the error of an evaluation is how badly it foretells the results of games.

Peter Österlund introduced it for his engine Texel (www.chessprogramming.org/Texel%27s_Tuning_Method): with the score s
of a quiet position, `sigmoid(s / scale)` is the expected result, and the weights are best that foretell best. He
minimised the mean squared error. We minimise the mean logarithmic error, `-(r log p + (1 - r) log(1 - p))`: it is
convex in the weights, best at the same probabilities, and slopes where predictions are badly wrong too. Both are told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pondertree.tune.features import Features, Weights

#: Scales that are looked at when the best one is searched for, in centipawns.
SCALES = (10.0, 5000.0)


@dataclass(frozen=True, slots=True)
class Errors:
    """How badly the results of positions are foretold."""

    log: float
    """Mean logarithmic error, in nats; knowing nothing gives 0.693."""
    squared: float
    """Mean squared error, Texel's."""

    def as_json(self) -> dict[str, float]:
        """Plain data."""
        return {"log": self.log, "squared": self.squared}


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), which cannot overflow in this form."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def log_error(x: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithmic error of `sigmoid(x)`: log(1 + exp(x)) - target * x, written so that it cannot overflow."""
    return np.logaddexp(0.0, x) - targets * x


def errors(features: Features, weights: Weights, scale: float) -> Errors:
    """The errors of weights; NaN where there is nothing to foretell."""
    if len(features) == 0:
        return Errors(float("nan"), float("nan"))
    x = features.scores(weights) / scale
    squared = (sigmoid(x) - features.targets) ** 2
    return Errors(float(log_error(x, features.targets).mean()), float(squared.mean()))


def error_and_gradient(features: Features, weights: Weights, log_scale: float) -> tuple[float, Weights, float]:
    """(mean logarithmic error, its gradient by the weights, and by the logarithm of the scale)."""
    scale = float(np.exp(log_scale))
    x = features.scores(weights) / scale
    slopes = (sigmoid(x) - features.targets) / len(features)
    error = float(log_error(x, features.targets).mean())
    return error, features.pull_back(slopes / scale), float(-(slopes * x).sum())


def penalty(weights: Weights, start: Weights, strength: float) -> tuple[float, Weights]:
    """(what it costs to be far from the start, its gradient): `strength / 2` times the squared distance in pawns.

    Without it nothing would hold what the positions do not speak of: squares no piece stood on, and a piece's value
    against a number added to all squares of its table.
    """
    away = (weights - start) / 100.0
    return 0.5 * strength * float((away**2).sum()), strength * away / 100.0


def best_scale(features: Features, weights: Weights) -> float:
    """The scale with which given weights foretell best. The error is convex in 1 / scale: golden section finds it."""
    scores = features.scores(weights)

    def error(log_scale: float) -> float:
        return float(log_error(scores * np.exp(-log_scale), features.targets).mean())

    low, high = (float(np.log(bound)) for bound in SCALES)
    ratio = (5.0**0.5 - 1.0) / 2.0
    first, second = high - ratio * (high - low), low + ratio * (high - low)
    errors_there = [error(first), error(second)]
    while high - low > 1e-5:
        if errors_there[0] <= errors_there[1]:
            high, second, errors_there[1] = second, first, errors_there[0]
            first = high - ratio * (high - low)
            errors_there[0] = error(first)
        else:
            low, first, errors_there[0] = first, second, errors_there[1]
            second = low + ratio * (high - low)
            errors_there[1] = error(second)
    return float(np.exp((low + high) / 2.0))
