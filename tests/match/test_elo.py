"""Elo: known values, worked examples, coverage of confidence intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pondertree.errors import InvalidArgumentError
from pondertree.match import elo_of, estimate, score_of
from pondertree.match.statistics import moments, normal, quantile


@pytest.mark.parametrize(
    ("score", "elo"),
    [(0.5, 0.0), (0.64, 99.95), (0.75, 190.85), (10 / 11, 400.0), (100 / 101, 800.0), (1 / 11, -400.0)],
)
def test_elo_and_score_are_inverse(score: float, elo: float) -> None:
    assert elo_of(score) == pytest.approx(elo, abs=0.01)
    assert score_of(elo) == pytest.approx(score, abs=1e-5)


def test_elo_of_perfect_scores_is_infinite() -> None:
    assert elo_of(0.0) == -math.inf
    assert elo_of(1.0) == math.inf
    assert score_of(1e9) == 1.0
    assert score_of(-1e9) == 0.0


def test_normal_distribution_and_quantile_match_known_values() -> None:
    assert quantile(0.975) == pytest.approx(1.959964, abs=1e-6)
    assert normal(1.0) == pytest.approx(0.841345, abs=1e-6)


def test_pentanomial_estimate_matches_worked_example() -> None:
    """1, 2, 10, 5, 2 pairs: 22.5 points of 40; the squared deviations of pair scores sum to 71/64."""
    found = estimate([1, 2, 10, 5, 2])
    variance = 71 / 64 / 20
    assert moments([1, 2, 10, 5, 2]) == pytest.approx((20, 0.5625, variance))
    error = math.sqrt(variance / 20)  # 0.05266
    assert found.score == 0.5625
    assert found.elo == pytest.approx(43.66, abs=0.01)
    assert found.low == pytest.approx(elo_of(0.5625 - 1.959964 * error), abs=1e-3)
    assert found.high == pytest.approx(elo_of(0.5625 + 1.959964 * error), abs=1e-3)
    assert found.los == pytest.approx(0.8823, abs=1e-3)
    # 0.0625 in standard deviations of a game, sqrt(2 * variance) = 0.33307, times 800 / ln 10 = 347.44.
    assert found.normalised == pytest.approx(65.2, abs=0.1)
    assert found.error == pytest.approx((found.high - found.low) / 2)


def test_trinomial_estimate_matches_worked_example() -> None:
    """20 losses, 40 draws, 40 wins: 60 %, variance 0.2 * 0.36 + 0.4 * 0.01 + 0.4 * 0.16 = 0.14, error 0.03742."""
    found = estimate([20, 40, 40])
    assert found.score == pytest.approx(0.6)
    assert found.elo == pytest.approx(70.44, abs=0.01)
    assert found.low == pytest.approx(elo_of(0.6 - 0.07333), abs=0.05)
    assert found.los == pytest.approx(normal(0.1 / 0.037417), abs=1e-4)
    assert found.normalised == pytest.approx(0.1 / math.sqrt(0.14) * 347.436, abs=0.01)


def test_pentanomial_interval_is_narrower_than_trinomial() -> None:
    """Openings that decide every game split every pair: pentanomial statistics show equality."""
    assert estimate([0, 1, 98, 1, 0]).error < 5.0
    assert estimate([100, 0, 100]).error > 30.0


def test_estimate_is_antisymmetric_in_players() -> None:
    one, other = estimate([3, 9, 20, 12, 6]), estimate([6, 12, 20, 9, 3])
    assert (one.elo, one.low, one.high) == pytest.approx((-other.elo, -other.high, -other.low))
    assert one.los == pytest.approx(1.0 - other.los)


def test_estimate_without_variance() -> None:
    nothing = estimate([0, 0, 0, 0, 0])
    assert math.isnan(nothing.elo)
    assert (nothing.low, nothing.high, nothing.los) == (-math.inf, math.inf, 0.5)
    assert str(nothing) == "Elo unknown: no games"
    won = estimate([0, 0, 0, 0, 10])
    assert won.elo == won.high == math.inf
    assert 200.0 < won.low < 400.0
    assert estimate([0, 0, 0, 0, 1000]).low > 1000.0
    assert won.los == pytest.approx(1.0 - 0.5**11)
    drawn = estimate([0, 0, 10, 0, 0])
    assert drawn.elo == 0.0
    assert drawn.los == 0.5
    assert drawn.low == pytest.approx(-drawn.high)
    assert 20.0 < drawn.high < 80.0


@pytest.mark.parametrize("counts", [[1, 2], [1, 2, 3, 4], 5, "12345", [1, -1, 0], [1.5, 0, 0], [math.nan] * 5, None])
def test_invalid_counts_raise(counts: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="counts"):
        estimate(counts)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan, "95"])
def test_invalid_confidence_raises(confidence: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="confidence"):
        estimate([1, 1, 1], confidence)


def simulate(elo: float, pairs: int, matches: int, seed: int, bias: float = 0.15) -> np.ndarray:
    """Pentanomial counts [matches, 5] of simulated matches, on openings that favour one side."""
    numbers = np.random.default_rng(seed)
    score, drawn = score_of(elo), 0.3
    points = np.zeros((matches, pairs), dtype=int)
    lean = numbers.uniform(-bias, bias, (matches, pairs))
    for side in (1, -1):
        win = score + side * lean - drawn / 2
        u = numbers.uniform(size=(matches, pairs))
        points += np.where(u < win, 2, np.where(u < win + drawn, 1, 0))
    return np.stack([(points == count).sum(axis=1) for count in range(5)], axis=1)


@pytest.mark.parametrize("elo", [0.0, 30.0, -120.0])
def test_interval_covers_true_elo(elo: float) -> None:
    """3000 simulated matches of 200 pairs: coverage of 95 % within three standard deviations (1.2 %)."""
    found = [estimate(counts.tolist()) for counts in simulate(elo, 200, 3000, seed=5)]
    covered = np.mean([one.low <= elo <= one.high for one in found])
    assert 0.935 < covered < 0.965
    assert np.mean([one.elo for one in found]) == pytest.approx(elo, abs=1.5)
