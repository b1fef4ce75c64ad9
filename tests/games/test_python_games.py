"""The games of examples/games: their exact values by brute force, and that a search finds them.

Together they have what two players in turn never show: three players who each look after themselves, rewards on the
way, and a player who moves twice in a row.
"""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from examples.games.double_move import DoubleMove
from examples.games.nim import LARGEST, Nim
from examples.games.triangle import ROWS, Triangle

import pondertree
from pondertree import UCT
from pondertree.errors import GameContractError
from pondertree.evaluators.batch import stack_observations
from pondertree.testing import check_game

GAMES = [Nim, CoinRow, Triangle, DoubleMove]


@cache
def values_below(state: Any) -> tuple[float, ...]:
    """What each player gets from `state` on, if each does the best for himself; brute force."""
    if state.is_terminal:
        return (0.0,) * state.num_players if hasattr(state, "rewards") else tuple(state.returns())
    return max((values_of(state, action) for action in state.legal_actions()), key=lambda values: values[state.to_play])


def values_of(state: Any, action: int) -> tuple[float, ...]:
    """What each player gets by `action`, its reward included."""
    after = state.play(action)
    rewards = after.rewards() if hasattr(after, "rewards") else (0.0,) * after.num_players
    return tuple(below + reward for below, reward in zip(values_below(after), rewards, strict=True))


def own_values(state: Any) -> dict[int, float]:
    """Exact value of each action for the player to move."""
    return {action: values_of(state, action)[state.to_play] for action in state.legal_actions()}


def best_actions(state: Any) -> set[int]:
    values = own_values(state)
    most = max(values.values())
    return {action for action, value in values.items() if value > most - 1e-9}


@pytest.mark.parametrize("game", GAMES)
def test_example_games_fulfil_the_contract(game: Any) -> None:
    report = check_game(game, games=50)
    assert report.unfinished == 0


@pytest.mark.parametrize("game", GAMES)
def test_example_games_run_as_scripts_and_are_short(game: Any) -> None:
    path = Path(sys.modules[game.__module__].__file__ or "")
    assert len(path.read_text(encoding="utf-8").splitlines()) < 66
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) >= 1


# Nim -----------------------------------------------------------------------------------------------------------------


def test_nim_is_won_unless_the_heaps_xor_to_zero() -> None:
    for a in range(LARGEST + 1):
        for b in range(LARGEST + 1):
            for c in range(LARGEST + 1):
                for player in (0, 1):
                    won = 1.0 if a ^ b ^ c else -1.0
                    assert values_below(Nim((a, b, c), player))[player] == won


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("heaps", [(2, 3, 5), (1, 2, 4), (3, 1, 1), (1, 1, 4)])
@pytest.mark.parametrize("player", [0, 1])
def test_search_wins_nim(heaps: tuple[int, ...], player: int, solve: bool) -> None:
    state = Nim(heaps, player)
    result = UCT(num_simulations=4000, seed=3, solve=solve).run(state)
    assert {result.action} == best_actions(state)
    assert result.value > 0.6
    assert result.proven == (1 if solve else None)
    if solve:
        assert result.value == 1.0
        # Whatever is proven of a move is true.
        exact = own_values(state)
        children = result.root.children
        proven = {action: child.proven for action, child in children.items() if child.proven is not None}
        assert result.action in proven
        assert all(-value == exact[action] for action, value in proven.items())


@pytest.mark.parametrize("player", [0, 1])
def test_search_proves_that_nim_is_lost(player: int) -> None:
    lost = UCT(num_simulations=4000, seed=5).run(Nim((1, 2, 3), player))
    assert (lost.proven, lost.value) == (-1, -1.0)
    open_ended = UCT(num_simulations=4000, seed=5, solve=False).run(Nim((1, 2, 3), player))
    assert open_ended.proven is None
    assert open_ended.value < -0.5


# Three players -------------------------------------------------------------------------------------------------------


def test_coin_row_has_its_known_value() -> None:
    """Taking the larger coin first is worth 11/54, the smaller one 19/54."""
    values = own_values(CoinRow())
    assert values == pytest.approx({0: 11 / 54, 1: 19 / 54})


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("to_play", [0, 1, 2])
def test_three_players_each_maximise_their_own_value(to_play: int, solve: bool) -> None:
    """Whoever begins: the values are those of the player to move, at the root and below it."""
    state = CoinRow(to_play=to_play)
    result = UCT(num_simulations=8000, c_param=0.2, seed=1, solve=solve).run(state)
    assert {result.action} == best_actions(state)
    exact = own_values(state)
    assert result.value == pytest.approx(max(exact.values()), abs=0.04)
    for action, value in exact.items():
        assert result.q[action] == pytest.approx(value, abs=0.08)
    # Nothing can be proven of a game of three.
    assert result.proven is None
    child = result.root.children[result.action]
    assert child.to_play == (to_play + 1) % 3
    assert child.q_value == pytest.approx(values_below(state.play(result.action))[child.to_play], abs=0.08)


