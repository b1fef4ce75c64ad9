"""The rule of the recipe: the engine against the reference. `tests/end_to_end/test_recipes.py` runs it in its copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pondertree.reference.linear_puct import MCTS  # type: ignore[import-not-found]
from tests.support.engine_alphazero import Table
from tests.support.traces import first_difference

import pondertree
from pondertree.config import LinearPuct  # type: ignore[attr-defined]
from pondertree.game import GameInfo
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.gpu.tree_shape import TreeShape


class LinearAlphaZero(pondertree.AlphaZero):
    """AlphaZero with the rule."""

    c_linear = 0.05

    def config(self, info: GameInfo) -> Any:
        return replace(super().config(info), rule=LinearPuct(self.c_linear))


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("state", [TicTacToe(), ConnectFour(), Chess()], ids=lambda state: type(state).__name__)
def test_linear_puct_matches_reference(state: Any, in_flight: int) -> None:
    options: dict[str, Any] = {"seed": 3, "in_flight": in_flight}
    reference_search = MCTS(Table(levels=5), 150, 0.05, **options)
    reference_tree = reference_search.tree(state, trace=True)
    reference_search.simulate(reference_tree, 150)
    tree = LinearAlphaZero(Table(levels=5), 150, trace=True, **options).tree(state).simulate()
    difference = first_difference(tree.trace(), reference_tree.trace)
    assert difference is None, f"{difference} (a: engine, b: reference)"
    visits = reference_search.result(reference_tree).visits
    assert {action: int(tree.result().visits[action]) for action in visits} == visits


def test_linear_puct_differs_from_puct() -> None:
    searches = [LinearAlphaZero(Table(), 200, seed=3), pondertree.AlphaZero(Table(), 200, seed=3)]
    linear, plain = [search.run(Chess()).visits.tolist() for search in searches]
    assert linear != plain


def test_exploration_term_of_the_rule_matches_its_record() -> None:
    tree = LinearAlphaZero(Table(), 50, seed=3, trace=True).tree(ConnectFour()).simulate()
    choice = tree.trace()[-1]["terms"][0]
    visits, priors = (np.array([edge[name] for edge in choice["edges"]]) for name in ("visits", "prior"))
    expected = LinearPuct(0.05).exploration(visits, priors, choice["visits"])
    assert [edge["exploration"] for edge in choice["edges"]] == expected.tolist()


def test_linear_puct_parameter_is_checked() -> None:
    search = LinearAlphaZero(Table(), 10)
    search.c_linear = float("nan")
    with pytest.raises(pondertree.InvalidArgumentError, match="c_linear must be a finite number of at least 0"):
        search.run(TicTacToe())


def test_linear_puct_without_kernel_is_cpu_only() -> None:
    assert TreeShape(64, 100, 7, LinearPuct(), is_game=True).kernel is None
