"""Time management: limits are positive and within the clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondertree.uci.clock import MIN_SECONDS, LagEstimate, TimeLimits, from_clock, is_decided, limits, target_time
from pondertree.uci.protocol import MAX_NUMBER, Go

milliseconds = st.one_of(st.integers(-MAX_NUMBER, MAX_NUMBER), st.integers(-100, 100_000), st.none())
counts = st.one_of(st.integers(-MAX_NUMBER, MAX_NUMBER), st.integers(-1, 100), st.none())
overheads = st.floats(0.0, 10.0)


@given(
    st.builds(Go, wtime=milliseconds, btime=milliseconds, winc=milliseconds, binc=milliseconds, movestogo=counts),
    milliseconds,
    st.integers(0, 1),
    overheads,
    st.booleans(),
)
def test_limits_are_positive_and_within_the_clock(
    go: Go, movetime: int | None, player: int, overhead: float, only_move: bool
) -> None:
    go = Go(wtime=go.wtime, btime=go.btime, winc=go.winc, binc=go.binc, movestogo=go.movestogo, movetime=movetime)
    found = limits(go, player, overhead, only_move)
    assert found.is_timed == (go.has_clock or movetime is not None)
    assert 0.0 < found.soft <= found.hard <= found.deadline
    clocks = [clock for clock in ((go.wtime, go.btime)[player], (go.btime, go.wtime)[player]) if clock is not None]
    if clocks:
        assert found.deadline <= max(clocks[0] / 1000.0 - overhead, MIN_SECONDS) + 1e-9
    if movetime is not None:
        assert found.deadline <= max(movetime / 1000.0, MIN_SECONDS)


@pytest.mark.parametrize(
    ("remaining", "increment", "moves", "soft", "hard"),
    [
        (1.0, 0.01, None, (0.005, 0.035), (0.015, 0.1)),  # 1+0.01
        (0.1, 0.0, None, (0.001, 0.01), (0.001, 0.02)),  # 0.1+0
        (0.01, 0.0, None, (0.001, 0.001), (0.001, 0.001)),  # no time left
        (60.0, 0.0, None, (1.5, 2.5), (4.0, 8.0)),
        (300.0, 3.0, None, (10.0, 15.0), (30.0, 45.0)),
        (10.0, 0.0, 1, (6.0, 9.9), (8.0, 9.9)),  # last move before the time control
        (10.0, 0.0, 10, (0.8, 1.1), (2.0, 3.5)),
        (1.0, 10.0, None, (0.5, 0.9), (0.7, 0.95)),  # the increment exceeds the remaining time
        (-5.0, 0.0, None, (0.001, 0.001), (0.001, 0.001)),
    ],
)
def test_limits_of_usual_clocks(
    remaining: float, increment: float, moves: int | None, soft: tuple[float, float], hard: tuple[float, float]
) -> None:
    found = from_clock(remaining, increment, moves, 0.03)
    assert soft[0] <= found.soft <= soft[1]
    assert hard[0] <= found.hard <= hard[1]


@pytest.mark.parametrize(
    ("base", "increment", "latency", "moves"),
    [(1.0, 0.01, 0.004, 300), (0.1, 0.0, 0.0005, 40), (60.0, 0.0, 0.005, 200), (10.0, 0.1, 0.02, 300)],
)
def test_simulated_game_has_no_time_loss_and_uses_the_clock(
    base: float, increment: float, latency: float, moves: int
) -> None:
    """Uses hard limits first, then soft ones; every reply is late by `latency`."""
    clock, used = base, 0.0
    for move in range(moves):
        found = from_clock(clock, increment, None, 0.03)
        spent = (found.hard if move < 10 else found.soft) + latency
        if clock <= 0.03 + latency:
            spent = MIN_SECONDS + latency / 10  # replied without search
        clock -= spent
        used += spent
        assert clock > 0.0, f"lost at move {move}"
        clock += increment
    assert used > 0.6 * base


def test_movestogo_time_lasts_to_time_control() -> None:
    clock = 10.0
    for moves in range(40, 0, -1):
        found = from_clock(clock, 0.0, moves, 0.03)
        clock -= found.hard + 0.01
        assert clock > 0.0


def test_unstable_search_extends_target_time() -> None:
    given_ = TimeLimits(1.0, 3.0, 3.1)
    assert target_time(given_, 1.0, True) == 1.0
    assert target_time(given_, 0.5, True) == 1.0
    assert target_time(given_, 0.0, True) == 2.0
    assert target_time(given_, 1.0, False) == 1.75
    assert target_time(given_, 0.0, False) == 2.75
    assert target_time(TimeLimits(2.0, 2.0, 2.0), 0.0, False) == 2.0
    assert target_time(TimeLimits(), 0.0, False) == math.inf


def test_search_is_decided_when_leader_cannot_be_overtaken() -> None:
    assert is_decided(1000, 100, 100.0, 5.0)
    assert not is_decided(1000, 100, 1000.0, 5.0)
    assert is_decided(2, 1, 1000.0, -1.0)


def test_missing_clock_uses_opponents_clock() -> None:
    assert limits(Go(wtime=60_000), 1, 0.03) == limits(Go(wtime=60_000), 0, 0.03)
    assert not limits(Go(depth=3), 0, 0.03).is_timed
    assert limits(Go(movetime=1000), 0, 0.03) == TimeLimits(0.97, 0.97, 1.0)
    assert limits(Go(movetime=0), 0, 0.03).deadline == MIN_SECONDS


def test_lag_estimate_rises_at_once_and_decays() -> None:
    """The overhead is at least the configured one, and twice the recent delay of replies."""
    lag = LagEstimate()
    assert lag.overhead(0.01) == 0.01
    lag.update(-0.5)
    assert lag.overhead(0.01) == 0.01
    lag.update(0.1)
    assert lag.overhead(0.01) == 0.2
    lag.update(0.01)
    assert lag.overhead(0.01) == pytest.approx(0.18)
    for _ in range(60):
        lag.update(0.001)
    assert lag.overhead(0.01) == 0.01
    # A larger overhead leaves more time on the clock.
    assert from_clock(0.3, 0.01, None, 0.1).hard < from_clock(0.3, 0.01, None, 0.01).hard
