"""Everything that can be given wrong: a typed exception that names it, the tree as it was, and the next call works."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.trees import PythonGame, after, fingerprint, hashed_value

import pondertree
from pondertree.games import ConnectFour, Othello, TicTacToe, by_name

NOT_WHOLE: list[Any] = [1.5, math.nan, math.inf, "3", True, None, [], object(), 1j]
NOT_A_NUMBER: list[Any] = [math.nan, math.inf, -math.inf, "1.0", b"1", True, [], object(), 1j, 10**400]


def wrong(name: str, values: list[Any]) -> list[tuple[str, Any]]:
    return [(name, value) for value in values]


BAD_SETTINGS = [
    *wrong("num_simulations", [value for value in NOT_WHOLE if value is not None and value != []]),
    *wrong("num_simulations", [0, -1, 2**32, [5, 0], [1.5], ["a"], "12", b"12", {"a": 1}]),
    *wrong("c_param", [*NOT_A_NUMBER, -1.0, -1e-9]),
    *wrong("max_depth", [-1, 1.5, "3", True, math.nan, 2**31]),
    *wrong("minimax_depth", [-1, 65, *NOT_WHOLE]),
    *wrong("forced_depth", [-1, 256, *NOT_WHOLE]),
    *wrong("evaluator", [3, "network", object()]),
    *wrong("playout_policy", [3, "greedy", object(), b"random"]),
    *wrong("time_limit", [0, 0.0, -1.0, *NOT_A_NUMBER]),
    *wrong("max_nodes", [0, -1, 2**32, 1.5, "3", True]),
    *wrong("max_memory", [0, -1.0, *NOT_A_NUMBER]),
    *wrong("seed", [-1, 2**64, 1.5, "3", True, math.nan]),
    *wrong("in_flight", [0, -1, 65536, *NOT_WHOLE]),
    *wrong("threads", [0, -1, 1025, *NOT_WHOLE]),
    *wrong("solve", [1, 0, "yes", None]),
    *wrong("early_stop", [1, "no", None]),
    *wrong("trace", [1, "no", None]),
]


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS, ids=[f"{n}={str(v)[:20]}" for n, v in BAD_SETTINGS])
def test_invalid_parameter_raises(name: str, value: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=name) as caught:
        pondertree.UCT(**{name: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, pondertree.PondertreeError)


def test_unknown_parameter_raises_type_error() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        pondertree.UCT(nonsense=1)


@pytest.mark.parametrize("value", [1e300, 1e18, 2.0**62])
def test_huge_limits_are_accepted(value: float) -> None:
    assert pondertree.UCT(10, max_memory=value, time_limit=value, c_param=value).run(ConnectFour()).simulations == 10
    assert pondertree.UCT(10, max_memory=value, time_limit=value).run(PythonGame(TicTacToe())).simulations == 10


# --- Arguments of the methods -----------------------------------------------------------------------------------

CALLS: list[tuple[str, Callable[[pondertree.UCT, pondertree.Forest], Any], type[Exception], str]] = [
    ("run(None)", lambda s, f: s.run(None), pondertree.InvalidArgumentError, "not a game state"),
    ("run(int)", lambda s, f: s.run(5), pondertree.InvalidArgumentError, "not a game state"),
    ("run(class)", lambda s, f: s.run(ConnectFour), pondertree.InvalidArgumentError, "not a game state"),
    ("run([None])", lambda s, f: s.run([None]), pondertree.InvalidArgumentError, "not a game state"),
    (
        "mixed",
        lambda s, f: s.run([ConnectFour(), Othello()]),
        pondertree.InvalidArgumentError,
        r"states\[1\].*othello.*connect_four",
    ),
    (
        "mixed python",
        lambda s, f: s.run([ConnectFour(), PythonGame(ConnectFour())]),
        pondertree.InvalidArgumentError,
        r"states\[1\].*of one game",
    ),
    (
        "temperature -1",
        lambda s, f: s.run(ConnectFour(), temperature=-1),
        pondertree.InvalidArgumentError,
        "temperature",
    ),
    (
        "temperature nan",
        lambda s, f: s.run(ConnectFour(), temperature=math.nan),
        pondertree.InvalidArgumentError,
        "temperature",
    ),
    (
        "temperature str",
        lambda s, f: s.run(ConnectFour(), temperature="hot"),
        pondertree.InvalidArgumentError,
        "temperature",
    ),
    (
        "temperatures",
        lambda s, f: s.run([ConnectFour()] * 2, temperature=[1.0]),
        pondertree.InvalidArgumentError,
        "temperature has 1 entries for 2",
    ),
    ("noise", lambda s, f: s.run(ConnectFour(), add_noise=True), pondertree.InvalidArgumentError, "add_noise"),
    ("noise str", lambda s, f: s.run(ConnectFour(), add_noise="no"), pondertree.InvalidArgumentError, "add_noise"),
    ("seeds", lambda s, f: s.run([ConnectFour()] * 2, seeds=[1, 2, 3]), pondertree.InvalidArgumentError, "seeds has 3"),
    (
        "seeds neg",
        lambda s, f: s.run([ConnectFour()] * 2, seeds=[1, -2]),
        pondertree.InvalidArgumentError,
        r"seeds\[1\]",
    ),
    ("seeds str", lambda s, f: s.run(ConnectFour(), seeds="7"), pondertree.InvalidArgumentError, "seeds"),
    ("seeds big", lambda s, f: s.tree(ConnectFour(), seeds=2**64), pondertree.InvalidArgumentError, "seeds"),
    ("progress", lambda s, f: s.run(ConnectFour(), progress=3), pondertree.InvalidArgumentError, "progress"),
    ("search list", lambda s, f: s.search([ConnectFour()]), pondertree.InvalidArgumentError, "not a game state"),
    ("tree(list)", lambda s, f: s.tree([ConnectFour()]), pondertree.InvalidArgumentError, "not a game state"),
    ("forest([])", lambda s, f: s.forest([]), pondertree.InvalidArgumentError, "states is empty"),
    ("forest(state)", lambda s, f: s.forest(ConnectFour()), pondertree.InvalidArgumentError, "list of states"),
    ("forest(None)", lambda s, f: s.forest(None), pondertree.InvalidArgumentError, "list of states"),
    *[
        (f"simulate({n!r})", lambda s, f, n=n: f.simulate(n), pondertree.InvalidArgumentError, "n")
        for n in (-1, 1.5, "3", True, [1], [1, 2, 3], [1, -1], 2**64, math.nan)
    ],
    *[
        (f"seconds={n!r}", lambda s, f, n=n: f.simulate(seconds=n), pondertree.InvalidArgumentError, "seconds")
        for n in (0, -1.0, math.nan, math.inf, "3", True, [1.0])
    ],
    ("simulate progress", lambda s, f: f.simulate(5, progress="p"), pondertree.InvalidArgumentError, "progress"),
    *[
        (f"advance({a!r})", lambda s, f, a=a: f.advance(0, a), ValueError, "action")
        for a in (-1, 7, 1.0, "8", "", None, True, 2**70)
    ],
    *[
        (f"advance index {i!r}", lambda s, f, i=i: f.advance(i, 3), pondertree.InvalidArgumentError, "index")
        for i in (2, -3, 1.0, "0", None, 2**70)
    ],
    ("reset none", lambda s, f: f.reset(0, None), pondertree.InvalidArgumentError, "not a game state"),
    ("reset other", lambda s, f: f.reset(0, Othello()), pondertree.InvalidArgumentError, "another game"),
    ("reset over", lambda s, f: f.reset(0, after(ConnectFour(), "1 2 1 2 1 2 1")), pondertree.GameOverError, "over"),
    ("reset index", lambda s, f: f.reset(2, ConnectFour()), pondertree.InvalidArgumentError, "index"),
    ("result index", lambda s, f: f.result(2), pondertree.InvalidArgumentError, "index"),
    ("result temperature", lambda s, f: f.result(0, temperature="x"), pondertree.InvalidArgumentError, "temperature"),
    ("results", lambda s, f: f.results(temperature=[1.0] * 3), pondertree.InvalidArgumentError, "temperature"),
    ("policy_at", lambda s, f: f.result(0).policy_at(-1.0), pondertree.InvalidArgumentError, "tau"),
    ("policy_at nan", lambda s, f: f.result(0).policy_at(math.nan), pondertree.InvalidArgumentError, "tau"),
    ("trace", lambda s, f: f.trace(), pondertree.UsageError, "trace=True"),
    ("game name", lambda s, f: by_name("checkers"), pondertree.InvalidArgumentError, "checkers.*connect4"),
    (
        "playout player",
        lambda s, f: pondertree.playout(ConnectFour(), 2),
        pondertree.InvalidArgumentError,
        "perspective",
    ),
    ("playout state", lambda s, f: pondertree.playout(3, 0), pondertree.InvalidArgumentError, "not a game state"),
    (
        "playout depth",
        lambda s, f: pondertree.playout(ConnectFour(), 0, -1),
        pondertree.InvalidArgumentError,
        "max_depth",
    ),
    (
        "playout policy",
        lambda s, f: pondertree.playout(ConnectFour(), 0, policy="best"),
        pondertree.InvalidArgumentError,
        "policy",
    ),
    (
        "playout seed",
        lambda s, f: pondertree.playout(ConnectFour(), 0, seed=-1),
        pondertree.InvalidArgumentError,
        "seed",
    ),
    (
        "generator",
        lambda s, f: s.run(ConnectFour() for _ in range(2)),
        pondertree.InvalidArgumentError,
        "state is a generator: give a list",
    ),
    ("map", lambda s, f: s.run(map(str, [1])), pondertree.InvalidArgumentError, "state is a map: give a list"),
    ("illegal play", lambda s, f: ConnectFour().play(7), pondertree.InvalidActionError, "7"),
]


@pytest.mark.parametrize(("name", "call", "kind", "words"), CALLS, ids=[case[0] for case in CALLS])
def test_invalid_argument_raises(name: str, call: Any, kind: type[Exception], words: str) -> None:
    search = pondertree.UCT(20, seed=1)
    forest = search.forest([ConnectFour()] * 2).simulate(30)
    before = [fingerprint(result) for result in forest.results()]
    with pytest.raises(kind, match=words) as caught:
        call(search, forest)
    assert isinstance(caught.value, pondertree.PondertreeError)
    assert [fingerprint(result) for result in forest.results()] == before
    forest.simulate(5)
    assert [result.simulations for result in forest.results()] == [35, 35]
    assert search.run(ConnectFour()).simulations == 20


def test_list_argument_of_wrong_length_raises() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="num_simulations has 3 entries for 2"):
        pondertree.UCT([1, 2, 3]).run([ConnectFour()] * 2)
    with pytest.raises(pondertree.InvalidArgumentError, match="num_simulations has 0 entries for 1"):
        pondertree.UCT([]).run(ConnectFour())


# --- Games that break their word --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Six moves of 0, 1 or 2; then the first player has won. Subclasses go wrong at the third ply, or at the end."""

    ply: int = 0
    num_actions = 3
    num_players = 2

    @property
    def to_play(self) -> Any:
        return self.ply % 2

    @property
    def is_terminal(self) -> Any:
        return self.ply >= 6

    def legal_actions(self) -> Any:
        return [0, 1, 2]

    def play(self, action: int) -> Any:
        return type(self)(self.ply + 1)

    def returns(self) -> Any:
        return [1.0, -1.0]


