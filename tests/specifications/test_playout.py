"""`pondertree.playout`: the result of one random game."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.search_helpers import PythonGame, after, random_position

import pondertree
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame

STARTS = st.sampled_from([TicTacToe, ConnectFour, Othello])


@given(
    start=STARTS, plies=st.integers(0, 30), seed=st.integers(0, 2**64 - 1), policy=st.sampled_from([None, "decisive"])
)
def test_playout_results_have_opposite_signs(start: Any, plies: int, seed: int, policy: str | None) -> None:
    state = random_position(start, plies, plies)
    first = pondertree.playout(state, 0, policy=policy, seed=seed)
    assert first in (-1.0, 0.0, 1.0)
    assert pondertree.playout(state, 1, policy=policy, seed=seed) == -first
    assert pondertree.playout(state, 0, policy=policy, seed=seed) == first
    assert pondertree.playout(PythonGame(state), 0, policy=policy, seed=seed) == first, "the same game in Python"


def test_playouts_without_a_seed_differ() -> None:
    assert len({pondertree.playout(ConnectFour(), 0) for _ in range(60)}) > 1


def test_chess_playout_ends_or_is_cut() -> None:
    assert -1.0 <= pondertree.playout(Chess(), 0, seed=1) <= 1.0
    assert pondertree.playout(Chess(), 0, max_depth=3, seed=1) == 0.0


@cache
def expectation(state: Any) -> float:
    """Returns the mean result for player 0 of all random games, weighted by probability."""
    if state.is_terminal:
        return float(state.returns()[0])
    legal = state.legal_actions()
    return sum(expectation(state.play(action)) for action in legal) / len(legal)


@pytest.mark.parametrize("moves", [[], [4], [0, 4, 8], [0, 1, 4, 8]])
def test_mean_of_playouts_matches_enumeration(moves: list[int]) -> None:
    state = after(TicTacToe(), moves)
    values = [pondertree.playout(state, 0, seed=seed) for seed in range(4000)]
    assert np.mean(values) == pytest.approx(expectation(state), abs=4 / np.sqrt(4000))


def test_playout_of_a_finished_game_is_its_result() -> None:
    state = after(ConnectFour(), "1 2 1 2 1 2 1")
    assert pondertree.playout(state, 0) == 1.0
    assert pondertree.playout(state, 1) == -1.0


@pytest.mark.parametrize("wrap", [False, True])
def test_cut_playout_scores_zero(wrap: bool) -> None:
    """Depth 0 is the state itself; the evaluator's value is for the player to move where the playout is cut."""
    seen: list[Any] = []

    class Noting:
        def evaluate_states(self, states: Any) -> tuple[None, np.ndarray]:
            seen.extend(states)
            return None, np.full(len(states), 0.25)

    state = PythonGame(ConnectFour()) if wrap else ConnectFour()
    assert pondertree.playout(state, 0, max_depth=0, evaluator=Noting(), seed=1) == 0.25
    assert seen == [state]
    assert pondertree.playout(state, 1, max_depth=0, evaluator=Noting(), seed=1) == -0.25
    assert pondertree.playout(state, 0, max_depth=3, evaluator=Noting(), seed=1) == -0.25, (
        "three plies on, the other moves"
    )
    assert pondertree.playout(state, 0, max_depth=4, evaluator=Noting(), seed=1) == 0.25
    assert pondertree.playout(state, 0, max_depth=3, seed=1) == 0.0
    count = len(seen)
    assert pondertree.playout(state, 0, max_depth=42, evaluator=Noting(), seed=1) in (-1.0, 0.0, 1.0)
    assert len(seen) == count, "the game had ended before"


def test_evaluator_values_the_cut_position() -> None:
    def mean(observations: np.ndarray) -> tuple[None, np.ndarray]:
        assert observations.dtype == np.float32
        assert observations.shape[0] == 1
        return None, np.array([0.5])

    for state in (ConnectFour(), PythonGame(ConnectFour())):
        assert pondertree.playout(state, 0, max_depth=2, evaluator=mean, seed=1) == 0.5


def test_decisive_policy_takes_the_win() -> None:
    state = after(ConnectFour(), "1 2 1 2 1 2")
    for given_state in (state, PythonGame(state)):
        results = [pondertree.playout(given_state, 0, policy="decisive", seed=seed) for seed in range(50)]
        assert results == [1.0] * 50
        assert min(pondertree.playout(given_state, 0, seed=seed) for seed in range(50)) < 1.0


def test_python_policy_chooses_the_moves() -> None:
    state = after(ConnectFour(), "1 2 1 2 1 2")
    assert pondertree.playout(state, 0, policy=lambda s: 0, seed=3) == 1.0
    assert pondertree.playout(state, 0, policy=lambda s: [1.0 if a == 0 else 0.0 for a in s.legal_actions()]) == 1.0
    weights = np.array([1.0, 0, 0, 0, 0, 0, 0])
    assert pondertree.playout(state, 0, policy=lambda s: weights) == 1.0


def test_playout_sums_rewards() -> None:
    state = TabularGame(3, players=2, rewards=True).start()
    for seed in range(20):
        path: list[int] = []

        def note(s: Any, path: list[int] = path) -> int:
            path.append(s.legal_actions()[0])
            return path[-1]

        total = pondertree.playout(state, 1, policy=note, seed=seed)
        assert total == pytest.approx(after(state, path).returns()[1])


def test_playout_of_three_players_has_each_players_result() -> None:
    state = TabularGame(3, players=3).start()
    values = [pondertree.playout(state, player, seed=5) for player in range(3)]
    assert all(-1.0 <= value <= 1.0 for value in values)
    assert len(set(values)) > 1
    evaluator = type("E", (), {"evaluate_states": lambda self, states: (None, np.array([[0.1, 0.2, 0.3]]))})()
    assert pondertree.playout(state, 2, max_depth=1, evaluator=evaluator, seed=1) == pytest.approx(0.3)
