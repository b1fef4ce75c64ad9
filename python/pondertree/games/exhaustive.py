"""The exact values of moves in small games: every position that can be reached is visited once."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any

from pondertree.errors import InvalidArgumentError, UnsolvedError
from pondertree.game import describe
from pondertree.games.game_state import end_values, is_zero_sum, listed_actions, refuse_end


def solve_exhaustively(
    state: Any,
    *,
    max_positions: int = 100_000,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[int, tuple[float, int]]:
    """Returns (value, plies to the end, itself included) of each legal action, for the player to move.

    For zero-sum games of two players whose states are hashable and never repeat. Wins are the quickest, losses the
    slowest. Raises an `UnsolvedError` if more positions can be reached, after `time_limit` seconds, or
    soon after `stop()` is true.
    """
    refuse_end(state)
    if not is_zero_sum(state):
        raise InvalidArgumentError("only zero-sum games of two players without rewards can be solved")
    if describe(state).has_chance:
        raise InvalidArgumentError("games with chance nodes cannot be solved by visiting their positions")
    if not isinstance(state, Hashable):
        raise InvalidArgumentError(f"the states of {type(state).__name__} must be hashable to be solved")
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    #: (value for the player to move, plies to the end) of solved positions; None while a position is on the stack.
    known: dict[Any, tuple[float, int] | None] = {state: None}
    root = _successors(state)
    stack = [(state, root)]
    while stack:
        position, moves = stack[-1]
        unsolved = next((after for after in moves.values() if known.get(after) is None), None)
        if unsolved is None:
            known[position] = max(_values(position, moves, known).values(), key=_rank)
            stack.pop()
        elif unsolved in known:
            raise UnsolvedError("positions of this game repeat: it cannot be solved by visiting them", [])
        elif unsolved.is_terminal:
            known[unsolved] = end_values(unsolved)[unsolved.to_play], 0
        else:
            known[unsolved] = None
            stack.append((unsolved, _successors(unsolved)))
        if len(known) > max_positions:
            raise UnsolvedError(f"more than {max_positions:,} positions can be reached: play some moves first", [])
        if stop is not None and stop():
            raise UnsolvedError("the position was not solved before stop() was true", [])
        if deadline is not None and len(known) % 64 == 0 and time.perf_counter() > deadline:
            raise UnsolvedError(f"the position could not be solved within {time_limit:g} s: play some moves first", [])
    return _values(state, root, known)


def _successors(state: Any) -> dict[int, Any]:
    return {action: state.play(action) for action in listed_actions(state)}


def _values(position: Any, moves: dict[int, Any], known: dict[Any, Any]) -> dict[int, tuple[float, int]]:
    values = {}
    for action, after in moves.items():
        value, plies = known[after]
        values[action] = (value if after.to_play == position.to_play else -value) + 0.0, plies + 1
    return values


def _rank(outcome: tuple[float, int]) -> tuple[float, int]:
    """Returns the sort key of the better move: the quickest win, the slowest loss."""
    value, plies = outcome
    return value, -plies if value > 0 else plies