def test_three_players_play_the_whole_game_right() -> None:
    """Nobody gives away more than a fiftieth of the coins at any move."""
    state, search = CoinRow(), UCT(num_simulations=6000, c_param=0.2, seed=0)
    while not state.is_terminal:
        result = search.run(state)
        exact = own_values(state)
        assert exact[result.action] > max(exact.values()) - 0.02
        state = state.play(result.action)


# One player with rewards ---------------------------------------------------------------------------------------------


def test_triangle_has_its_known_value() -> None:
    assert own_values(Triangle()) == pytest.approx({0: 2.9, 1: 2.7})
    state, greedy = Triangle(), 0.0
    while not state.is_terminal:
        state = max((state.play(action) for action in (0, 1)), key=lambda after: after.rewards()[0])
        greedy += state.rewards()[0]
    assert greedy == pytest.approx(2.1)
    assert sum(len(row) for row in ROWS) == 21


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_search_finds_the_best_path(seed: int, solve: bool) -> None:
    result = UCT(num_simulations=4000, seed=seed, solve=solve).run(Triangle())
    assert result.pv == ["left", "left", "left", "right", "right"]
    assert result.value == pytest.approx(2.9, abs=0.15)
    assert result.value <= 2.9 + 1e-9
    assert result.q[1] <= 2.7 + 1e-9
    assert result.proven is None
    # The reward of a move is that of the state it leads to.
    child = result.root.children[0]
    assert child.reward == pytest.approx(0.2)
    assert result.q[0] == pytest.approx(child.reward + child.q_value)


def test_rewards_before_the_root_do_not_count() -> None:
    """Two states that differ in what has been collected alone are worth the same."""
    state = Triangle(3, 0)
    assert state.rewards() == (0.9,)
    result = UCT(num_simulations=2000, seed=0).run(state)
    assert result.value == pytest.approx(values_below(state)[0], abs=0.1)


# Two moves in a row --------------------------------------------------------------------------------------------------


def test_double_move_has_its_known_values() -> None:
    values = own_values(DoubleMove())
    assert {square for square, value in values.items() if value == 1.0} == {0, 2, 4, 6, 8}
    assert {square for square, value in values.items() if value == -1.0} == {1, 3, 5, 7}
    order = "".join("XO"[DoubleMove("X" * ply + "." * (9 - ply)).to_play] for ply in range(9))
    assert order == "XOOXXOOXX"


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize(
    "board",
    [
        ".........",  # X: the first move
        ".X.......",  # O, twice: an edge can be held
        "XO.......",  # O again: the second move of the same side
        "X..OO....",  # X wins with two moves in a row
        "X.XOO....",  # X again: one move is left, and it wins
        "OX.XO....",  # X must not leave O a line it can finish with two moves
        ".X..XO.O.",
    ],
)
def test_signs_follow_who_moves(board: str, solve: bool) -> None:
    state = DoubleMove(board)
    exact = own_values(state)
    result = UCT(num_simulations=4000, seed=2, solve=solve).run(state)
    assert result.action in best_actions(state)
    best = max(exact.values())
    if solve:
        assert (result.proven, result.value) == (best, best)
        return
    assert result.value == pytest.approx(best, abs=0.6)
    for child in result.root.children.values():
        assert child.action is not None
        after = state.play(child.action)
        if not after.is_terminal:
            assert child.to_play == after.to_play
            # A node's value is its own player's: the sign changes where the player does, and only there.
            sign = 1.0 if after.to_play == state.to_play else -1.0
            if child.visit_count > 0 and not math.isnan(result.q[child.action]):
                assert child.q_value == pytest.approx(sign * float(np.asarray(result.q)[child.action]), abs=1e-6)


def test_double_moves_match_the_exact_values() -> None:
    """X wins the whole game against any defence, here that of the search itself."""
    state, search = DoubleMove(), UCT(num_simulations=3000, seed=4)
    while not state.is_terminal:
        action = search.search(state)
        assert action in best_actions(state)
        state = state.play(action)
    assert state.returns() == (1.0, -1.0)


