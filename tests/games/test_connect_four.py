"""`connect_four.solve`: solutions, limits and errors. `core/tests/connect_four_solver.rs` tests the solver itself."""

from __future__ import annotations

import pickle
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.test_interrupt import seconds_until_interrupted

import pondertree
from pondertree.errors import GameOverError, InvalidArgumentError, UnsolvedError
from pondertree.games import ConnectFour, TicTacToe, connect_four
from pondertree.games.connect_four import Solution, solve, solve_many

#: Two full columns without a line: what follows is solved at once.
FULL = "777777666666"


def after(columns: str) -> ConnectFour:
    state = ConnectFour()
    for column in columns:
        state = state.play(state.parse_action(column))
    return state


def random_state(key: int, plies: int) -> ConnectFour:
    numbers = random.Random(key)
    while True:
        state = ConnectFour()
        while not state.is_terminal and plies > len(columns_of(state)):
            state = state.play(numbers.choice(state.legal_actions()))
        if not state.is_terminal:
            return state


def columns_of(state: ConnectFour) -> str:
    """One letter for each stone."""
    return "".join(letter for letter in str(state).partition("1 2")[0] if letter in "XO")


def plain(state: ConnectFour, known: dict[ConnectFour, tuple[int, int]]) -> tuple[int, int]:
    """(value, plies) for the player to move, by trying everything."""
    if state.is_terminal:
        return int(state.returns()[state.to_play]), 0
    if state not in known:
        replies = [plain(state.play(action), known) for action in state.legal_actions()]
        known[state] = max(
            ((-value, plies + 1) for value, plies in replies), key=lambda end: (end[0], -end[0] * end[1])
        )
    return known[state]


@settings(max_examples=60, deadline=None)
@given(key=st.integers(0, 10**9), plies=st.integers(29, 40))
def test_solution_matches_exhaustive_search(key: int, plies: int) -> None:
    state = random_state(key, plies)
    known: dict[ConnectFour, tuple[int, int]] = {}
    ends = {action: plain(state.play(action), known) for action in state.legal_actions()}
    solution = solve(state)
    assert (solution.value, solution.plies) == plain(state, known)
    assert solution.action_values == {action: -value for action, (value, _) in ends.items()}
    assert solution.action_plies == {action: length + 1 for action, (_, length) in ends.items()}
    best = [a for a, (value, length) in ends.items() if (-value, length + 1) == (solution.value, solution.plies)]
    assert solution.best_actions == tuple(best)
    weak = solve(state, weak=True)
    assert (weak.value, weak.action_values) == (solution.value, solution.action_values)
    assert weak.best_actions == weak.keeping_actions == solution.keeping_actions
    assert weak.plies is None
    assert weak.action_plies is None


def test_solver_finds_immediate_wins_and_losses() -> None:
    win = solve(after(FULL + "112233"))
    assert (win.value, win.plies, win.best_moves, str(win)) == (1, 1, ("4",), "won in 1 ply by 4")
    # Three in a row with both ends open: whatever is played, it is over with the second stone from here.
    loss = solve(after(FULL + "22334"))
    assert (loss.value, loss.plies) == (-1, 2)
    assert set(loss.action_values.values()) == {-1}
    assert loss.action_plies is not None
    assert set(loss.action_plies.values()) == {2}


@pytest.mark.slow
def test_positions_of_eight_stones_match_their_children() -> None:
    """A move is worth what the position after it is worth to the other player, and takes one stone more."""
    state = after("44444432")
    solution = solve(state)
    children = solve_many([state.play(action) for action in state.legal_actions()], weak=False)
    assert [-child.value for child in children] == list(solution.action_values.values())
    assert solution.action_plies is not None
    assert [child.plies for child in children] == [plies - 1 for plies in solution.action_plies.values()]


def test_solve_many_keeps_the_order_on_any_number_of_threads() -> None:
    states = [random_state(key, 14 + key % 20) for key in range(40)]
    one, three = (solve_many(iter(states), threads=threads) for threads in (1, 3))
    assert (
        [s.action_values for s in one]
        == [s.action_values for s in three]
        == [solve(state, weak=True).action_values for state in states]
    )
    assert solve_many([]) == []


def test_solver_is_exported_and_solutions_pickle() -> None:
    assert pondertree.games.connect_four.solve is solve
    assert connect_four.Solution is Solution
    solution = solve(after(FULL + "112233"))
    assert pickle.loads(pickle.dumps(solution)) == solution
    assert repr(solution).startswith("Solution(value=1, plies=1, best_actions=(3,), action_values={0: ")
    with pytest.raises(AttributeError):
        solution.value = 0  # type: ignore[misc]


def test_solver_refuses_finished_games_and_other_types() -> None:
    with pytest.raises(GameOverError, match="state: the game is over"):
        solve(after("1212121"))
    with pytest.raises(GameOverError, match=r"states\[1\]: the game is over"):
        solve_many([ConnectFour(), after("1212121")])
    with pytest.raises(InvalidArgumentError, match=r"state must be a pondertree\.games\.ConnectFour, not TicTacToe"):
        solve(TicTacToe())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"states\[0\] is of the class int"):
        solve_many([4])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("name", "value"),
    [("weak", 1), ("threads", 0), ("max_memory", 0), ("max_nodes", 0), ("time_limit", 0.0), ("time_limit", "1")],
)
def test_solver_errors_name_the_argument(name: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        solve_many([ConnectFour()], **{name: value})  # type: ignore[arg-type]


def test_solver_limits_raise_with_the_solutions_so_far() -> None:
    with pytest.raises(UnsolvedError, match=r"the position could not be solved within max_nodes=1000: .*weak=True"):
        solve(ConnectFour(), max_nodes=1000)
    with pytest.raises(UnsolvedError, match=r"time_limit=0\.05"):
        solve(ConnectFour(), time_limit=0.05)
    begun = time.perf_counter()
    with pytest.raises(UnsolvedError, match=r"before stop\(\) was true"):
        solve(ConnectFour(), time_limit=60, stop=lambda: time.perf_counter() > begun + 0.05)
    assert time.perf_counter() - begun < 30

    def fail() -> bool:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        solve(ConnectFour(), time_limit=60, stop=fail)
    with pytest.raises(InvalidArgumentError, match="stop must be"):
        solve(ConnectFour(), stop=3)  # type: ignore[arg-type]
    with pytest.raises(UnsolvedError, match="1 of 2 positions could not") as caught:
        solve_many([ConnectFour(), after(FULL + "112233")], max_nodes=100_000)
    missing, solution = caught.value.solutions
    assert missing is None
    assert solution is not None
    assert solution.value == 1
    assert pickle.loads(pickle.dumps(caught.value)).solutions == caught.value.solutions


@pytest.mark.parametrize("threads", [1, 2])
def test_solver_is_interruptible(threads: int) -> None:
    assert seconds_until_interrupted(lambda: solve_many([ConnectFour()] * 3, threads=threads), 0.1) < 1.0