def broken(name: str, **methods: Any) -> type[Row]:
    """A game whose methods are replaced: at `late` plies by what the lambda gives, before by what is right."""

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


def crash(state: Row) -> Any:
    raise ZeroDivisionError("the game crashed")


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
    ("text results", {"returns": lambda s: ["win", "loss"]}, "one number for each|when forced moves"),
    ("results too large", {"returns": lambda s: (5.0, -5.0)}, "from -1 to 1"),
    ("results None", {"returns": lambda s: None}, "one number for each|when forced moves"),
    ("one number", {"returns": lambda s: 1.0}, "one number for each|when forced moves"),
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
@pytest.mark.parametrize(("name", "methods", "words"), BROKEN, ids=[case[0] for case in BROKEN])
def test_contract_violation_in_game_raises(name: str, methods: dict[str, Any], words: str, mode: str) -> None:
    options = {key: value() if callable(value) else value for key, value in MODES[mode].items()}
    game = broken("Wobbly", **methods)
    forest = pondertree.UCT(seed=1, solve=False, **options).forest([game(), game()])
    with pytest.raises((pondertree.GameContractError, pondertree.EvaluationError), match=words) as caught:
        forest.simulate(2000)
    assert isinstance(caught.value, ValueError)
    assert "Wobbly" in str(caught.value) or "row" in str(caught.value) or "values" in str(caught.value)
    results = forest.results()
    assert all(result.simulations == result.visits.sum() for result in results)
    again = [fingerprint(result) for result in results]
    with pytest.raises((pondertree.GameContractError, pondertree.EvaluationError), match=words):
        forest.simulate(2000)
    assert all(result.simulations == result.visits.sum() for result in forest.results())
    assert len(again) == 2
    forest.reset(0, game())
    assert forest.result(0).simulations == 0


