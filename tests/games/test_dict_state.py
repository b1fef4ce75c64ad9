"""`DictState`, and the reference implementation on dicts with the functions of a game."""

from __future__ import annotations

import copy
import importlib
import pickle
import random
from typing import Any

import pytest

import pondertree
from pondertree.errors import GameContractError, InvalidArgumentError, RandomGeneratorInStateWarning
from pondertree.games import DictState
from pondertree.reference import uct
from pondertree.testing import check_game

State = dict[str, Any]


class Nim:
    """Take one to three stones; who takes the last one wins."""

    num_players = 2
    num_actions = 4

    def legal_actions(self, state: State) -> list[int]:
        return [stones for stones in (1, 2, 3) if stones <= state["stones"]]

    def play(self, state: State, action: int) -> State:
        if action not in self.legal_actions(state):
            raise ValueError(f"{action} stones cannot be taken")
        return {"stones": state["stones"] - action, "player": 1 - state["player"]}

    def to_play(self, state: State) -> int:
        return int(state["player"])

    def is_terminal(self, state: State) -> bool:
        return bool(state["stones"] == 0)

    def returns(self, state: State) -> list[float]:
        return [-1.0, 1.0] if state["player"] == 0 else [1.0, -1.0]


class NimWithPlayouts(Nim):
    """A game whose own playout is exact and records its calls."""

    def __init__(self) -> None:
        self.evaluated: list[tuple[int, int, int | None]] = []

    def simulateRandomPlayout(self, state: State, perspective_player: int, max_depth: int | None) -> float:  # noqa: N802
        self.evaluated.append((state["stones"], perspective_player, max_depth))
        wins = state["stones"] % 4 != 0
        return 1.0 if wins == (state["player"] == perspective_player) else -1.0


def test_reference_searches_plain_dicts_with_the_functions_of_a_game() -> None:
    search = uct.MCTS(500, game=Nim(), seed=1)
    for stones in (5, 6, 7, 9, 10, 11):
        assert search.search({"stones": stones, "player": 0}) == stones % 4
    start = {"stones": 7, "player": 1}
    root = search.run(start).root
    assert start == {"stones": 7, "player": 1}
    assert isinstance(root.state, dict)
    assert root.state == start
    assert {action: child.state for action, child in root.children.items()} == {
        action: {"stones": 7 - action, "player": 0} for action in (1, 2, 3)
    }


@pytest.mark.parametrize("solve", [True, False])
def test_engine_and_reference_agree_on_dict_states(solve: bool) -> None:
    for stones in (4, 9, 12):
        start = {"stones": stones, "player": 0}
        expected = uct.MCTS(200, seed=3, solve=solve, game=Nim()).run(start)
        found = pondertree.UCT(200, seed=3, solve=solve).run(DictState(start, Nim()))
        visits = {action: child.visit_count for action, child in expected.root.children.items()}
        assert {action: int(n) for action, n in enumerate(found.visits) if n} == {a: n for a, n in visits.items() if n}
        assert (found.action, found.proven) == (expected.action, expected.root.proven)


def test_own_playout_of_the_game_is_used() -> None:
    game = NimWithPlayouts()
    assert uct.MCTS(60, game=game, max_depth=9, seed=1, solve=False).search({"stones": 6, "player": 0}) == 2
    assert len(game.evaluated) > 5
    assert {depth for _, _, depth in game.evaluated} == {9}
    engine = NimWithPlayouts()
    result = pondertree.UCT(60, max_depth=9, seed=1, solve=False).run(DictState({"stones": 6, "player": 0}, engine))
    assert (result.action, engine.evaluated) == (2, game.evaluated)


def test_dict_state_keeps_the_contract_of_games() -> None:
    check_game(lambda: DictState({"stones": 9, "player": 0}, Nim()))
    state = DictState({"stones": 9, "player": 0}, Nim())
    for copied in (copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert copied == state
        assert copied.play(1) == {"stones": 8, "player": 1}
    assert not hasattr(state, "observation")
    assert not hasattr(state, "simulateRandomPlayout")
    assert hasattr(DictState({"stones": 9, "player": 0}, NimWithPlayouts()), "simulateRandomPlayout")


def test_optional_parts_are_those_of_the_game() -> None:
    class Named(Nim):
        zero_sum = False

        def action_to_string(self, state: State, action: int) -> str:
            return f"take {action} of {state['stones']}"

    state = DictState({"stones": 5, "player": 0}, Named())
    assert state.action_to_string(2) == "take 2 of 5"
    assert state.zero_sum is False
    assert pondertree.UCT(50, seed=1).run(state).move.startswith("take ")


def test_wrong_games_and_states_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="state must be a dict"):
        DictState([1, 2], Nim())
    with pytest.raises(InvalidArgumentError, match=r"without legal_actions, play.*num_actions"):
        DictState({}, object())
    with pytest.raises(ValueError, match="game="):
        uct.MCTS(10).search({"stones": 3, "player": 0})

    class InPlace(Nim):
        def play(self, state: State, action: int) -> State:
            state["stones"] -= action
            return state

    with pytest.raises(GameContractError, match="new dict"):
        pondertree.UCT(10).run(DictState({"stones": 3, "player": 0}, InPlace()))


class DiceInTheState:
    """Four throws; the sign of their sum decides. The generator is copied with the state."""

    num_players, num_actions = 2, 2

    def legal_actions(self, state: Any) -> list[int]:
        return [] if self.is_terminal(state) else [0, 1]

    def play(self, state: Any, action: int) -> dict[str, Any]:
        if action not in self.legal_actions(state):
            raise ValueError(f"action {action} is not legal")
        after = copy.deepcopy(dict(state))
        after["score"] += after["rng"].choice((-1, 1)) * (1 if state["n"] % 2 else -1)
        return {**after, "n": state["n"] + 1}

    def to_play(self, state: Any) -> int:
        return int(state["n"] % 2)

    def is_terminal(self, state: Any) -> bool:
        return bool(state["n"] >= 4)

    def returns(self, state: Any) -> tuple[float, float]:
        sign = (state["score"] > 0) - (state["score"] < 0)
        return float(sign), float(-sign)


def dice_in_the_state() -> DictState:
    return DictState({"rng": random.Random(1), "n": 0, "score": 0}, DiceInTheState())


def test_generator_in_a_dict_state_is_reported() -> None:
    with pytest.warns(RandomGeneratorInStateWarning, match=r"\['rng'\]"):
        pondertree.UCT(50, seed=1).run(dice_in_the_state())
    with pytest.raises(GameContractError, match="randomness"):
        check_game(dice_in_the_state)


def test_result_of_a_dict_state_pickles_and_copies() -> None:
    result = pondertree.UCT(50, seed=1).run(DictState({"stones": 6, "player": 0}, Nim()))
    for twice in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert twice.pv == result.pv
        assert (twice.visits == result.visits).all()
    assert copy.deepcopy(result).root.state.game is result.root.state.game, "the game is shared"


def test_dict_state_of_a_module_pickles_by_the_name_of_the_module(tmp_path: Any, monkeypatch: Any) -> None:
    names = ("legal_actions", "play", "to_play", "is_terminal", "returns")
    source = "from tests.games.test_dict_state import Nim\n_nim = Nim()\n"
    source += "num_players, num_actions = 2, _nim.num_actions\n"
    source += "".join(f"{name} = _nim.{name}\n" for name in names)
    (tmp_path / "nim_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("nim_module")
    state = DictState({"stones": 6, "player": 0}, module)
    assert pickle.loads(pickle.dumps(state)).game is module
    assert copy.deepcopy(state) == state
