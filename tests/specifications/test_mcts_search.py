"""`mcts_search` of Hybrid chess, in the engine and in the reference: arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from tests.support.hybrid import TACTICS

import pondertree
from pondertree.chess import mcts_search
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess, ConnectFour
from pondertree.reference import hybrid as reference

STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"

each_search = pytest.mark.parametrize("search", [mcts_search, reference.mcts_search], ids=["engine", "reference"])


class Even:
    """A batched evaluator of chess that counts pawns."""

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        return np.zeros((len(observations), 4672), dtype=np.float32), observations[:, 0].sum(axis=(1, 2)) / 100.0

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        return self.evaluate(np.stack([state.observation() for state in states]))


class FirstMove:
    """A policy network that gives all weight to the first legal move, in a chosen form."""

    def __init__(self, form: Callable[[Any, int], Any]) -> None:
        self.form = form

    def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
        return {self.form(state, state.legal_actions()[0]): 1.0}, 0.5


def test_priority_is_strict_in_mcts_search_and_prior_in_the_preset() -> None:
    """With uniform priors, strict order visits every move once before any is visited twice."""
    state = Chess(TACTICS)
    assert pondertree.Hybrid().priority == "prior"
    assert reference.MCTS().chess_config.priority == "strict"
    settings: dict[str, Any] = {"mate_search_depth": 0, "iterations": 60, "seed": 3}
    default = mcts_search(state, **settings)
    assert default == mcts_search(state, **settings, priority="strict") == reference.mcts_search(state, **settings)
    outputs = {priority: mcts_search(state, **settings, priority=priority) for priority in ("strict", "prior")}
    assert outputs["strict"] != outputs["prior"], "so that a wrong default is noticed"


@each_search
def test_mcts_search_accepts_boards_games_and_timedeltas(search: Any) -> None:
    chess = pytest.importorskip("chess")
    from pondertree.chess import ChessGame

    board = chess.Board(TACTICS)
    expected = search(Chess(TACTICS), iterations=40, seed=2)
    for given in (board, ChessGame(board)):
        assert search(given, iterations=40, seed=2) == ChessGame(board).get_move(expected)
    assert search(chess.Board(STALEMATE), iterations=5) is None
    assert search(board, time_limit=timedelta(milliseconds=20)) in board.legal_moves
    assert search(board, iterations=30, time_limit=timedelta(minutes=1)) in board.legal_moves
    with pytest.raises(ValueError, match="root_state"):
        search(ConnectFour(), iterations=5)


@each_search
def test_mcts_search_accepts_an_evaluator_as_policy_network(search: Any) -> None:
    state = Chess(TACTICS)
    expected = pondertree.Hybrid(Even(), num_simulations=50, priority="strict", seed=4).run(state).action
    assert search(state, Even(), iterations=50, seed=4) == expected
    with pytest.raises(ValueError, match="evaluator"):
        search(state, Even(), iterations=5, evaluator=Even())


@each_search
def test_mcts_search_accepts_a_chess_network(search: Any) -> None:
    pytest.importorskip("torch")
    from pondertree.chess import ChessNN

    network = ChessNN(blocks=1, channels=8, device="cpu").build(seed=1)
    state = Chess(TACTICS)
    expected = pondertree.Hybrid(network, num_simulations=30, priority="strict", seed=1).run(state).action
    assert search(state, network, iterations=30, seed=1) == expected


@each_search
@pytest.mark.parametrize("form", ["action", "uci", "san", "move"])
def test_policy_network_names_moves_in_any_form(search: Any, form: str) -> None:
    chess = pytest.importorskip("chess")
    forms: dict[str, Callable[[Any, int], Any]] = {
        "action": lambda state, action: action,
        "uci": lambda state, action: state.action_to_string(action),
        "san": lambda state, action: state.san(action),
        "move": lambda state, action: chess.Move.from_uci(state.action_to_string(action)),
    }
    state = Chess(TACTICS)
    found = search(state, FirstMove(forms[form]), 0, iterations=3, seed=1, priority=None)
    assert found == state.legal_actions()[0]


def test_time_limit_of_presets_accepts_a_timedelta() -> None:
    search = pondertree.UCT(time_limit=timedelta(milliseconds=30), seed=1)
    assert (search.seconds, search.num_simulations) == (0.03, None)
    assert search.run(Chess()).simulations > 0
    for wrong in (timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(InvalidArgumentError, match="time_limit must be above 0"):
            pondertree.UCT(time_limit=wrong)
