"""Games that violate their contract raise typed errors."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.bad_input import BROKEN_ROOTS, Row, crash
from tests.support.search_helpers import fingerprint

import pondertree


def broken(name: str, **methods: Any) -> type[Row]:
    """A game with methods replaced by the lambdas from ply `late` on."""

    def replacement(method: str, answer: Callable[[Row], Any]) -> Any:
        right = Row.__dict__[method]
        if isinstance(right, property):
            assert right.fget is not None
            fget = right.fget
            return property(lambda self: answer(self) if is_late(self, method) else fget(self))
        if method == "play":
            return lambda self, action: answer(self) if self.ply >= 2 else right(self, action)
        return lambda self: answer(self) if is_late(self, method) else right(self)

    return type(name, (Row,), {method: replacement(method, answer) for method, answer in methods.items()})


def is_late(state: Row, method: str) -> bool:
    return state.ply >= (6 if method == "returns" else 3)


BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("play raises", {"play": crash}, "ZeroDivisionError"),
    ("legal_actions raises", {"legal_actions": crash}, "ZeroDivisionError"),
    ("is_terminal raises", {"is_terminal": crash}, "ZeroDivisionError"),
    ("to_play raises", {"to_play": crash}, "ZeroDivisionError"),
    ("returns raises", {"returns": crash}, "ZeroDivisionError"),
    ("play gives None", {"play": lambda s: None}, "None|NoneType"),
    ("play gives a number", {"play": lambda s: 5}, "returned 5|int"),
    ("duplicate actions", {"legal_actions": lambda s: [0, 1, 1]}, "1 twice"),
    ("action too large", {"legal_actions": lambda s: [0, 3]}, "3.*num_actions"),
    ("huge action", {"legal_actions": lambda s: [0, 10**9]}, "1000000000"),
    ("negative action", {"legal_actions": lambda s: [0, -1]}, "-1"),
    ("float action", {"legal_actions": lambda s: [0.0, 1.0]}, "has 0.0: actions must be ints"),
    ("text action", {"legal_actions": lambda s: ["0"]}, "has '0': actions must be ints"),
    ("no actions", {"legal_actions": lambda s: []}, "empty|no legal actions"),
    ("actions None", {"legal_actions": lambda s: None}, "NoneType"),
    ("to_play too large", {"to_play": lambda s: 2}, "to_play is 2"),
    ("to_play negative", {"to_play": lambda s: -1}, "to_play is -1"),
    ("to_play huge", {"to_play": lambda s: 10**9}, "to_play is 1000000000"),
    ("to_play text", {"to_play": lambda s: "white"}, "to_play is 'white': it must be an int"),
    ("to_play None", {"to_play": lambda s: None}, "to_play is None: it must be an int"),
    ("is_terminal a method", {"is_terminal": lambda s: lambda: False}, "is_terminal is a method"),
    ("not zero-sum", {"returns": lambda s: [1.0, 1.0]}, "zero_sum = False"),
    ("three results", {"returns": lambda s: [1.0, -1.0, 0.0]}, "3 numbers|2 players|shorter|longer"),
    ("no results", {"returns": lambda s: []}, "0 numbers|2 players|shorter|longer|IndexError"),
    ("NaN", {"returns": lambda s: [math.nan, 0.0]}, "nan|NaN"),
    ("infinite", {"returns": lambda s: [math.inf, -math.inf]}, "inf"),
    ("text results", {"returns": lambda s: ["win", "loss"]}, "one number for each|search for forced moves"),
    ("results too large", {"returns": lambda s: (5.0, -5.0)}, "from -1 to 1"),
    ("results None", {"returns": lambda s: None}, "one number for each|search for forced moves"),
    ("one number", {"returns": lambda s: 1.0}, "one number for each|search for forced moves"),
]


MODES: dict[str, dict[str, Any]] = {
    "playouts": {},
    "evaluator": {"evaluator": lambda: Zero()},
    "forced": {"forced_depth": 9, "evaluator": lambda: Zero()},
    "in flight": {"in_flight": 3, "evaluator": lambda: Zero()},
}


class Zero:
    def evaluate_states(self, states: Any) -> tuple[None, np.ndarray]:
        return None, np.zeros(len(states))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "methods", "message"), BROKEN, ids=[case[0] for case in BROKEN])
def test_contract_violation_in_game_raises(name: str, methods: dict[str, Any], message: str, mode: str) -> None:
    options = {key: value() if callable(value) else value for key, value in MODES[mode].items()}
    game = broken("Wobbly", **methods)
    forest = pondertree.UCT(seed=1, solve=False, **options).forest([game(), game()])
    with pytest.raises((pondertree.GameContractError, pondertree.EvaluationError), match=message) as caught:
        forest.simulate(2000)
    assert isinstance(caught.value, ValueError)
    assert "Wobbly" in str(caught.value) or "row" in str(caught.value) or "values" in str(caught.value)
    results = forest.results()
    assert all(result.simulations == result.visits.sum() for result in results)
    again = [fingerprint(result) for result in results]
    with pytest.raises((pondertree.GameContractError, pondertree.EvaluationError), match=message):
        forest.simulate(2000)
    assert all(result.simulations == result.visits.sum() for result in forest.results())
    assert len(again) == 2
    forest.reset(0, game())
    assert forest.result(0).simulations == 0


class ListsWhatItRefuses(Row):
    """Fifty moves that end the game, but for one, after which an action out of range is listed that `play` refuses."""

    num_actions = 50

    @property
    def is_terminal(self) -> bool:
        return self.ply == 2

    def legal_actions(self) -> list[int]:
        return list(range(50)) if self.ply == 0 else [50]

    def play(self, action: int) -> Any:
        if not 0 <= action < 50:
            raise IndexError(action)
        return type(self)(1 if action == 7 else 2)


def test_error_of_leaf_comes_before_that_of_its_playout() -> None:
    # The first moves are read in full; in some of these searches the one in question comes later.
    for seed in range(6):
        with pytest.raises(pondertree.GameContractError, match=r"legal_actions\(\) has 50: actions must be"):
            pondertree.UCT(60, seed=seed, solve=False).run(ListsWhatItRefuses())


@pytest.mark.parametrize(("name", "methods", "message"), BROKEN_ROOTS, ids=[case[0] for case in BROKEN_ROOTS])
def test_contract_violation_at_root_raises(name: str, methods: dict[str, Any], message: str) -> None:
    game = type("Wobbly", (Row,), methods)
    search = pondertree.UCT(20, seed=1)
    with pytest.raises(pondertree.GameContractError, match=message):
        _ = search.run(game()).move
    assert search.run(Row()).simulations > 0


@dataclass(frozen=True)
class Paid(Row):
    """Eight moves of one player, each with `reward`."""

    reward: float = 1e308
    num_players = 1
    to_play = 0

    @property
    def is_terminal(self) -> bool:
        return self.ply >= 8

    def play(self, action: int) -> Paid:
        return Paid(self.ply + 1, self.reward)

    def rewards(self) -> list[float]:
        return [self.reward if self.ply else 0.0]

    def observation(self) -> np.ndarray:
        return np.zeros(1, dtype=np.float32)


def even(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((len(observations), 3)), np.zeros(len(observations))


WITH_REWARDS: dict[str, Callable[[], pondertree.search.base.Search]] = {
    "UCT": lambda: pondertree.UCT(60, seed=1),
    "UCT with an evaluator": lambda: pondertree.UCT(60, seed=1, evaluator=even),
    "UCT with a policy": lambda: pondertree.UCT(60, seed=1, playout_policy=lambda state: 0),
    "AlphaZero": lambda: pondertree.AlphaZero(even, 60, seed=1),
    "Gumbel": lambda: pondertree.Gumbel(even, 60, seed=1),
}


@pytest.mark.parametrize("search", WITH_REWARDS)
@pytest.mark.parametrize("reward", [1e308, -1e308, 1.1e12, math.inf, math.nan, 10**400])
def test_overflowing_rewards_raise_in_every_search(search: str, reward: float) -> None:
    made = WITH_REWARDS[search]()
    forest = made.forest([Paid(reward=1.0), Paid(reward=reward)])
    with pytest.raises(pondertree.GameContractError, match=r"rewards\(\)|rewards of"):
        forest.simulate(60)
    forest.reset(1, Paid(reward=1e12))
    forest.simulate(60)
    assert made.run(Paid(reward=1e12)).value <= 8e12
    for result in forest.results():
        assert np.isfinite(result.policy).all()
        assert math.isfinite(result.value)


@pytest.mark.parametrize("reward", [1e308, -1e308, math.inf, math.nan])
def test_overflowing_rewards_raise_in_reference(reward: float) -> None:
    from pondertree.reference import alphazero
    from pondertree.reference.uct import MCTS

    searches: list[Any] = [MCTS(60, seed=1), alphazero.MCTS(Zero(), num_simulations=60, seed=1)]
    for search in searches:
        with pytest.raises(ValueError, match=r"rewards\(\) is"):
            search.run(Paid(reward=reward))
        assert math.isfinite(search.run(Paid(reward=1e12)).value)


def test_limits_of_engine_package_and_reference_are_equal() -> None:
    from pondertree import _core, game, testing
    from pondertree.evaluators.outputs import MAX_VALUE
    from pondertree.games import playout as reference_playout
    from pondertree.games.game_state import LARGEST_REWARD
    from pondertree.games.playout import MAX_PLAYOUT_LENGTH
    from pondertree.models.responses import LARGEST
    from pondertree.search import leaf_evaluation

    assert {_core.LARGEST_REWARD, game.LARGEST_REWARD, LARGEST_REWARD, MAX_VALUE, LARGEST} == {1e12}
    assert f"{1e12:.0e}" in testing.RULES["rewards"]
    assert leaf_evaluation.MAX_PLAYOUT_LENGTH == MAX_PLAYOUT_LENGTH == reference_playout.MAX_PLAYOUT_LENGTH


def test_nondeterministic_is_terminal_is_searched_or_raises() -> None:
    calls = [0]

    class Changing(Row):
        @property
        def is_terminal(self) -> bool:
            calls[0] += 1
            return calls[0] % 2 == 1

    search = pondertree.UCT(20, seed=1)
    with pytest.raises(pondertree.GameOverError, match=r"states\[0\]"):
        search.run([Changing(), Changing()])
    calls[0] = 1
    with contextlib.suppress(pondertree.PondertreeError):
        search.run(Changing())
    assert search.run(Row()).simulations == 20


def test_is_terminal_without_truth_value_raises() -> None:
    game = type("Wobbly", (Row,), {"is_terminal": np.array([True, False])})
    with pytest.raises(pondertree.GameContractError, match=r"Wobbly.is_terminal is array.*True or False"):
        pondertree.UCT(20).run(game())


@pytest.mark.parametrize("policy", [None, lambda state: 0])
def test_endless_playout_raises(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.search.leaf_evaluation.MAX_PLAYOUT_LENGTH", 500)
    monkeypatch.setattr("pondertree.games.playout.MAX_PLAYOUT_LENGTH", 500)
    game = type("Endless", (Row,), {"is_terminal": False})
    with pytest.raises(pondertree.GameContractError, match=r"Endless.*not over after 500"):
        pondertree.UCT(20, playout_policy=policy).run(game())
    assert pondertree.UCT(20, playout_policy=policy, max_depth=400).run(game()).simulations == 20


def test_results_of_game_that_fails_later_raise_typed_errors() -> None:
    """A result replays the game for its principal variation and move texts."""
    broken_now = [False]

    class Later(Row):
        def play(self, action: int) -> Any:
            return 5.0 if broken_now[0] else type(self)(self.ply + 1)

        @property
        def to_play(self) -> Any:
            return [] if broken_now[0] else self.ply % 2

    result = pondertree.UCT(20, seed=1).run(Later())
    broken_now[0] = True
    for read in (lambda: result.pv, lambda: result.moves, lambda: result.root.to_json()):
        with pytest.raises(pondertree.GameContractError, match="Later"):
            read()


HUGE = 10**5000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_simulations", HUGE),
        ("c_param", -HUGE),
        ("seed", -HUGE),
        ("solve", HUGE),
        ("playout_policy", np.array(["random", "x"])),
        ("playout_policy", HUGE),
        ("evaluator", HUGE),
    ],
    ids=["simulations", "c_param", "seed", "solve", "array", "policy", "evaluator"],
)
def test_values_without_repr_or_comparison_raise_by_name(name: str, value: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=name) as caught:
        pondertree.UCT(**{name: value})
    assert len(str(caught.value)) < 500


def test_missing_methods_are_named_in_error() -> None:
    class Nothing:
        to_play = 0

    with pytest.raises(pondertree.InvalidArgumentError, match=r"Nothing.*legal_actions, play, is_terminal, returns"):
        pondertree.UCT().run(Nothing())


def test_game_with_zero_sum_false_is_accepted() -> None:
    game = type("Friendly", (Row,), {"returns": lambda self: [1.0, 1.0], "zero_sum": False})
    assert pondertree.UCT(20).run(game()).value == 1.0