BROKEN_ROOTS: list[tuple[str, dict[str, Any], str]] = [
    ("legal_actions raises", {"legal_actions": crash}, "ZeroDivisionError"),
    ("is_terminal raises", {"is_terminal": property(crash)}, "ZeroDivisionError"),
    ("to_play raises", {"to_play": property(crash)}, "ZeroDivisionError"),
    ("num_actions raises", {"num_actions": property(crash)}, "num_actions"),
    ("num_players raises", {"num_players": property(crash)}, "num_players"),
    ("zero_sum raises", {"zero_sum": property(crash)}, "zero_sum"),
    ("is_terminal a method", {"is_terminal": lambda self: False}, "is_terminal is a method"),
    ("num_actions 0", {"num_actions": 0}, "num_actions is 0"),
    ("num_actions too large", {"num_actions": 65536}, "num_actions is 65536"),
    ("num_actions a method", {"num_actions": lambda self: 3}, "num_actions must be an int"),
    ("num_players 0", {"num_players": 0}, "num_players is 0"),
    ("num_players text", {"num_players": "two"}, "num_players must be an int"),
    ("zero_sum text", {"zero_sum": "yes"}, "zero_sum"),
    ("no actions", {"legal_actions": lambda self: []}, "empty"),
    ("duplicate actions", {"legal_actions": lambda self: [1, 1]}, "1 twice"),
    ("action too large", {"legal_actions": lambda self: [3]}, "has 3"),
    ("to_play too large", {"to_play": 2}, "to_play is 2"),
    ("action_to_string raises", {"action_to_string": lambda self, action: crash(self)}, "action_to_string"),
]


