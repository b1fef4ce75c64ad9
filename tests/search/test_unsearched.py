"""`UnsearchedWarning`: issued for answers without simulations, unless no search is needed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.exact_models import ExactBatchModel, RandomOutputs
from tests.support.search_helpers import PythonGame, after

import pondertree
from pondertree.errors import UnsearchedWarning
from pondertree.evaluators import Uniform
from pondertree.games import Chess, ConnectFour, TicTacToe

MATE_IN_ONE = Chess("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
ONE_MOVE = Chess("7k/8/8/8/8/8/1r6/K7 w - - 0 1")


class Slow:
    """An evaluator that takes longer than the time limit."""

    def evaluate_states(self, states: Any) -> tuple[None, list[float]]:
        time.sleep(0.05)
        return None, [0.0] * len(states)


UNSEARCHED: dict[str, Callable[[], pondertree.SearchResult]] = {
    "a new tree": lambda: pondertree.UCT(seed=1).tree(ConnectFour()).result(),
    "a new tree of a Python game": lambda: pondertree.UCT(seed=1).tree(PythonGame(ConnectFour())).result(),
    "a new tree with an evaluator": lambda: pondertree.AlphaZero(Uniform(), seed=1).tree(ConnectFour()).result(),
    "a new tree of a model": lambda: (
        pondertree.MuZero(ExactBatchModel([TicTacToe()], RandomOutputs())).tree(TicTacToe()).result()
    ),
    "no simulations wanted": lambda: pondertree.UCT(seed=1).tree(ConnectFour()).simulate(0).result(),
    "max_nodes": lambda: pondertree.UCT(50, seed=1, max_nodes=1).run(ConnectFour()),
    "max_memory": lambda: pondertree.MuZero(ExactBatchModel([TicTacToe()], RandomOutputs()), 9, max_memory=1e-6).run(
        TicTacToe()
    ),
    "a move never tried": lambda: advanced_to_an_untried_move(),
}


def advanced_to_an_untried_move() -> pondertree.SearchResult:
    tree = pondertree.UCT(seed=1).tree(ConnectFour()).simulate(3)
    visits = tree.result().visits
    tree.advance(int(visits.argmin()))
    return tree.result()


@pytest.mark.parametrize("name", UNSEARCHED)
@pytest.mark.parametrize("field", ["action", "move", "policy"])
def test_unsearched_answer_warns_once(name: str, field: str) -> None:
    result = UNSEARCHED[name]()
    with pytest.warns(UnsearchedWarning, match="no simulation was done"):
        getattr(result, field)
    getattr(result, field)


@pytest.mark.parametrize("name", UNSEARCHED)
def test_repr_of_an_unsearched_result_does_not_warn(name: str) -> None:
    result = UNSEARCHED[name]()
    assert "SearchResult" in repr(result)
    assert not result.visits.any()
    assert result.simulations == 0
    assert result.proven is None


def test_repr_of_a_new_tree_does_not_warn() -> None:
    assert "0 simulations" in repr(pondertree.UCT(seed=1).tree(ConnectFour()))


def test_unsearched_warning_points_at_the_caller() -> None:
    result = UNSEARCHED["a new tree"]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _ = result.action
    assert [warning.filename for warning in caught] == [__file__]


def test_time_limit_leaves_one_simulation_and_no_warning() -> None:
    result = pondertree.AlphaZero(Slow(), time_limit=0.001, seed=1).run(ConnectFour())
    assert result.simulations >= 1
    assert result.action in range(7)


def test_unsearched_single_action_does_not_warn() -> None:
    proven = pondertree.Hybrid(num_simulations=10, seed=1).run(MATE_IN_ONE)
    assert (proven.simulations, proven.proven) == (0, 1)
    assert proven.move == "a1a8"
    only = pondertree.UCT(seed=1).tree(ONE_MOVE).result()
    assert len(ONE_MOVE.legal_actions()) == 1
    assert only.action == ONE_MOVE.legal_actions()[0]
    one_allowed = pondertree.UCT(seed=1).tree(ConnectFour(), root_actions=[3]).result()
    assert one_allowed.action == 3
    retained = pondertree.UCT(seed=1).tree(after(ConnectFour(), "4")).simulate(200)
    retained.advance(retained.result().action)
    assert retained.result().simulations == 0
    assert retained.result().action in range(7)


@pytest.mark.parametrize("name", ["action", "move", "policy", "chess_move"])
def test_warning_points_at_the_caller_and_is_issued_once(name: str) -> None:
    result = pondertree.UCT(seed=1).tree(Chess()).result()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(result, name)
        assert result.action is not None
        assert result.policy is not None
    assert {warning.category for warning in caught} == {UnsearchedWarning}
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("method", ["search", "get_policy"])
def test_warning_of_a_method_points_at_the_caller_and_is_issued_once(method: str) -> None:
    with pytest.warns(UnsearchedWarning) as caught:
        getattr(pondertree.UCT(50, seed=1, max_nodes=1), method)(ConnectFour())
    assert [warning.filename for warning in caught] == [__file__]
