"""Invalid parameters and roots of searches in learned models raise typed errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.bad_input import BROKEN_ROOTS, NOT_A_NUMBER, NOT_WHOLE, Row, crash, wrong
from tests.support.bad_models import PRESETS, by_preset
from tests.support.models import TableModel
from tests.support.search_helpers import after

import pondertree
from pondertree.games import TicTacToe

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


# --- Parameters -------------------------------------------------------------------------------------------------------


OF_BOTH = [
    *wrong("num_simulations", [0, -1, 2**32, 1.5, "12", True, [5, 0]]),
    *wrong("discount", [-0.1, 1.0001, -1, 2, *NOT_A_NUMBER]),
    *wrong("num_players", [0, 3, -1, *(each for each in NOT_WHOLE if each is not None)]),
    *wrong("time_limit", [0.0, -1.0, math.nan]),
    *wrong("max_nodes", [0, 1.5]),
    *wrong("in_flight", [0, 65536]),
    *wrong("threads", [0]),
    *wrong("seed", [-1, 1.5]),
    *wrong("model", [3, "network", object(), TableModel]),
]


OF_MUZERO = [
    *wrong("pb_c_base", [0, -1.0, *NOT_A_NUMBER]),
    *wrong("pb_c_init", [-1.0, *NOT_A_NUMBER]),
    *wrong("root_dirichlet_alpha", [0, -1.0, *NOT_A_NUMBER]),
    *wrong("root_exploration_fraction", [-0.1, 1.1, *NOT_A_NUMBER]),
    *wrong("normalize", ["Node", True, 1, "none", math.nan]),
]


OF_GUMBEL = [
    *wrong("max_num_considered_actions", [0, -1, *NOT_WHOLE]),
    *wrong("gumbel_scale", [-1.0, *NOT_A_NUMBER]),
    *wrong("value_scale", [-0.1, *NOT_A_NUMBER]),
    *wrong("maxvisit_init", [-1, *NOT_A_NUMBER]),
    *wrong("rescale_values", [1, 0, "yes", None]),
    *wrong("use_mixed_value", [1, "no", None]),
    *wrong("gumbel", [3.0, "numbers", [math.nan] * 5, [math.inf] * 5, [[[0.0]]], [[1.0], [1.0, 2.0]], [None] * 5]),
]


SETTINGS = [(preset, *each) for preset in PRESETS for each in OF_BOTH]


SETTINGS += [(PRESETS[0], *each) for each in OF_MUZERO] + [(PRESETS[1], *each) for each in OF_GUMBEL]


@pytest.mark.parametrize(
    ("preset", "name", "value"), SETTINGS, ids=[f"{p.__name__}-{n}={str(v)[:20]}" for p, n, v in SETTINGS]
)
def test_invalid_parameter_raises(preset: Any, name: str, value: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=name) as caught:
        preset(**{"model": TableModel(), name: value})
    assert isinstance(caught.value, ValueError)


def test_gumbel_requires_evaluator_or_model() -> None:
    for nothing in ({}, {"evaluator": lambda o: None, "model": TableModel()}):
        with pytest.raises(pondertree.InvalidArgumentError, match="an evaluator or a model"):
            pondertree.Gumbel(**nothing)
    with pytest.raises(pondertree.InvalidArgumentError, match="evaluator"):
        pondertree.Gumbel(3)
    with pytest.raises(pondertree.InvalidArgumentError, match="observation= needs a model"):
        pondertree.Gumbel(lambda o: (np.zeros((len(o), 7)), np.zeros(len(o)))).run(observation=np.zeros(3))
    with pytest.raises(TypeError, match="nonsense"):
        pondertree.MuZero(TableModel(), nonsense=1)


@by_preset
def test_action_space_is_bounded(preset: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="65536 actions"):
        preset(TableModel(65536)).run(observation=[1])


@pytest.mark.parametrize(("rows", "message"), [(np.zeros(3), "3 numbers.*5"), (np.zeros((2, 5)), "2 rows for 1")])
def test_gumbel_variates_of_wrong_shape_raise(rows: Any, message: str) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=f"gumbel has {message}"):
        pondertree.Gumbel(TableModel(5), gumbel=rows).run(observation=[1])


# --- Roots ------------------------------------------------------------------------------------------------------------


ROOTS: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {}, "a state, or observation="),
    ("both", {"state": TicTacToe(), "observation": [1]}, "not both"),
    ("a state with more", {"state": TicTacToe(), "legal_actions": [0]}, "require observation="),
    ("a state with a turn", {"state": TicTacToe(), "to_play": 0}, "require observation="),
    ("no state", {"state": 5}, "not a game state"),
    ("a generator", {"observation": (each for each in ([1], [2]))}, "observation is a generator: give a list"),
    ("a map of states", {"state": map(str, [1])}, "state is a map: give a list"),
    ("no action", {"observation": [1], "legal_actions": []}, "legal_actions.*empty"),
    ("all masked", {"observation": [1], "legal_actions": [False] * 5}, "legal_actions.*empty"),
    ("too short a mask", {"observation": [1], "legal_actions": [True, True]}, "legal_actions.*mask of 2.*5 actions"),
    ("too long a mask", {"observation": [1], "legal_actions": [True] * 6}, "legal_actions.*mask of 6.*5 actions"),
    ("too large", {"observation": [1], "legal_actions": [0, 5]}, "legal_actions.*has 5.*0 to 4"),
    ("huge", {"observation": [1], "legal_actions": [0, 10**9]}, "legal_actions.*has 1000000000"),
    ("beyond numbers", {"observation": [1], "legal_actions": [0, 2**70]}, "legal_actions"),
    ("negative", {"observation": [1], "legal_actions": [-1, 0]}, "legal_actions.*has -1"),
    ("repeated", {"observation": [1], "legal_actions": [3, 1, 3]}, "legal_actions.*has 3 twice"),
    ("floats", {"observation": [1], "legal_actions": [0.0, 1.0]}, "legal_actions.*whole numbers"),
    ("text", {"observation": [1], "legal_actions": "01"}, "legal_actions.*whole numbers"),
    ("a number", {"observation": [1], "legal_actions": 3}, "legal_actions.*whole numbers"),
    ("objects", {"observation": [1], "legal_actions": [None, object()]}, "legal_actions.*whole numbers"),
    ("no such player", {"observation": [1], "to_play": 2}, "to_play.*is 2"),
    ("negative player", {"observation": [1], "to_play": -1}, "to_play.*is -1"),
    ("player by name", {"observation": [1], "to_play": "white"}, "to_play.*'white'"),
    ("half a player", {"observation": [1], "to_play": 0.5}, "to_play.*0.5"),
    ("a flag", {"observation": [1], "to_play": True}, "to_play.*True"),
    ("row 1 empty", {"observation": [[1], [2]], "legal_actions": [[0], []]}, r"observation\[1\].*empty"),
    ("row 1 repeated", {"observation": [[1], [2]], "legal_actions": [[0], [2, 2]]}, r"observation\[1\].*2 twice"),
    ("row 1 too large", {"observation": [[1], [2]], "legal_actions": [[0], [7]]}, r"observation\[1\].*has 7"),
    ("row 1 ragged", {"observation": [[1], [2]], "legal_actions": [[0], [[0], [1, 2]]]}, r"observation\[1\].*whole"),
    ("row 1 turn", {"observation": [[1], [2]], "to_play": [0, 9]}, r"to_play of observation\[1\] is 9"),
    ("row 1 none", {"observation": [[1], None]}, r"observation\[1\] is None"),
    ("too few lists", {"observation": [[1], [2]], "legal_actions": [[0]]}, "legal_actions has 1 entries for 2"),
    ("one list for all", {"observation": [[1], [2]], "legal_actions": [0, 1, 2]}, "3 entries for 2"),
    ("too few turns", {"observation": [[1], [2]], "to_play": [0]}, "to_play has 1 entries"),
    ("actions that are no list", {"observation": [[1], [2]], "legal_actions": 5}, "do not match"),
    ("one and many", {"observation": 5.0, "to_play": [0, 1]}, "do not match"),
    ("other shapes", {"observation": [np.zeros(1), np.zeros(2)]}, "one batch"),
]


@by_preset
@pytest.mark.parametrize(("name", "root", "message"), ROOTS, ids=[case[0] for case in ROOTS])
def test_invalid_root_raises(name: str, root: dict[str, Any], message: str, preset: Any) -> None:
    search = preset(TableModel(5), num_simulations=5, num_players=2, seed=1)
    with pytest.raises(pondertree.InvalidArgumentError, match=message):
        search.run(**root)
    assert search.run(observation=[1], legal_actions=[0, 1]).simulations == 5


@by_preset
def test_several_roots_for_one_tree_raise(preset: Any) -> None:
    search = preset(TableModel(5), seed=1)
    for call in (search.tree, search.search, search.get_policy):
        with pytest.raises(pondertree.InvalidArgumentError, match="takes one observation"):
            call(observation=[[1], [2]])
    with pytest.raises(pondertree.InvalidArgumentError, match="list of observations"):
        search.forest(observation=[1])
    with pytest.raises(pondertree.GameOverError):
        preset(TableModel(9)).run(after(TicTacToe(), [0, 3, 1, 4, 2]))


@dataclass(frozen=True)
class Seen(Row):
    """A valid game with observations."""

    def observation(self) -> Any:
        return np.array([self.ply], dtype=np.float32)


@by_preset
@pytest.mark.parametrize(("name", "methods", "message"), BROKEN_ROOTS, ids=[case[0] for case in BROKEN_ROOTS])
def test_contract_violation_in_state_raises(name: str, methods: dict[str, Any], message: str, preset: Any) -> None:
    game = type("Wobbly", (Seen,), methods)
    search = preset(TableModel(3), num_simulations=5, seed=1)
    with pytest.raises(pondertree.GameContractError, match=message):
        _ = search.run(game()).move
    assert search.run(Seen()).simulations == 5


@by_preset
def test_state_that_does_not_fit_model_raises(preset: Any) -> None:
    search = preset(TableModel(3), num_simulations=5, seed=1)
    with pytest.raises(pondertree.EvaluationError, match=r"policy_logits has shape \(1, 3\): it must be \(1, 9\)"):
        search.run(TicTacToe())
    with pytest.raises(pondertree.GameContractError, match=r"Row has no observation\(\): a model"):
        search.run(Row())
    for methods, message in (
        ({"observation": crash}, "observation.*failed"),
        ({"to_play": -1}, "to_play is -1"),
        ({"to_play": "white"}, "str"),
        ({"legal_actions": lambda self: [0, "b"]}, "str"),
    ):
        with pytest.raises(pondertree.GameContractError, match=message):
            search.run(type("Wobbly", (Seen,), methods)())
    late = type("Late", (Seen,), {"legal_actions": lambda self: [0, 0] if self.ply else [0, 1]})
    with pytest.raises(pondertree.GameContractError, match=r"states\[1\].*0 twice"):
        search.run([late(), late(1)])
    with pytest.raises(pondertree.InvalidArgumentError, match="3 players"):
        search.run(type("Three", (Seen,), {"num_players": 3})())
    with pytest.raises(pondertree.InvalidArgumentError, match="num_players is 2, but Alone has 1"):
        preset(TableModel(3), num_players=2).run(type("Alone", (Seen,), {"num_players": 1, "to_play": 0})())
