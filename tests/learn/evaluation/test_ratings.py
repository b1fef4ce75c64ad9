"""Joint Elo ratings: recovered strengths, errors by hand, profile-likelihood intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pondertree.learn.evaluation.ratings import Games, Interval, interval, rating_of
from pondertree.match.statistics import score_of as expected_score


@settings(max_examples=30)
@given(st.lists(st.floats(-400, 400), min_size=2, max_size=5))
def test_ratings_recover_generating_strengths(strengths: list[float]) -> None:
    """Expected scores of many games give back the strengths that generated them."""
    strengths = [0.0, *strengths]
    names = [f"player {number}" for number in range(len(strengths))]
    games = [
        Games(names[one], names[other], 10_000 * expected_score(strengths[one] - strengths[other]), 10_000)
        for one in range(len(names))
        for other in range(one)
    ]
    for name, strength in zip(names, strengths, strict=True):
        found = interval(games, "player 0", name)
        assert found.elo == pytest.approx(strength, abs=3.0)
        assert found.error < 15.0


def test_rating_of_unbeaten_player_is_finite_and_uncertain() -> None:
    games = [Games("a", "anchor", 20.0, 20), Games("b", "a", 10.0, 20)]
    first, second = (interval(games, "anchor", name) for name in ("a", "b"))
    assert 300 < first.elo < 1500
    assert first.error > 200
    assert second.elo == pytest.approx(first.elo, abs=60)
    assert interval(games, "anchor", "anchor").elo == 0.0
    assert interval([], "anchor", "anchor").error == 0.0


def test_rating_error_matches_hand_computation() -> None:
    """Two players: the variance of the logit of a share p of n games is 1 / (n p (1 - p))."""
    found = interval([Games("a", "anchor", 75.0, 100)], "anchor", "a")
    assert found.elo == pytest.approx(400 * math.log10(3), rel=0.02)
    assert found.error == pytest.approx(1.96 * 400 / math.log(10) / math.sqrt(100 * 0.75 * 0.25), rel=0.05)


def test_interval_of_two_players_matches_hand_computation() -> None:
    """For n games with score p both ends satisfy n (p log(p/q) + (1-p) log((1-p)/(1-q))) = 1.92."""
    found = interval([Games("a", "anchor", 300.0, 400)], "anchor", "a")
    assert found.elo == pytest.approx(400 * math.log10(3), rel=0.01)
    for end in (found.low, found.high):
        q = expected_score(end)
        assert 400 * (0.75 * math.log(0.75 / q) + 0.25 * math.log(0.25 / (1 - q))) == pytest.approx(1.92, rel=0.05)
    assert found.low < found.elo < found.high


@given(st.integers(1, 200), st.integers(0, 200))
def test_interval_of_swapped_players_is_mirrored(count: int, won: int) -> None:
    points = min(won, count) / 1.0
    one = interval([Games("a", "anchor", points, count)], "anchor", "a")
    other = interval([Games("a", "anchor", count - points, count)], "anchor", "a")
    assert (one.low, one.elo, one.high) == pytest.approx((-other.high, -other.elo, -other.low), abs=2.0)
    assert one.low <= one.elo <= one.high


def test_uninformative_interval_is_shown_as_bound() -> None:
    def shown(points: float, count: int) -> str:
        return str(interval([Games("a", "anchor", points, count)], "anchor", "a"))

    assert shown(20, 20) == "≥ +360"
    assert shown(0, 20) == "≤ -360"
    assert shown(10, 20) == "+0 ± 154"
    assert shown(1, 2) == "-534 to +534"
    assert str(Interval(851.2, 41.8, 1660.6)) == "+42 to +1661"
    # The bound grows with the number of games won, which a fixed estimate would not.
    assert shown(200, 200).startswith("≥ +7")


def test_rating_of_older_metrics_line_keeps_error() -> None:
    assert rating_of({"elo": 10.0, "elo_error": 20.0}) == Interval(10.0, -10.0, 30.0)
    assert rating_of({"elo": None, "elo_error": None}) is None


def test_intermediate_anchor_bounds_player_that_always_beats_weakest() -> None:
    alone = [Games("player", "weak", 20.0, 20)]
    chained = [*alone, Games("player", "strong", 11.0, 20), Games("strong", "weak", 17.0, 20)]
    assert interval(alone, "weak", "player").bound == ">"
    found = interval(chained, "weak", "player")
    assert found.bound is None
    assert 300 < found.elo < 600
