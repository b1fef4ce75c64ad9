"""Exact values of the moves of the shown position: solved once for all clients, and cancelled by any of them."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pondertree.errors import UnsolvedError, UsageError
from pondertree.game import describe
from pondertree.games import ConnectFour, connect_four
from pondertree.games.exhaustive import solve_exhaustively
from pondertree.view.position import unsolvable_because
from pondertree.view.session import Session

#: Seconds of a solve.
SOLVER_SECONDS = 20


class ExactSolver:
    """Solves the positions of a session. It belongs to the event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: One thread, so that solves do not keep frames from the threads of the event loop.
        self._thread = ThreadPoolExecutor(1, "pondertree-solver")
        #: The number of the position that was solved last, and its moves.
        self._solved: tuple[int, asyncio.Future[list[dict[str, Any]]] | None] = -1, None
        #: Set to end the solve under way and those that wait.
        self._stop = threading.Event()

    def close(self) -> None:
        """Ends the solves and the thread."""
        self._stop.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def cancel(self) -> None:
        """Ends the solves; their clients get an error."""
        self._stop.set()
        self._stop = threading.Event()

    async def solve(self) -> dict[str, Any]:
        """Solves the shown position, once for all requests; a game in Python is solved in the session's worker."""
        session = self._session
        number, state = await asyncio.wrap_future(session.submit(session.shown_state, is_urgent=False))
        solved, moves = self._solved
        if moves is None or solved != number or (moves.done() and (moves.cancelled() or moves.exception())):
            stop = self._stop.is_set
            if describe(state).compiled:
                done = self._thread.submit(self._solve_if_shown, number, state, stop)
            else:
                done = session.submit(functools.partial(solve, state, stop))
            moves = asyncio.wrap_future(done)
            # Reads the exception of a solve whose clients have all left.
            moves.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            self._solved = number, moves
        # A client that leaves does not end the solve of the others.
        return {"type": "solved", "position": number, "moves": await asyncio.shield(moves)}

    def _solve_if_shown(self, number: int, state: Any, stop: Callable[[], bool]) -> list[dict[str, Any]]:
        """Solves a position unless another one was to be solved while this one waited for the thread."""
        if self._solved[0] > number:
            raise UsageError("the position has changed before it was solved")
        return solve(state, stop)


def solve(state: Any, stop: Callable[[], bool] | None = None) -> list[dict[str, Any]]:
    """Returns the exact values of the legal moves for the player to move; no distance for draws.

    Raises an `UnsolvedError` after `SOLVER_SECONDS`, or soon after `stop()` is true.
    """
    unsolvable = unsolvable_because(state)
    if unsolvable:
        raise UnsolvedError(unsolvable, [])
    try:
        if isinstance(state, ConnectFour):
            solution = connect_four.solve(state, time_limit=SOLVER_SECONDS, stop=stop)
            plies = solution.action_plies or {}
            values = {action: (float(value), plies[action]) for action, value in solution.action_values.items()}
        else:
            values = solve_exhaustively(state, time_limit=SOLVER_SECONDS, stop=stop)
    except UnsolvedError as error:
        if stop is not None and stop():
            raise UnsolvedError("the exact solution was cancelled", []) from None
        if isinstance(state, ConnectFour):
            raise UnsolvedError(
                f"the solver did not finish within {SOLVER_SECONDS} s: play some moves first", []
            ) from None
        raise error
    return [
        {"action": action, "value": value, "distance": plies if value else None}
        for action, (value, plies) in values.items()
    ]
