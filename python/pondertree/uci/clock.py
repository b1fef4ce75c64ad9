"""How long to think: from the numbers of `go` to seconds. Pure functions, so that every claim about them can be tested.

`soft` is when a search ends if nothing speaks against it, `hard` is when it ends in any case. Both count from the
arrival of the `go` line, and what is lost on the way to the other program (`Move Overhead`) is taken off before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pondertree.uci.protocol import Go

#: Without `movestogo`, so many moves are thought to be still to come.
HORIZON = 28.0
#: Of an increment, so much is spent on the move that earns it.
OF_INCREMENT = 0.75
#: A search whose answer is not settled may take so many times its share of the time.
STRETCH = 3.0
#: While other moves are to come, no more than these parts of the clock are spent on one.
SOFT_PART, HARD_PART = 0.35, 0.6
#: The last move before new time, and moves with an increment that more than makes up for them, may take more.
LAST_SOFT_PART, LAST_HARD_PART = 0.7, 0.85
#: The answer is given for a search that is not back so many seconds after the hard limit, or sooner.
LATE = 0.5
#: No search is asked to end sooner than this.
LEAST = 0.001
#: Beyond some years it makes no difference.
MOST = 1e9
#: What a busy machine takes is forgotten by this factor a move. The way here takes as long as the way back, unseen.
FORGOTTEN, BOTH_WAYS = 0.9, 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds from the arrival of `go`; infinity where nothing limits them."""

    soft: float = math.inf
    hard: float = math.inf
    late: float = math.inf
    """When the answer must be out, whatever the search does."""

    @property
    def is_timed(self) -> bool:
        """Whether time ends the search."""
        return self.hard < math.inf


def limits(go: Go, to_play: int, overhead: float, only_move: bool = False) -> Limits:
    """What `go` allows the player to move (0: White), `overhead` seconds being lost on the way."""
    found = Limits()
    if go.movetime is not None:
        given = max(go.movetime, 0) / 1000.0
        fixed = bounded(given - min(overhead, given / 10.0))
        found = Limits(fixed, fixed, bounded(given))
    if go.has_clock:
        clocks = (go.wtime, go.btime)
        # Only the other side's clock was told: better to think that both are alike than never to answer.
        remaining = next(clock for clock in (clocks[to_play], clocks[1 - to_play]) if clock is not None)
        increment = max((go.winc, go.binc)[to_play] or 0, 0)
        by_clock = of_clock(remaining / 1000.0, increment / 1000.0, go.movestogo, overhead)
        if only_move:
            # Nothing to choose: a glance, for the line to expect.
            by_clock = Limits(min(by_clock.soft, 0.005), min(by_clock.hard, 0.01), by_clock.late)
        found = Limits(min(found.soft, by_clock.soft), min(found.hard, by_clock.hard), min(found.late, by_clock.late))
    return found


def of_clock(remaining: float, increment: float, moves_to_go: int | None, overhead: float) -> Limits:
    """Of a clock with so many seconds left: shares that never go beyond it, less `overhead`."""
    available = bounded(remaining - overhead)
    # Each move to come has its own increment, and its own overhead.
    moves = HORIZON if moves_to_go is None or moves_to_go < 1 else min(float(moves_to_go), 2.0 * HORIZON)
    reserve = min(overhead * (moves - 1.0), available / 2.0)
    share = (available - reserve) / moves + OF_INCREMENT * max(increment - overhead, 0.0)
    is_last = moves_to_go == 1 or increment >= remaining
    soft_part, hard_part = (LAST_SOFT_PART, LAST_HARD_PART) if is_last else (SOFT_PART, HARD_PART)
    soft = min(share, soft_part * available)
    hard = max(min(STRETCH * share, hard_part * available), soft)
    return Limits(bounded(soft), bounded(hard), bounded(hard + min((available - hard) / 2.0, LATE)))


def bounded(seconds: float) -> float:
    """Seconds that a computer can wait for."""
    return min(max(seconds, LEAST), MOST)


def wanted(limits: Limits, settled: float, agreed: bool) -> float:
    """When to end, given what the search has shown so far, in seconds from the arrival of `go`.

    `settled` is the part of the time for which the best move has been the same, from 0 to 1; `agreed` says whether the
    most visited move is also worth the most. A move that has just come up, or that is visited only out of habit, is
    worth a second look.
    """
    if limits.soft >= limits.hard:
        return limits.hard
    factor = 1.0
    if settled < 0.5:
        factor += 1.0 - 2.0 * settled
    if not agreed:
        factor += 0.75
    return min(limits.soft * factor, limits.hard)


def cannot_be_caught(first: int, second: int, per_second: float, seconds: float) -> bool:
    """Whether the second most visited move will not overtake the first in the time that is left."""
    return first - second > per_second * max(seconds, 0.0)


class Lag:
    """How much later than planned answers went out lately: on a busy machine the processor must be waited for."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def learn(self, late: float) -> None:
        """An answer was out `late` seconds after it should have been."""
        self._seconds = max(late, FORGOTTEN * self._seconds)

    def overhead(self, told: float) -> float:
        """Seconds that are lost on the way, at least as many as the user has told."""
        return max(told, BOTH_WAYS * self._seconds)
