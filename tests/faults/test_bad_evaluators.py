"""Evaluators and playout policies with invalid output raise typed errors."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.bad_input import Row, crash
from tests.support.search_helpers import PythonGame, fingerprint, hashed_value

import pondertree
from pondertree.games import ConnectFour


def answering(change: Callable[[np.ndarray], Any]) -> Any:
    """An evaluator that returns `change(values)` from the fourth call on."""

    class Evaluator:
        def __init__(self) -> None:
            self.calls = 0

        def evaluate(self, observations: np.ndarray) -> Any:
            self.calls += 1
            values = np.array([hashed_value(row) for row in observations])
            return change(values) if self.calls == 4 else (None, values)

    return Evaluator()


def with_row(values: np.ndarray, row: int, value: float) -> np.ndarray:
    values = values.copy()
    values[row] = value
    return values


BAD_ANSWERS: list[tuple[str, Callable[[np.ndarray], Any], str]] = [
    ("raises", lambda v: crash(Row()), "ZeroDivisionError: the game crashed"),
    ("None", lambda v: None, "None.*policy_logits, values"),
    ("values alone", lambda v: v, "policy_logits, values"),
    ("a triple", lambda v: (None, v, v), "policy_logits, values"),
    ("values None", lambda v: (None, None), "shape|numbers"),
    ("too few", lambda v: (None, v[:-1]), "shape"),
    ("too many", lambda v: (None, np.append(v, 0.0)), "shape"),
    ("too deep", lambda v: (None, v.reshape(-1, 1, 1)), "shape"),
    ("three players", lambda v: (None, np.zeros((len(v), 3))), "shape"),
    ("a number", lambda v: (None, 0.5), "shape"),
    ("NaN in the last row", lambda v: (None, with_row(v, -1, math.nan)), r"row \d.*nan"),
    ("inf in the first row", lambda v: (None, with_row(v, 0, math.inf)), "row 0.*inf"),
    ("-inf", lambda v: (None, with_row(v, 0, -math.inf)), "row 0.*inf"),
    ("text", lambda v: (None, ["a"] * len(v)), "numbers"),
    ("text that looks like numbers", lambda v: (None, ["0.5"] * len(v)), "numbers"),
    ("complex", lambda v: (None, v * 1j), "numbers"),
    ("objects", lambda v: (None, [object()] * len(v)), "numbers"),
    ("ragged", lambda v: (None, [[0.0], [0.0, 1.0]]), "numbers|shape"),
]


@pytest.mark.parametrize("kind", ["compiled", "python"])
@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize(("name", "change", "message"), BAD_ANSWERS, ids=[case[0] for case in BAD_ANSWERS])
def test_invalid_evaluator_output_raises(name: str, change: Any, message: str, in_flight: int, kind: str) -> None:
    state = ConnectFour() if kind == "compiled" else PythonGame(ConnectFour())
    forest = pondertree.UCT(seed=1, evaluator=answering(change), in_flight=in_flight).forest([state] * 2)
    before: list[Any] = []
    with pytest.raises(pondertree.EvaluationError, match=message) as caught:
        forest.simulate(40, progress=lambda done, wanted: before.append([fingerprint(r) for r in forest.results()]))
    assert isinstance(caught.value, ValueError)
    assert [fingerprint(result) for result in forest.results()] == before[-1], "the tree is as it was"
    done = [result.simulations for result in forest.results()]
    forest.simulate([40 - n for n in done])
    whole = pondertree.UCT(seed=1, evaluator=answering(lambda v: (None, v)), in_flight=in_flight).forest([state] * 2)
    whole.simulate(40)
    assert [fingerprint(a) for a in forest.results()] == [fingerprint(b) for b in whole.results()]


def test_evaluator_output_of_other_types_is_accepted() -> None:
    for change in (
        lambda v: (None, v.astype(np.float32)),
        lambda v: (None, v.tolist()),
        lambda v: (None, v.reshape(-1, 1)),
        lambda v: (None, np.round(v).astype(int)),
        lambda v: (None, np.stack([v, -v], axis=1)),
    ):
        assert pondertree.UCT(20, evaluator=answering(change)).run(ConnectFour()).simulations == 20


def test_three_players_require_three_values() -> None:
    from pondertree.testing.tabular import TabularGame

    search = pondertree.UCT(20, evaluator=answering(lambda v: (None, v)))
    with pytest.raises(pondertree.EvaluationError, match=r"\(1, 3\)"):
        search.run(TabularGame(1, players=3).start())


def test_missing_observation_raises() -> None:
    with pytest.raises(pondertree.GameContractError, match="observation"):
        pondertree.UCT(20, evaluator=answering(lambda v: (None, v))).run(Row())


BAD_POLICIES: list[tuple[str, Any, str]] = [
    ("raises", crash, "ZeroDivisionError"),
    ("illegal", lambda state: 99, "99"),
    ("None", lambda state: None, "None"),
    ("float", lambda state: 1.0, "1.0"),
    ("too few weights", lambda state: [1.0], "weights"),
    ("negative", lambda state: [-1.0] * len(state.legal_actions()), "weights"),
    ("NaN", lambda state: [math.nan] * len(state.legal_actions()), "weights"),
    ("all 0", lambda state: [0.0] * len(state.legal_actions()), "weights"),
    ("text", lambda state: "3", "weights"),
]


@pytest.mark.parametrize("state", [ConnectFour(), PythonGame(ConnectFour())], ids=["compiled", "python"])
@pytest.mark.parametrize(("name", "policy", "message"), BAD_POLICIES, ids=[case[0] for case in BAD_POLICIES])
def test_invalid_playout_policy_raises(name: str, policy: Any, message: str, state: Any) -> None:
    tree = pondertree.UCT(seed=1, playout_policy=policy).tree(state)
    with pytest.raises(pondertree.EvaluationError, match=rf"playout policy.*{message}"):
        tree.simulate(10)
    assert tree.result().simulations == 0
    with pytest.raises(pondertree.EvaluationError, match=message):
        pondertree.playout(state, 0, policy=policy)


@pytest.mark.parametrize("option", ["minimax_depth", "forced_depth"])
def test_two_player_options_raise_in_other_games(option: str) -> None:
    from pondertree.testing.tabular import TabularGame

    with pytest.raises(pondertree.InvalidArgumentError, match=f"{option} needs a zero-sum game"):
        pondertree.UCT(10, **{option: 1}).run(TabularGame(1, players=3).start())


class Endless:
    """A game without end."""

    num_actions, num_players, to_play, is_terminal = 2, 2, 0, False

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Endless:
        return self

    def returns(self) -> tuple[float, float]:
        return 0.0, 0.0


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@pytest.mark.parametrize("policy", [None, lambda state: [1.0, 2.0]])
def test_endless_game_respects_time_limit(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise it is rejected before the time limit.
    monkeypatch.setattr("pondertree.search.leaf_evaluation.MAX_PLAYOUT_LENGTH", 10**9)
    monkeypatch.setattr("pondertree.games.playout.MAX_PLAYOUT_LENGTH", 10**9)
    begun = time.perf_counter()
    result = pondertree.UCT(50, time_limit=0.2, playout_policy=policy).run(Endless())
    assert time.perf_counter() - begun < 5
    assert result.action in (0, 1)
    tree = pondertree.UCT(50, playout_policy=policy).tree(Endless())
    timer = threading.Timer(0.2, tree.stop)
    timer.start()
    tree.simulate()
    timer.join()
    assert pondertree.UCT(50, max_depth=10, playout_policy=policy).run(Endless()).simulations == 50


def test_action_beyond_integer_range_is_illegal() -> None:
    for action in (2**63, -(2**70), 10**30):
        with pytest.raises(pondertree.InvalidActionError, match="not legal"):
            ConnectFour().play(action)
