"""Time management: pure functions from the arguments of `go` to search limits in seconds.

A search ends at its soft limit, or later up to the hard limit if its best move is unstable. Both are measured from the
arrival of the `go` line, with the communication overhead (`Move Overhead`) already subtracted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pondertree.uci.protocol import Go

#: Moves assumed to remain without `movestogo`.
MOVE_HORIZON = 28.0
#: Share of the increment spent on the current move.
INCREMENT_SHARE = 0.75
#: Hard limit as a multiple of the time share of one move.
MAX_EXTENSION = 3.0
#: Maximum shares of the clock per move while more moves remain.
SOFT_SHARE, HARD_SHARE = 0.35, 0.6
#: The same for the last move before a time control, and where the increment exceeds the remaining time.
LAST_SOFT_SHARE, LAST_HARD_SHARE = 0.7, 0.85
#: Maximum seconds between the hard limit and the deadline of the reply.
REPLY_MARGIN = 0.5
#: Lower bound of every limit, in seconds.
MIN_SECONDS = 0.001
#: Upper bound of every limit, in seconds.
MAX_SECONDS = 1e9
#: Decay of the lag estimate per move; and its factor, since the lag of incoming commands is not observable.
LAG_DECAY, LAG_FACTOR = 0.9, 2.0


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """TimeLimits in seconds from the arrival of `go`; infinite where unlimited."""

    soft: float = math.inf
    hard: float = math.inf
    deadline: float = math.inf
    """When the reply is sent even if the search has not returned."""

    @property
    def is_timed(self) -> bool:
        """Whether there is a time limit."""
        return self.hard < math.inf


def limits(go: Go, to_play: int, overhead: float, only_move: bool = False) -> TimeLimits:
    """Returns the limits of a `go` for the side to move (0: White), less `overhead` seconds."""
    found = TimeLimits()
    if go.movetime is not None:
        given = max(go.movetime, 0) / 1000.0
        fixed = bounded(given - min(overhead, given / 10.0))
        found = TimeLimits(fixed, fixed, bounded(given))
    if go.has_clock:
        clocks = (go.wtime, go.btime)
        # With only the opponent's clock given, both are assumed equal.
        remaining = next(clock for clock in (clocks[to_play], clocks[1 - to_play]) if clock is not None)
        increment = max((go.winc, go.binc)[to_play] or 0, 0)
        by_clock = from_clock(remaining / 1000.0, increment / 1000.0, go.movestogo, overhead)
        if only_move:
            # A single legal move: search briefly, for the ponder move.
            by_clock = TimeLimits(min(by_clock.soft, 0.005), min(by_clock.hard, 0.01), by_clock.deadline)
        found = TimeLimits(
            min(found.soft, by_clock.soft), min(found.hard, by_clock.hard), min(found.deadline, by_clock.deadline)
        )
    return found


def from_clock(remaining: float, increment: float, moves_to_go: int | None, overhead: float) -> TimeLimits:
    """Returns the limits for a clock with `remaining` seconds, never beyond it less `overhead`."""
    available = bounded(remaining - overhead)
    # Every remaining move has its own increment and overhead.
    moves = MOVE_HORIZON if moves_to_go is None or moves_to_go < 1 else min(float(moves_to_go), 2.0 * MOVE_HORIZON)
    reserve = min(overhead * (moves - 1.0), available / 2.0)
    share = (available - reserve) / moves + INCREMENT_SHARE * max(increment - overhead, 0.0)
    is_last = moves_to_go == 1 or increment >= remaining
    soft_part, hard_part = (LAST_SOFT_SHARE, LAST_HARD_SHARE) if is_last else (SOFT_SHARE, HARD_SHARE)
    soft = min(share, soft_part * available)
    hard = max(min(MAX_EXTENSION * share, hard_part * available), soft)
    return TimeLimits(bounded(soft), bounded(hard), bounded(hard + min((available - hard) / 2.0, REPLY_MARGIN)))


def bounded(seconds: float) -> float:
    """Clamps seconds to what timers accept."""
    return min(max(seconds, MIN_SECONDS), MAX_SECONDS)


def target_time(limits: TimeLimits, stability: float, is_consistent: bool) -> float:
    """Returns the time to end, in seconds from the arrival of `go`, extended while the best move is uncertain.

    `stability`, from 0 to 1, is the share of the time since the best move last changed; `is_consistent` whether the
    most visited move also has the highest value.
    """
    if limits.soft >= limits.hard:
        return limits.hard
    factor = 1.0
    if stability < 0.5:
        factor += 1.0 - 2.0 * stability
    if not is_consistent:
        factor += 0.75
    return min(limits.soft * factor, limits.hard)


def is_decided(first: int, second: int, per_second: float, seconds: float) -> bool:
    """Whether the second most visited move cannot overtake the first in the remaining time."""
    return first - second > per_second * max(seconds, 0.0)


class LagEstimate:
    """A decaying maximum of recent delays of replies, caused by scheduling on a busy machine."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def update(self, delay: float) -> None:
        """Records a reply sent `delay` seconds after its planned time."""
        self._seconds = max(delay, LAG_DECAY * self._seconds)

    def overhead(self, configured: float) -> float:
        """Returns the communication overhead in seconds, at least the configured one."""
        return max(configured, LAG_FACTOR * self._seconds)