@pytest.mark.parametrize(("name", "methods", "words"), BROKEN_ROOTS, ids=[case[0] for case in BROKEN_ROOTS])
def test_contract_violation_at_root_raises(name: str, methods: dict[str, Any], words: str) -> None:
    game = type("Wobbly", (Row,), methods)
    search = pondertree.UCT(20, seed=1)
    with pytest.raises(pondertree.GameContractError, match=words):
        _ = search.run(game()).move
    assert search.run(Row()).simulations > 0


@dataclass(frozen=True)
class Paid(Row):
    """Eight moves of one player, each of which pays `reward`."""

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
    from pondertree.evaluators.outputs import LARGEST_VALUE
    from pondertree.games import playout as reference_playout
    from pondertree.games.game_state import LARGEST_REWARD
    from pondertree.games.playout import LONGEST_PLAYOUT
    from pondertree.models.responses import LARGEST
    from pondertree.search import leaf_evaluation

    assert {_core.LARGEST_REWARD, game.LARGEST_REWARD, LARGEST_REWARD, LARGEST_VALUE, LARGEST} == {1e12}
    assert f"{1e12:.0e}" in testing.RULES["rewards"]
    assert leaf_evaluation.LONGEST_PLAYOUT == LONGEST_PLAYOUT == reference_playout.LONGEST_PLAYOUT


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
    monkeypatch.setattr("pondertree.search.leaf_evaluation.LONGEST_PLAYOUT", 500)
    monkeypatch.setattr("pondertree.games.playout.LONGEST_PLAYOUT", 500)
    game = type("Endless", (Row,), {"is_terminal": False})
    with pytest.raises(pondertree.GameContractError, match=r"Endless.*not over after 500"):
        pondertree.UCT(20, playout_policy=policy).run(game())
    assert pondertree.UCT(20, playout_policy=policy, max_depth=400).run(game()).simulations == 20


def test_results_of_game_that_fails_later_raise_typed_errors() -> None:
    """The line and the moves of a result are read off the game again."""
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


# --- Evaluators -------------------------------------------------------------------------------------------------


def answering(change: Callable[[np.ndarray], Any]) -> Any:
    """An evaluator that is right three times, and then answers `change(values)`."""

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
@pytest.mark.parametrize(("name", "change", "words"), BAD_ANSWERS, ids=[case[0] for case in BAD_ANSWERS])
def test_invalid_evaluator_output_raises(name: str, change: Any, words: str, in_flight: int, kind: str) -> None:
    state = ConnectFour() if kind == "compiled" else PythonGame(ConnectFour())
    forest = pondertree.UCT(seed=1, evaluator=answering(change), in_flight=in_flight).forest([state] * 2)
    before: list[Any] = []
    with pytest.raises(pondertree.EvaluationError, match=words) as caught:
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
@pytest.mark.parametrize(("name", "policy", "words"), BAD_POLICIES, ids=[case[0] for case in BAD_POLICIES])
def test_invalid_playout_policy_raises(name: str, policy: Any, words: str, state: Any) -> None:
    tree = pondertree.UCT(seed=1, playout_policy=policy).tree(state)
    with pytest.raises(pondertree.EvaluationError, match=rf"playout policy.*{words}"):
        tree.simulate(10)
    assert tree.result().simulations == 0
    with pytest.raises(pondertree.EvaluationError, match=words):
        pondertree.playout(state, 0, policy=policy)


@pytest.mark.parametrize("option", ["minimax_depth", "forced_depth"])
def test_two_player_options_raise_in_other_games(option: str) -> None:
    from pondertree.testing.tabular import TabularGame

    with pytest.raises(pondertree.InvalidArgumentError, match=f"{option} needs a zero-sum game"):
        pondertree.UCT(10, **{option: 1}).run(TabularGame(1, players=3).start())


class Endless:
    """A game that goes on for ever."""

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
    # Otherwise it is refused before the time is up.
    monkeypatch.setattr("pondertree.search.leaf_evaluation.LONGEST_PLAYOUT", 10**9)
    monkeypatch.setattr("pondertree.games.playout.LONGEST_PLAYOUT", 10**9)
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
