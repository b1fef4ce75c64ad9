"""The exact solver of Connect 4: the game-theoretic value, the distance to the end, and the value of each move.

from pondertree.games import ConnectFour, connect_four

print(connect_four.solve(state))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pondertree import validation
from pondertree._core import solve_connect_four
from pondertree.errors import GameOverError, InvalidArgumentError, UnsolvedError
from pondertree.games.compiled import ConnectFour

__all__ = ["Solution", "solve", "solve_many"]

_WORDS = {1: "won", 0: "drawn", -1: "lost"}


@dataclass(frozen=True, slots=True)
class Solution:
    """A solved position. Values are for the player to move: 1 won, 0 drawn, -1 lost."""

    value: int
    """The game-theoretic value."""
    plies: int | None
    """Plies to the end of the game under optimal play (quickest win, slowest loss). None if solved with `weak=True`."""
    best_actions: tuple[int, ...]
    """The optimal moves: quickest wins or slowest losses; with `weak=True`, those that keep the value."""
    action_values: dict[int, int]
    """The value of every legal action."""
    action_plies: dict[int, int] | None
    """Plies to the end of the game after each legal action, itself included. None if solved with `weak=True`."""
    nodes: int
    """Positions searched."""

    @property
    def best_moves(self) -> tuple[str, ...]:
        """`best_actions` as column numbers from 1 to 7."""
        return tuple(str(action + 1) for action in self.best_actions)

    @property
    def keeping_actions(self) -> tuple[int, ...]:
        """The moves that keep the value, however quickly."""
        return tuple(action for action, value in self.action_values.items() if value == self.value)

    def __str__(self) -> str:
        length = "" if self.plies is None else f" in {self.plies} {'ply' if self.plies == 1 else 'plies'}"
        return f"{_WORDS[self.value]}{length} by {', '.join(self.best_moves)}"


def solve(
    state: ConnectFour,
    *,
    weak: bool = False,
    max_memory: int = 64,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Solution:
    """Returns the exact solution of `state`.

    `weak=True` solves for the value without distances, which is faster. `max_memory` bounds the transposition table in
    MiB; a smaller one is slower, not less exact. Late positions take milliseconds, those after eight moves seconds, and
    the empty board many minutes; Ctrl-C interrupts. After `max_nodes` positions or `time_limit` seconds, or soon after
    `stop()` is true, an UnsolvedError is raised. A finished game raises a GameOverError.
    """
    if not isinstance(state, ConnectFour):
        raise InvalidArgumentError(f"state must be a pondertree.games.ConnectFour, not {type(state).__name__}")
    if state.is_terminal:
        raise GameOverError(f"state: the game is over, there is nothing to solve in\n{state}")
    solutions = solve_many(
        [state], weak=weak, threads=1, max_memory=max_memory, max_nodes=max_nodes, time_limit=time_limit, stop=stop
    )
    return solutions[0]


def solve_many(
    states: Iterable[ConnectFour],
    *,
    weak: bool = True,
    threads: int | None = None,
    max_memory: int = 64,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[Solution]:
    """Returns the solution of each state, on `threads` (by default all cores) with a common table of `max_memory` MiB.

    Solutions, except for `nodes`, do not depend on the number of threads. `max_nodes` holds for each state,
    `time_limit` and `stop` for all of them together: if one is not solved, an UnsolvedError with the other solutions is
    raised.
    """
    try:
        states = list(states)
    except MemoryError:
        raise
    except Exception as error:  # raised by its own __len__ or __iter__
        raise InvalidArgumentError(f"states must be a list of states, not {validation.shown(states)}") from error
    weak = validation.flag(weak, "weak")
    threads = None if threads is None else validation.useful_threads(validation.threads(threads))
    memory = validation.whole_number(max_memory, "max_memory", least=1, most=1 << 20) << 20
    max_nodes = None if max_nodes is None else validation.whole_number(max_nodes, "max_nodes", least=1)
    time_limit = None if time_limit is None else validation.positive_number(time_limit, "time_limit")
    if stop is not None:
        validation.function(stop, "stop", "function without arguments")
    outputs = solve_connect_four(states, weak, threads, memory, max_nodes, time_limit, stop)
    solved: list[Solution] = []
    all_answers: list[Solution | None] = []
    for answer in outputs:
        solution = None if answer is None else _solution(*answer)
        all_answers.append(solution)
        if solution is not None:
            solved.append(solution)
    if len(solved) < len(states):
        limits = {"max_nodes": max_nodes, "time_limit": time_limit}
        given = " and ".join(f"{name}={limit}" for name, limit in limits.items() if limit is not None)
        missing = f"{len(states) - len(solved)} of {len(states)} positions" if len(states) > 1 else "the position"
        if stop is not None and stop():
            raise UnsolvedError(f"{missing} could not be solved before stop() was true", all_answers)
        advice = "" if weak else ", or use weak=True, which solves for the value without distances"
        raise UnsolvedError(f"{missing} could not be solved within {given}: allow more{advice}", all_answers)
    return solved


def _solution(moves: list[tuple[int, int, int | None]], nodes: int) -> Solution:
    values = {action: value for action, value, _ in moves}
    plies = {action: length for action, _, length in moves if length is not None}
    value = max(values.values())
    best = [action for action in values if values[action] == value]
    if plies:
        # The quickest win or the slowest loss; every draw fills the board.
        length = min(plies[action] * value for action in best) * value if value else plies[best[0]]
        best = [action for action in best if plies[action] == length]
    return Solution(
        value=value,
        plies=plies[best[0]] if plies else None,
        best_actions=tuple(best),
        action_values=values,
        action_plies=plies or None,
        nodes=nodes,
    )