# Mistakes that a search names -----------------------------------------------------------------------------------------


class Stones:
    """Take one to three of nine stones; who takes the last one wins. The games below change one thing each."""

    num_actions, num_players = 3, 2

    def __init__(self, left: int = 9, to_play: Any = 0) -> None:
        self.left, self.to_play = left, to_play

    @property
    def is_terminal(self) -> bool:
        return self.left == 0

    def legal_actions(self) -> Any:
        return [action for action in range(3) if action < self.left]

    def play(self, action: int) -> Any:
        if action not in range(min(self.left, 3)):
            raise ValueError(action)
        return type(self)(self.left - action - 1, 1 - self.to_play)

    def returns(self) -> Any:
        return [1.0, -1.0] if self.to_play else [-1.0, 1.0]


def listed(convert: Any) -> Any:
    return lambda self: convert(Stones.legal_actions(self))


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"legal_actions": listed(set)}, r"G\.legal_actions\(\) is a set: it must be a list, or another sequence"),
    ({"legal_actions": listed(iter)}, r"G\.legal_actions\(\) is a list_iterator: it must be a list"),
    ({"legal_actions": listed(lambda legal: dict.fromkeys(legal, 1))}, r"G\.legal_actions\(\) is a dict"),
    ({"legal_actions": listed(lambda legal: [str(action) for action in legal])}, r"G\.legal_actions\(\) has '0': act"),
    ({"legal_actions": listed(lambda legal: [(action, 0) for action in legal])}, r"G\.legal_actions\(\) has \(0, 0\)"),
    ({"legal_actions": listed(lambda legal: [float(action) for action in legal])}, r"G\.legal_actions\(\) has 0\.0: "),
    ({"legal_actions": listed(lambda legal: np.array([legal, legal]))}, r"G\.legal_actions\(\) has array\(\[\[0"),
    ({"legal_actions": property(Stones.legal_actions)}, r"G\.legal_actions is a property: make it a method"),
    ({"returns": property(Stones.returns)}, r"G\.returns is a property: make it a method"),
    ({"rewards": [1.0, -1.0]}, r"G\.rewards is \[1\.0, -1\.0\]: make it a method"),
    ({"returns": lambda self: {0: 1.0, 1: -1.0}}, r"G\.returns\(\) must be a list of numbers, not a dict"),
    ({"returns": lambda self: "11"}, r"G\.returns\(\) must be a list of numbers, not a str"),
    ({"returns": lambda self: {1.0, -1.0}}, r"G\.returns\(\) must be a list of numbers, not a set"),
    ({"rewards": lambda self: {0: 1.0, 1: -1.0}}, r"G\.rewards\(\) must be a list of numbers, not a dict"),
    (
        {"to_play": property(lambda self: lambda: 0, lambda self, to_play: None)},
        r"G\.to_play is a method: make it a property or an attribute",
    ),
    (
        {"to_play": property(lambda self: "X", lambda self, to_play: None), "play": lambda self, action: self},
        r"G\.to_play is 'X': it must be an int from 0 to 1",
    ),
]


@pytest.mark.parametrize("options", [{}, {"max_depth": 5}], ids=["plain playouts", "max_depth"])
@pytest.mark.parametrize(("changed", "message"), MISTAKES)
def test_search_names_the_attribute_that_is_wrong(changed: dict[str, Any], message: str, options: Any) -> None:
    with pytest.raises(GameContractError, match=f"^{message}"):
        UCT(100, seed=1, **options).run(type("G", (Stones,), changed)())


def test_playouts_refuse_returns_that_are_a_dict() -> None:
    """The root of the search is far from any end, so that playouts alone see one."""
    game: Any = type("G", (Stones,), {"returns": lambda self: {0: 1.0, 1: -1.0}})
    for options in ({}, {"max_depth": 100}):
        with pytest.raises(GameContractError, match=r"returns\(\) must be a list of numbers, not a dict"):
            UCT(2, seed=1, **options).run(game(40))
    with pytest.raises(GameContractError, match=r"returns\(\) must be a list of numbers, not a dict"):
        pondertree.playout(game(), 0)


@pytest.mark.parametrize("convert", [tuple, np.array, lambda legal: range(len(legal))])
def test_search_takes_any_sequence_of_legal_actions(convert: Any) -> None:
    game: Any = type("G", (Stones,), {"legal_actions": listed(convert)})
    assert UCT(100, seed=1).run(game()).visits.tolist() == UCT(100, seed=1).run(Stones()).visits.tolist()
    assert check_game(game).unfinished == 0


