"""The game of the recipe. `tests/end_to_end/test_recipes.py` runs it in its copy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import PythonGame

import pondertree
from pondertree.evaluators import symmetries_of
from pondertree.games import ThreeRow  # type: ignore[attr-defined]
from pondertree.reference import uct
from pondertree.testing import check_game


class ByRule:
    """The rules again, to compare with: a tuple of squares."""

    num_players, num_actions = 2, 7

    def __init__(self, squares: tuple[int, ...] = (-1,) * 7) -> None:
        self.squares = squares

    @property
    def to_play(self) -> int:
        return (7 - self.squares.count(-1)) % 2

    @property
    def winner(self) -> int | None:
        lines = (self.squares[first : first + 3] for first in range(5))
        return next((line[0] for line in lines if line[0] >= 0 and len(set(line)) == 1), None)

    @property
    def is_terminal(self) -> bool:
        return self.winner is not None or -1 not in self.squares

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [square for square in range(7) if self.squares[square] < 0]

    def play(self, action: int) -> ByRule:
        return ByRule((*self.squares[:action], self.to_play, *self.squares[action + 1 :]))

    def returns(self) -> list[float]:
        return [0.0, 0.0] if self.winner is None else [1.0 - 2.0 * self.winner, 2.0 * self.winner - 1.0]


class Observed(PythonGame):
    """The compiled game behind the interface of a Python game, with its observation."""

    def observation(self) -> np.ndarray:
        return np.asarray(self.inside.observation())


def all_states(state: Any, other: Any) -> int:
    assert (state.is_terminal, state.legal_actions()) == (other.is_terminal, other.legal_actions())
    if state.is_terminal:
        assert state.returns() == other.returns()
        return 1
    return 1 + sum(all_states(state.play(action), other.play(action)) for action in state.legal_actions())


def test_rules_match_another_implementation() -> None:
    check_game(ThreeRow)
    assert all_states(ThreeRow(), ByRule()) > 5_000
    assert [one.actions[0] for one in symmetries_of("three_row")] == [0, 6]


@pytest.mark.parametrize("solve", [False, True])
def test_engine_matches_reference(solve: bool) -> None:
    result = pondertree.UCT(500, seed=2, solve=solve).run(ThreeRow())
    visits = uct.MCTS(500, seed=2, solve=solve).run(ThreeRow()).visits
    assert {action: int(result.visits[action]) for action in visits} == visits


def test_network_search_matches_game_in_python() -> None:
    def network(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = observations.reshape(len(observations), -1)
        return flat[:, :7] - flat[:, 7:14], np.tanh(flat[:, 2] - flat[:, 9])

    compiled, python = [
        pondertree.AlphaZero(network, 200, seed=4).run(state) for state in (ThreeRow(), Observed(ThreeRow()))
    ]
    assert compiled.visits.tolist() == python.visits.tolist()


def test_command_line_knows_the_game() -> None:
    command = [sys.executable, "-m", "pondertree", "search", "three_row", "--simulations", "100", "--seed", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("Three in a row, X to move")
