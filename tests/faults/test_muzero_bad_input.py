"""What a model or its caller can get wrong: an exception that names it, trees and pool as they were, and on we go."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.faults.test_bad_input import BROKEN_ROOTS, NOT_A_NUMBER, NOT_WHOLE, Row, crash, wrong
from tests.support.models import TableModel
from tests.support.trees import after, fingerprint
from tests.support.worlds import Rules

import pondertree
from pondertree.games import ConnectFour, TicTacToe

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

PRESETS: list[Any] = [pondertree.MuZero, pondertree.Gumbel]
by_preset = pytest.mark.parametrize("preset", PRESETS, ids=["muzero", "gumbel"])


# --- Settings ---------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(("rows", "words"), [(np.zeros(3), "3 numbers.*5"), (np.zeros((2, 5)), "2 rows for 1")])
def test_gumbel_variates_of_wrong_shape_raise(rows: Any, words: str) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=f"gumbel has {words}"):
        pondertree.Gumbel(TableModel(5), gumbel=rows).run(observation=[1])


# --- Roots ------------------------------------------------------------------------------------------------------

ROOTS: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {}, "a state, or observation="),
    ("both", {"state": TicTacToe(), "observation": [1]}, "not both"),
    ("a state with more", {"state": TicTacToe(), "legal_actions": [0]}, "come with observation="),
    ("a state with a turn", {"state": TicTacToe(), "to_play": 0}, "come with observation="),
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
    ("actions that are no list", {"observation": [[1], [2]], "legal_actions": 5}, "do not go together"),
    ("one and many", {"observation": 5.0, "to_play": [0, 1]}, "do not go together"),
    ("other shapes", {"observation": [np.zeros(1), np.zeros(2)]}, "one batch"),
]


@by_preset
@pytest.mark.parametrize(("name", "root", "words"), ROOTS, ids=[case[0] for case in ROOTS])
def test_invalid_root_raises(name: str, root: dict[str, Any], words: str, preset: Any) -> None:
    search = preset(TableModel(5), num_simulations=5, num_players=2, seed=1)
    with pytest.raises(pondertree.InvalidArgumentError, match=words):
        search.run(**root)
    assert search.run(observation=[1], legal_actions=[0, 1]).simulations == 5


@by_preset
def test_several_roots_for_one_tree_raise(preset: Any) -> None:
    search = preset(TableModel(5), seed=1)
    for call in (search.tree, search.search, search.get_policy):
        with pytest.raises(pondertree.InvalidArgumentError, match="one is wanted"):
            call(observation=[[1], [2]])
    with pytest.raises(pondertree.InvalidArgumentError, match="list of observations"):
        search.forest(observation=[1])
    with pytest.raises(pondertree.GameOverError):
        preset(TableModel(9)).run(after(TicTacToe(), [0, 3, 1, 4, 2]))


@dataclass(frozen=True)
class Seen(Row):
    """A game with observations."""

    def observation(self) -> Any:
        return np.array([self.ply], dtype=np.float32)


@by_preset
@pytest.mark.parametrize(("name", "methods", "words"), BROKEN_ROOTS, ids=[case[0] for case in BROKEN_ROOTS])
def test_contract_violation_in_state_raises(name: str, methods: dict[str, Any], words: str, preset: Any) -> None:
    game = type("Wobbly", (Seen,), methods)
    search = preset(TableModel(3), num_simulations=5, seed=1)
    with pytest.raises(pondertree.GameContractError, match=words):
        _ = search.run(game()).move
    assert search.run(Seen()).simulations == 5


@by_preset
def test_state_that_does_not_fit_model_raises(preset: Any) -> None:
    search = preset(TableModel(3), num_simulations=5, seed=1)
    with pytest.raises(pondertree.EvaluationError, match=r"policy_logits has shape \(1, 3\): it must be \(1, 9\)"):
        search.run(TicTacToe())
    with pytest.raises(pondertree.GameContractError, match=r"Row has no observation\(\): a model"):
        search.run(Row())
    for methods, words in (
        ({"observation": crash}, "observation.*failed"),
        ({"to_play": -1}, "to_play is -1"),
        ({"to_play": "white"}, "str"),
        ({"legal_actions": lambda self: [0, "b"]}, "str"),
    ):
        with pytest.raises(pondertree.GameContractError, match=words):
            search.run(type("Wobbly", (Seen,), methods)())
    late = type("Late", (Seen,), {"legal_actions": lambda self: [0, 0] if self.ply else [0, 1]})
    with pytest.raises(pondertree.GameContractError, match=r"states\[1\].*0 twice"):
        search.run([late(), late(1)])
    with pytest.raises(pondertree.InvalidArgumentError, match="3 players"):
        search.run(type("Three", (Seen,), {"num_players": 3})())
    with pytest.raises(pondertree.InvalidArgumentError, match="num_players is 2, but Alone has 1"):
        preset(TableModel(3), num_players=2).run(type("Alone", (Seen,), {"num_players": 1, "to_play": 0})())


# --- Models -----------------------------------------------------------------------------------------------------

PARTS = {"hidden": 0, "reward": 1, "logits": 2, "value": 3, "discount": 4}
Change = Callable[[Any], Any]


@dataclass
class Breakable:
    """Right, until it is told how to be wrong; `rows` at once, the last of which is the one that is spoiled."""

    model: Any
    change: Change | None = None
    calls: int = 0

    def initial_inference(self, observations: Any) -> Any:
        hidden, logits, value = self.model.initial_inference(observations)
        answer = [hidden, np.zeros(len(value)), np.array(logits), np.array(value)]
        changed = answer if self.change is None else self.change(answer)
        return (changed[0], *changed[2:4]) if isinstance(changed, list) else changed

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> Any:
        self.calls += 1
        answer = list(self.model.recurrent_inference(hidden_states, actions))
        changed = answer if self.change is None else self.change(answer)
        return tuple(changed) if isinstance(changed, list) else changed


def entry(part: str, place: Any, number: Any) -> Change:
    """The answer with one number replaced."""

    def change(answer: list[Any]) -> list[Any]:
        answer[PARTS[part]] = np.array(answer[PARTS[part]], dtype=np.float64)
        answer[PARTS[part]][place] = number
        return answer

    return change


def instead(part: str, make: Change) -> Change:
    """The answer with one part replaced."""

    def change(answer: list[Any]) -> list[Any]:
        answer[PARTS[part]] = make(answer[PARTS[part]])
        return answer

    return change


def with_discount(number: Any) -> Change:
    return lambda answer: [*answer[:4], np.where(np.arange(len(answer[1])) == 1, number, 0.5)]


OF_A_ROOT: list[tuple[str, Change, str]] = [
    ("nan logit", entry("logits", (-1, 2), math.nan), "policy_logits of row 1, action 2 is nan"),
    ("inf logit", entry("logits", (-1, 2), math.inf), "policy_logits of row 1, action 2 is inf"),
    ("no action", entry("logits", -1, -math.inf), "row 1.*every"),
    ("nan value", entry("value", -1, math.nan), "value of row 1 is nan"),
    ("inf value", entry("value", -1, math.inf), "value of row 1 is inf"),
    ("huge value", entry("value", -1, 1e13), "value of row 1"),
    ("too few logits", instead("logits", lambda x: x[:, :-1]), "policy_logits has shape"),
    ("too few rows of logits", instead("logits", lambda x: x[:-1]), "policy_logits has shape"),
    ("flat logits", instead("logits", lambda x: x[0]), "policy_logits has shape"),
    ("one value", instead("value", lambda x: 0.5), "value is one number for the whole batch"),
    ("two values a row", instead("value", lambda x: np.zeros((len(x), 2))), "value has shape"),
    ("texts", instead("value", lambda x: ["good"] * len(x)), "value"),
    ("no value", instead("value", lambda x: None), "value"),
    ("other hidden shape", instead("hidden", lambda x: np.zeros((len(x), 7))), "hidden_state has changed its shape"),
    ("other hidden kind", instead("hidden", lambda x: x.astype(np.float32)), "hidden_state has changed its shape"),
    ("too few hidden", instead("hidden", lambda x: x[:-1]), "hidden_state has shape"),
    ("hidden of no rows", instead("hidden", lambda x: np.float32(1.0)), "hidden_state"),
    ("hidden in a dict", instead("hidden", lambda x: {"a": x}), "hidden_state has changed its structure"),
    ("hidden text", instead("hidden", lambda x: "state"), "hidden_state"),
    ("nothing", lambda answer: None, "returned a NoneType"),
    ("one thing", lambda answer: answer[2], "returned a ndarray"),
    ("two things", lambda answer: tuple(answer[:2]), "tuple of 2"),
    ("raises", lambda answer: crash(Row()), "ZeroDivisionError in (initial|recurrent)_inference"),
]
OF_A_STEP: list[tuple[str, Change, str]] = [
    *OF_A_ROOT,
    ("one reward", instead("reward", lambda x: 0.5), "reward is one number for the whole batch"),
    ("one reward in a list", instead("reward", lambda x: [0.5]), "reward is one number for the whole batch"),
    ("nan reward", entry("reward", -1, math.nan), "reward of row 1 is nan"),
    ("inf reward", entry("reward", 0, -math.inf), "reward of row 0 is -inf"),
    ("huge reward", entry("reward", -1, -1e13), "reward of row 1"),
    ("rewards of players", instead("reward", lambda x: np.zeros((len(x), 2))), "reward has shape"),
    ("discount above 1", with_discount(1.5), "discount of row 1 is 1.5"),
    ("discount below -1", with_discount(-1.5), "discount of row 1 is -1.5"),
    ("nan discount", with_discount(math.nan), "discount of row 1 is nan"),
    ("one discount", lambda answer: [*answer[:4], 0.5], "discount is one number for the whole batch"),
    ("six things", lambda answer: (*answer[:4], answer[1], answer[1]), "tuple of 6"),
]


def state_of(forest: Any) -> tuple[Any, ...]:
    """Trees and pool: what they hold, what they take and what they answer."""
    pool = forest._world._pool
    views = [result._view for result in forest.results()]
    slots = [[view.node(index)[8] for index in range(view.num_nodes)] for view in views]
    hidden = [pool.gather(np.array(each)).tolist() for each in slots]
    layout = (pool.layout.structure, pool.layout.leaves)
    trees = [fingerprint(result) for result in forest.results()]
    return trees, slots, hidden, pool.capacity, layout


@by_preset
@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize(("name", "change", "words"), OF_A_STEP, ids=[case[0] for case in OF_A_STEP])
def test_invalid_model_output_in_search_raises(
    name: str, change: Change, words: str, in_flight: int, preset: Any
) -> None:
    model = Breakable(TableModel(5, largest_reward=1.0))
    forest = preset(model, in_flight=in_flight, seed=1).forest(observation=[[1], [2]])
    forest.simulate(16)
    before = state_of(forest)
    model.change = change
    if in_flight > 1:
        words = words.replace("row 1", r"row \d")
    with pytest.raises(pondertree.EvaluationError, match=words) as caught:
        forest.simulate(16)
    assert isinstance(caught.value, ValueError)
    if name == "raises":
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert state_of(forest) == before, "trees and pool are as they were"
    model.change = None
    whole = preset(model, in_flight=in_flight, seed=1).forest(observation=[[1], [2]]).simulate(16)
    if preset is pondertree.MuZero:
        expected = [fingerprint(result) for result in whole.simulate(16).results()]
        assert [fingerprint(result) for result in forest.simulate(16).results()] == expected
    else:
        assert min(result.simulations for result in forest.simulate(16).results()) == 32


@by_preset
@pytest.mark.parametrize(("name", "change", "words"), OF_A_ROOT, ids=[case[0] for case in OF_A_ROOT])
def test_invalid_model_output_at_root_raises(name: str, change: Change, words: str, preset: Any) -> None:
    """When trees are planted, and when one of them is reset or moves on."""
    model = Breakable(TableModel(5))
    search = preset(model, seed=1)
    forest = search.forest(observation=[[1], [2]]).simulate(10)
    before = state_of(forest)
    model.change = change
    if "changed" not in words and name != "too few logits":  # a first answer may have any form, if it has one
        with pytest.raises(pondertree.EvaluationError, match=words):
            search.run(observation=[[1], [2]])
    # Of one row now; whichever row it is, it is named.
    words = words.replace("row 1", r"row \d").replace("is one number for the whole batch", "")
    for call in (
        lambda: forest.reset(1, observation=[3]),
        lambda: forest.advance(1, forest.result(1).action, observation=[3]),
        lambda: forest.advance(1, forest.result(1).action),
    ):
        with pytest.raises(pondertree.EvaluationError, match=words):
            call()
        assert state_of(forest) == before
    model.change = None
    forest.advance(1, forest.result(1).action, observation=[3])
    forest.reset(0, observation=[3])
    assert [result.simulations for result in forest.simulate(5).results()] == [5, 5]


@by_preset
def test_negative_discount_requires_two_players(preset: Any) -> None:
    model = Breakable(TableModel(5))
    forest = preset(model, seed=1).forest(observation=[[1], [2]]).simulate(5)
    before = state_of(forest)
    model.change = with_discount(-0.5)
    with pytest.raises(pondertree.EvaluationError, match=r"row 1.*discount is -0.5.*num_players is 1"):
        forest.simulate(5)
    assert state_of(forest) == before


@by_preset
def test_failed_batch_is_rolled_back_alone(preset: Any) -> None:
    model = Breakable(TableModel(4))
    forest = preset(model, seed=1, in_flight=2).forest(observation=[[1], [2]])
    states: list[Any] = []

    def note(done: int, wanted: int) -> None:
        states.append(state_of(forest))
        if model.calls == 5:
            model.change = lambda answer: crash(Row())

    with pytest.raises(pondertree.EvaluationError, match="ZeroDivisionError"):
        forest.simulate(40, progress=note)
    assert state_of(forest) == states[-1]
    assert forest.result(0).simulations > 0
    for interrupt in (KeyboardInterrupt, SystemExit):

        def stop(answer: Any, error: type[BaseException] = interrupt) -> Any:
            raise error

        model.change = stop
        with pytest.raises(interrupt):
            forest.simulate(4)
        assert state_of(forest) == states[-1]


@by_preset
def test_reentrant_call_from_model_raises(preset: Any) -> None:
    model = Breakable(TableModel(4))
    forest = preset(model, seed=1).forest(observation=[[1]])
    for entered in (
        lambda: forest.simulate(1),
        lambda: forest.reset(0, observation=[1]),
        lambda: forest.advance(0, 0),
    ):
        model.change = lambda answer, entered=entered: entered()
        with pytest.raises(pondertree.PondertreeError, match="running"):
            forest.simulate(3)
        assert forest.result(0).simulations == 0
    model.change = None
    assert forest.simulate(3).result(0).simulations == 3


# --- Moving on --------------------------------------------------------------------------------------------------

TOLD: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("no such action", {"action": 5}, pondertree.InvalidActionError, "action 5 is not legal"),
    ("not a legal one", {"action": 3}, pondertree.InvalidActionError, "action 3 is not legal"),
    ("no action", {"action": "a"}, pondertree.InvalidArgumentError, "action"),
    ("nothing legal", {"legal_actions": []}, pondertree.InvalidArgumentError, "legal_actions.*empty"),
    ("twice", {"legal_actions": [1, 1]}, pondertree.InvalidArgumentError, "legal_actions.*1 twice"),
    ("too large", {"legal_actions": [5]}, pondertree.InvalidArgumentError, "legal_actions.*has 5"),
    ("short mask", {"legal_actions": [True]}, pondertree.InvalidArgumentError, "legal_actions.*mask of 1"),
    ("no such player", {"to_play": 2}, pondertree.InvalidArgumentError, "to_play.*is 2"),
    ("no such index", {"index": 2}, pondertree.InvalidArgumentError, "index 2"),
]


@by_preset
@pytest.mark.parametrize(("name", "told", "error", "words"), TOLD, ids=[case[0] for case in TOLD])
def test_invalid_advance_raises(name: str, told: dict[str, Any], error: Any, words: str, preset: Any) -> None:
    forest = preset(TableModel(5), num_players=2, seed=1).forest(
        observation=[[1], [2]], legal_actions=[[0, 1, 2], [0, 1]]
    )
    forest.simulate(12)
    before = state_of(forest)
    with pytest.raises(error, match=words):
        forest.advance(**{"index": 1, "action": 1, "observation": [9], **told})
    if "action" not in told:
        with pytest.raises(error, match=words):
            forest.reset(**{"index": 1, "observation": [9], **told})
    assert state_of(forest) == before
    forest.advance(1, 1, observation=[9])
    assert forest.simulate(3).result(1).simulations == 3


@by_preset
def test_observation_for_tree_of_states_raises(preset: Any) -> None:
    tree = preset(Rules([ConnectFour()]), seed=1).tree(ConnectFour())
    tree.simulate(8)
    for call in (
        lambda: tree.advance(3, observation=np.zeros((3, 6, 7))),
        lambda: tree.advance(3, legal_actions=[1]),
        lambda: tree.advance(3, to_play=1),
        lambda: tree.reset(observation=np.zeros((3, 6, 7))),
        lambda: tree.reset(ConnectFour(), to_play=1),
        lambda: tree.reset(TicTacToe()),
        lambda: tree.reset(None),
    ):
        with pytest.raises(pondertree.InvalidArgumentError):
            call()
    assert tree.result().simulations == 8
    bare = preset(TableModel(7), seed=1).tree(observation=[1])
    for state in (ConnectFour(), None, np.array([1])):
        with pytest.raises(pondertree.InvalidArgumentError):
            bare.reset(state)
    with pytest.raises(pondertree.InvalidArgumentError, match="is None"):
        bare.reset(to_play=0)


@by_preset
def test_end_of_game_as_root_raises(preset: Any) -> None:
    state = after(ConnectFour(), "1 2 1 2 1 2")
    tree = preset(Rules([state]), seed=1).tree(state)
    tree.simulate(16)
    before = fingerprint(tree.result())
    with pytest.raises(pondertree.GameOverError):
        tree.advance(0)
    assert fingerprint(tree.result()) == before


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integer_mask_over_two_actions_raises(dtype: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=r"mask\.astype\(bool\)"):
        pondertree.MuZero(TableModel(), 4, num_players=1).run(
            observation=[0.0], legal_actions=np.array([1, 0], dtype=dtype)
        )