class SharedBoard:
    """Three squares to fill; all states have the same board."""

    num_actions, num_players = 3, 2

    def __init__(self, board: list[int] | None = None, to_play: int = 0) -> None:
        self.board, self.to_play = board or [0, 0, 0], to_play

    @property
    def is_terminal(self) -> bool:
        return all(self.board)

    def legal_actions(self) -> list[int]:
        return [square for square in range(3) if not self.board[square]]

    def play(self, action: int) -> SharedBoard:
        if self.board[action]:
            raise ValueError(action)
        self.board[action] = 1
        return SharedBoard(self.board, 1 - self.to_play)

    def returns(self) -> list[float]:
        return [0.0, 0.0]


def test_play_that_rejects_a_legal_action_hints_at_mutation() -> None:
    with pytest.raises(GameContractError, match=r"does play\(\) mutate the state.* pondertree\.testing\.check_game"):
        UCT(100, seed=1).run(SharedBoard())


@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("answer", [5.0, -1.5, math.nan, None, "1", [1.0, 2.0]])
def test_search_refuses_own_playouts_outside_of_the_range(players: int, answer: Any) -> None:
    own: dict[str, Any] = {"simulateRandomPlayout": lambda self, player, max_depth: answer}
    own |= {"num_players": players, "zero_sum": False}
    if players == 1:
        own["to_play"] = property(lambda self: 0, lambda self, to_play: None)
    game: Any = type("G", (Stones,), own)
    for ask in (lambda: UCT(10, seed=1).run(game()), lambda: pondertree.playout(game(), 0)):
        with pytest.raises(GameContractError, match=r"simulateRandomPlayout\(0, None\) gave .* a number from -1 to 1"):
            ask()


@pytest.mark.parametrize("answer", [[2.0, -2.0], [math.nan, 0.0], None, [1.0], 1.0, ["1", "2"]])
def test_search_refuses_wrong_results_of_random_playouts(answer: Any) -> None:
    game: Any = type("G", (Stones,), {"random_playout": lambda self, seed: answer})
    with pytest.raises(GameContractError, match=r"random_playout\(\d+\) gave .* 2 numbers from -1 to 1"):
        UCT(10, seed=1).run(game())


def test_random_playouts_are_called_with_new_seeds() -> None:
    seeds: list[int] = []

    def random_playout(self: Any, seed: int) -> list[float]:
        seeds.append(seed)
        return [0.25, -0.25]

    game: Any = type("G", (Stones,), {"random_playout": random_playout})
    result = UCT(20, seed=1, solve=False).run(game())
    assert len(set(seeds)) == len(seeds) > 10
    assert result.values[0] > -1.0
    UCT(20, seed=1, discount=0.5).run(game())
    UCT(20, seed=1, max_depth=3).run(game())
    again = seeds.copy()
    UCT(20, seed=1, solve=False).run(game())
    assert seeds[len(again) :] == again[: len(seeds) - len(again)]


def test_own_playouts_of_games_with_rewards_may_exceed_1() -> None:
    own = {"simulateRandomPlayout": lambda self, player, max_depth: 5.0, "rewards": lambda self: [0.0, 0.0]}
    game: Any = type("G", (Stones,), own)
    assert pondertree.playout(game(), 0) == 5.0
    assert UCT(10, seed=1).run(game()).simulations == 10
    assert check_game(game).unfinished == 0


class Observed(Stones):
    def observation(self) -> Any:
        return np.array([self.left, self.to_play], dtype=np.float32)


class ReusesItsObservation(Observed):
    buffer = np.zeros(2, dtype=np.float32)

    def observation(self) -> Any:
        self.buffer[:] = super().observation()
        return self.buffer


def by_stones(observations: Any) -> tuple[Any, Any]:
    """A value that depends on the position."""
    return np.zeros((len(observations), 3)), np.cos(observations[:, 0] + 3 * observations[:, 1])


def test_search_copies_observations_that_are_given_in_one_array() -> None:
    def visits(state: Any) -> list[int]:
        search = pondertree.AlphaZero(by_stones, 200, seed=1, in_flight=8, solve=False)
        return list(search.run(state).visits.tolist())

    assert visits(ReusesItsObservation(30)) == visits(Observed(30))
    states = [ReusesItsObservation(left) for left in (5, 9)]
    assert stack_observations(states).tolist() == [[5, 0], [9, 0]]
