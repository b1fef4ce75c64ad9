"""SPRT: log-likelihood ratio against other computations, error rates in simulated matches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pondertree.errors import InvalidArgumentError
from pondertree.match import Sprt, llr, score_of
from pondertree.match.statistics import check_sprt, moments


def likelihood(counts: list[int], score: float) -> float:
    """The maximum log-likelihood of losses, draws, wins with a given score, by numerical search."""
    losses, draws, wins = counts

    def of(win: float) -> float:
        draw = 2.0 * (score - win)
        loss = 1.0 - win - draw
        return losses * math.log(loss) + draws * math.log(draw) + wins * math.log(win)

    low, high = max(0.0, 2.0 * score - 1.0), score
    for _ in range(300):
        one, other = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (one, high) if of(one) < of(other) else (low, other)
    return of((low + high) / 2.0)


@pytest.mark.parametrize("counts", [[20, 40, 40], [3, 10, 2], [300, 900, 350], [1, 1, 1], [40, 40, 20]])
@pytest.mark.parametrize("elos", [(0.0, 5.0), (-3.0, 1.0), (0.0, 50.0), (-100.0, 100.0)])
def test_llr_matches_maximum_likelihood_distributions(counts: list[int], elos: tuple[float, float]) -> None:
    expected = likelihood(counts, score_of(elos[1])) - likelihood(counts, score_of(elos[0]))
    assert llr(counts, *elos) == pytest.approx(expected, abs=1e-6)


def test_llr_matches_normal_approximation_for_large_counts() -> None:
    """The normal approximation N (s1 - s0) (2 m - s0 - s1) / (2 variance), for large N and close hypotheses."""
    counts = [120, 1500, 4200, 1700, 180]
    total, mean, variance = moments(counts)
    s0, s1 = score_of(0.0), score_of(4.0)
    assert llr(counts, 0.0, 4.0) == pytest.approx(
        total * (s1 - s0) * (2.0 * mean - s0 - s1) / (2.0 * variance), rel=0.01
    )


def test_llr_sign_and_symmetry() -> None:
    assert llr([0, 0, 0, 0, 0], 0.0, 10.0) == 0.0
    assert llr([0, 1, 5, 4, 3], 0.0, 20.0) > 0.0 > llr([3, 4, 5, 1, 0], 0.0, 20.0)
    counts = [2, 5, 9, 8, 1]
    assert llr(counts, -10.0, 20.0) == pytest.approx(-llr(counts, 20.0, -10.0))
    assert llr(counts, -10.0, 20.0) == pytest.approx(-llr(counts[::-1], -20.0, 10.0))
    assert llr([2 * count for count in counts], 0.0, 20.0) == pytest.approx(2.0 * llr(counts, 0.0, 20.0))


@pytest.mark.parametrize("counts", [[0, 0, 0, 0, 7], [7, 0, 0, 0, 0], [0, 0, 7, 0, 0], [0, 10**9, 0], [1, 0, 0, 0, 0]])
def test_llr_is_finite_for_equal_results(counts: list[int]) -> None:
    assert math.isfinite(llr(counts, 0.0, 5.0))
    assert math.isfinite(llr(counts, -2000.0, 2000.0))


def test_bounds_decide_verdict() -> None:
    test = Sprt(0.0, 20.0)
    assert test.bounds == pytest.approx((-2.944, 2.944), abs=1e-3)
    assert test.state([0, 0, 0, 0, 0]).verdict is None
    assert test.state([5, 30, 100, 90, 25]).verdict == "H1"
    assert test.state([25, 90, 100, 30, 5]).verdict == "H0"
    assert str(test.state([0, 0, 0, 0, 0])) == "LLR +0.00 (-2.94, +2.94): open"
    assert check_sprt((0, 5)) == Sprt(0.0, 5.0)
    assert check_sprt(None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((5, 5), "elo0 must be below elo1"),
        ((5, 0), "elo0 must be below elo1"),
        ((0, math.nan), "elo1"),
        ((0, "5"), "elo1"),
        ((0, 1e9), "elo1"),
        ((0,), "sprt"),
        (5, "sprt"),
        ("0,5", "sprt"),
    ],
)
def test_invalid_sprt_arguments_raise(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_sprt(given)


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, -0.1, math.nan])
def test_invalid_error_rates_raise(name: str, value: float) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        Sprt(0.0, 5.0, **{name: value})


def decide(test: Sprt, elo: float, seed: int) -> tuple[str, int]:
    """The verdict for players of known strength, and the number of pairs."""
    numbers = np.random.default_rng(seed)
    score, drawn = score_of(elo), 0.4
    share = [1.0 - score - drawn / 2.0, drawn, score - drawn / 2.0]
    counts = [0] * 5
    for pairs in range(1, 5000):
        for place in (numbers.choice(3, size=(2, 2), p=share)).sum(axis=0):
            counts[place] += 1
        verdict = test.state(counts).verdict
        if verdict is not None:
            return verdict, 2 * pairs
    raise AssertionError("no verdict")


@pytest.mark.slow
@pytest.mark.parametrize(("elo", "wrong"), [(0.0, "H1"), (80.0, "H0")])
def test_error_rates_are_within_bounds(elo: float, wrong: str) -> None:
    """400 simulated tests with 5 % errors; three standard deviations more are 8.3 %."""
    verdicts = [decide(Sprt(0.0, 80.0), elo, seed) for seed in range(400)]
    share = np.mean([verdict == wrong for verdict, _ in verdicts])
    assert 0.005 < share < 0.083
    assert 20 < np.mean([pairs for _, pairs in verdicts]) < 200
