"""AlphaZero's search against OpenSpiel, misleading priors, and its own strength by simulations."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree.evaluators import Rollout
from pondertree.games import ConnectFour, TicTacToe
from pondertree.random import fold

pyspiel = pytest.importorskip("pyspiel")
python_mcts = pytest.importorskip("open_spiel.python.algorithms.mcts")


class Table:
    """Priors and values as a function of the position, the same for both libraries."""

    def __init__(self, salt: int = 0) -> None:
        self._salt = salt

    def numbers(self, state: Any) -> tuple[np.ndarray, float]:
        """Returns (weights of all actions, value for the player to move)."""
        key = fold(self._salt, zlib.crc32(state.observation().tobytes()))
        weights = np.array([fold(key, action) % 1_000_000 + 1 for action in range(state.num_actions)], dtype=np.float64)
        return weights, (fold(key, 99) % 2001 - 1000) / 1000.0

    def evaluate_states(self, states: Any) -> tuple[np.ndarray, np.ndarray]:
        rows = [self.numbers(state) for state in states]
        logits = np.log(np.array([weights for weights, _ in rows])).astype(np.float32)
        return logits, np.array([value for _, value in rows])


class OpenSpielTable(python_mcts.Evaluator):  # type: ignore[misc]
    """The same table as an OpenSpiel evaluator."""

    def __init__(self, start: Any) -> None:
        self._start = start
        self._table = Table()

    def _ours(self, state: Any) -> Any:
        ours = self._start
        for action in state.history():
            ours = ours.play(action)
        return ours

    def evaluate(self, state: Any) -> np.ndarray:
        value = self._table.numbers(self._ours(state))[1]
        return np.array([value, -value] if state.current_player() == 0 else [-value, value])

    def prior(self, state: Any) -> list[tuple[int, float]]:
        logits = self._table.evaluate_states([self._ours(state)])[0][0].astype(np.float64)
        legal = state.legal_actions()
        weights = np.exp(logits[legal] - logits[legal].max())
        return [(action, float(np.float32(w / weights.sum()))) for action, w in zip(legal, weights, strict=True)]


@pytest.mark.parametrize(("name", "start"), [("connect_four", ConnectFour), ("tic_tac_toe", TicTacToe)])
@pytest.mark.parametrize("simulations", [1, 10, 100, 400])
def test_visits_match_openspiel(name: str, start: Any, simulations: int) -> None:
    """PUCT, N(s) and unvisited Q = 0 coincide; OpenSpiel counts the evaluation of the root as a simulation."""
    game = pyspiel.load_game(name)
    bot = python_mcts.MCTSBot(
        game,
        1.7,
        simulations + 1,
        OpenSpielTable(start()),
        solve=False,
        random_state=np.random.RandomState(0),
        child_selection_fn=python_mcts.SearchNode.puct_value,
    )
    root = bot.mcts_search(game.new_initial_state())
    theirs = {child.action: child.explore_count for child in root.children}
    result = pondertree.AlphaZero(Table(), simulations, c_puct=1.7, solve=False, seed=1).run(start())
    assert {action: int(result.visits[action]) for action in theirs} == theirs
    for child in root.children:
        if child.explore_count:
            assert result.q[child.action] == pytest.approx(child.total_reward / child.explore_count)


@pytest.mark.parametrize("first_moves", [[0, 6, 0, 6, 0], [3, 0, 6, 0, 6, 0]])
def test_search_corrects_prior_on_losing_move(first_moves: list[int]) -> None:
    """Three in the first column: the priors favour moves elsewhere, which lose at once."""
    state: Any = ConnectFour()
    for action in first_moves:
        state = state.play(action)

    def blind(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros((len(observations), 7), dtype=np.float32)
        logits[:, 4] = 6.0
        return logits, np.zeros(len(observations))

    before = pondertree.AlphaZero(blind, 1, solve=False, seed=1).run(state)
    assert before.action == 4
    for solve in (False, True):
        result = pondertree.AlphaZero(blind, 2000, solve=solve, seed=1).run(state)
        assert result.action == 0
        assert result.policy[0] > 0.5


def test_more_simulations_play_better() -> None:
    """50, 200 and 800 simulations per move rank in that order."""
    ladder = [pondertree.AlphaZero(Rollout(), n, c_puct=1.5, solve=False, seed=7) for n in (50, 200, 800)]
    for weaker, stronger in itertools.pairwise(ladder):
        assert score(stronger, weaker, pairs=40) > 0.6


def score(one: Any, other: Any, pairs: int) -> float:
    """Returns the score of `one` over openings of two random moves, each played from both sides."""
    points = 0.0
    for pair in range(pairs):
        for side in (0, 1):
            state: Any = ConnectFour().play(pair % 7).play(pair // 7 % 7)
            while not state.is_terminal:
                player = one if state.to_play == side else other
                state = state.play(player.search(state, temperature=0))
            points += (1 + state.returns()[side]) / 2
    return points / (2 * pairs)
