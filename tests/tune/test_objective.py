"""The Texel objective, its gradient, and the best scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support.tuning import drawn_by

from pondertree.chess import Pesto
from pondertree.tune.features import (
    best_scale,
    error_and_gradient,
    errors,
    features_of,
    log_error,
    penalty,
    sigmoid,
    weights_of,
)
from pondertree.tune.fitting import FitOptions, cost_and_gradient


def test_errors_match_worked_examples() -> None:
    assert sigmoid(np.array([0.0, 1000.0, -1000.0])).tolist() == [0.5, 1.0, 0.0]
    found = log_error(np.array([0.0, 2.0, 1000.0, -1000.0]), np.array([0.5, 1.0, 1.0, 1.0]))
    assert found == pytest.approx([math.log(2), math.log(1 + math.exp(-2)), 0.0, 1000.0])


def test_gradients_match_finite_differences() -> None:
    positions = drawn_by(Pesto(), 400)
    features, anchor = features_of(positions, Pesto()), weights_of(Pesto())
    weights = anchor + np.random.default_rng(1).normal(0.0, 30.0, anchor.shape)
    numbers = np.append(weights.ravel() / 100.0, math.log(180.0))
    options = FitOptions(regularisation=50.0)
    value, gradient = cost_and_gradient(features, numbers, anchor, options)
    assert value == pytest.approx(
        error_and_gradient(features, weights, math.log(180.0))[0] + penalty(weights, anchor, 50.0 / features.games)[0]
    )
    # The largest components, the scale, and random ones.
    places = [*np.argsort(-np.abs(gradient))[:30], len(numbers) - 1, *range(0, len(numbers), 97)]
    for place in places:
        nearby = []
        for side in (1e-5, -1e-5):
            there = numbers.copy()
            there[place] += side
            nearby.append(cost_and_gradient(features, there, anchor, options)[0])
        assert gradient[place] == pytest.approx((nearby[0] - nearby[1]) / 2e-5, rel=1e-4, abs=1e-9)
    still = cost_and_gradient(features, numbers, anchor, FitOptions(fit_scale=False))[1]
    assert still[-1] == 0.0


def test_fitted_scale_recovers_true_scale() -> None:
    truth = Pesto(scale=240.0)
    features, weights = features_of(drawn_by(truth, 6000), truth), weights_of(truth)
    found = best_scale(features, weights)
    assert found == pytest.approx(240.0, rel=0.08)
    for other in (0.97 * found, 1.03 * found):
        assert errors(features, weights, found).log < errors(features, weights, other).log
