"""Learned models with invalid output, and invalid moves of trees in models, raise typed errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.bad_input import Row, crash
from tests.support.bad_models import by_preset
from tests.support.exact_models import ExactBatchModel
from tests.support.models import TableModel
from tests.support.search_helpers import after, fingerprint

import pondertree
from pondertree.games import ConnectFour, TicTacToe

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


# --- Models -----------------------------------------------------------------------------------------------------------


PARTS = {"hidden": 0, "reward": 1, "logits": 2, "value": 3, "discount": 4}


Change = Callable[[Any], Any]


@dataclass
class Breakable:
    """A model whose outputs `change`, if set, alters."""

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
    """Returns a change that replaces one number of the output."""

    def change(answer: list[Any]) -> list[Any]:
        answer[PARTS[part]] = np.array(answer[PARTS[part]], dtype=np.float64)
        answer[PARTS[part]][place] = number
        return answer

    return change


def instead(part: str, make: Change) -> Change:
    """Returns a change that replaces one part of the output."""

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
    """Returns the content of trees and pool, for comparison."""
    pool = forest._world._pool
    views = [result._view for result in forest.results()]
    slots = [[view.node(index)[8] for index in range(view.num_nodes)] for view in views]
    hidden = [pool.gather(np.array(each)).tolist() for each in slots]
    layout = (pool.layout.structure, pool.layout.leaves)
    trees = [fingerprint(result) for result in forest.results()]
    return trees, slots, hidden, pool.capacity, layout


@by_preset
@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize(("name", "change", "message"), OF_A_STEP, ids=[case[0] for case in OF_A_STEP])
def test_invalid_model_output_in_search_raises(
    name: str, change: Change, message: str, in_flight: int, preset: Any
) -> None:
    model = Breakable(TableModel(5, largest_reward=1.0))
    forest = preset(model, in_flight=in_flight, seed=1).forest(observation=[[1], [2]])
    forest.simulate(16)
    before = state_of(forest)
    model.change = change
    if in_flight > 1:
        message = message.replace("row 1", r"row \d")
    with pytest.raises(pondertree.EvaluationError, match=message) as caught:
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
@pytest.mark.parametrize(("name", "change", "message"), OF_A_ROOT, ids=[case[0] for case in OF_A_ROOT])
def test_invalid_model_output_at_root_raises(name: str, change: Change, message: str, preset: Any) -> None:
    """At creation, reset and advance of trees."""
    model = Breakable(TableModel(5))
    search = preset(model, seed=1)
    forest = search.forest(observation=[[1], [2]]).simulate(10)
    before = state_of(forest)
    model.change = change
    if "changed" not in message and name != "too few logits":  # the first output may have any shape
        with pytest.raises(pondertree.EvaluationError, match=message):
            search.run(observation=[[1], [2]])
    # A batch of one row; the error names the row.
    message = message.replace("row 1", r"row \d").replace("is one number for the whole batch", "")
    for call in (
        lambda: forest.reset(1, observation=[3]),
        lambda: forest.advance(1, forest.result(1).action, observation=[3]),
        lambda: forest.advance(1, forest.result(1).action),
    ):
        with pytest.raises(pondertree.EvaluationError, match=message):
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
        with pytest.raises(pondertree.PondertreeError, match=r"already running|while `simulate` runs"):
            forest.simulate(3)
        assert forest.result(0).simulations == 0
    model.change = None
    assert forest.simulate(3).result(0).simulations == 3


# --- Advance ----------------------------------------------------------------------------------------------------------


INVALID_ADVANCES: list[tuple[str, dict[str, Any], type[Exception], str]] = [
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
@pytest.mark.parametrize(
    ("name", "inputs", "error", "message"), INVALID_ADVANCES, ids=[case[0] for case in INVALID_ADVANCES]
)
def test_invalid_advance_raises(name: str, inputs: dict[str, Any], error: Any, message: str, preset: Any) -> None:
    forest = preset(TableModel(5), num_players=2, seed=1).forest(
        observation=[[1], [2]], legal_actions=[[0, 1, 2], [0, 1]]
    )
    forest.simulate(12)
    before = state_of(forest)
    with pytest.raises(error, match=message):
        forest.advance(**{"index": 1, "action": 1, "observation": [9], **inputs})
    if "action" not in inputs:
        with pytest.raises(error, match=message):
            forest.reset(**{"index": 1, "observation": [9], **inputs})
    assert state_of(forest) == before
    forest.advance(1, 1, observation=[9])
    assert forest.simulate(3).result(1).simulations == 3


@by_preset
def test_observation_for_tree_of_states_raises(preset: Any) -> None:
    tree = preset(ExactBatchModel([ConnectFour()]), seed=1).tree(ConnectFour())
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
    tree = preset(ExactBatchModel([state]), seed=1).tree(state)
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
