"""Invalid parameters and arguments raise typed errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.bad_input import NOT_A_NUMBER, NOT_WHOLE, wrong
from tests.support.search_helpers import PythonGame, after, fingerprint

import pondertree
from pondertree.games import ConnectFour, Othello, TicTacToe, by_name

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


# --- Arguments of methods ---------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("name", "call", "kind", "message"), CALLS, ids=[case[0] for case in CALLS])
def test_invalid_argument_raises(name: str, call: Any, kind: type[Exception], message: str) -> None:
    search = pondertree.UCT(20, seed=1)
    forest = search.forest([ConnectFour()] * 2).simulate(30)
    before = [fingerprint(result) for result in forest.results()]
    with pytest.raises(kind, match=message) as caught:
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
