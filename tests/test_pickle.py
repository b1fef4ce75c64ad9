"""Pickles and copies of results, nodes and searches."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.test_root_actions import Hashed
from tests.support.exact_models import ExactBatchModel, RandomOutputs
from tests.support.search_helpers import after, every_node, fingerprint, random_position

import pondertree
from pondertree import _core
from pondertree.chess import MCTS, Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Cached, Rollout, Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame

MATE_IN_TWO = Chess("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "oldest pickle": lambda thing: pickle.loads(pickle.dumps(thing, protocol=2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def noised(state: Any) -> pondertree.SearchResult:
    return pondertree.AlphaZero(Hashed(), 60, seed=1).run(state, add_noise=True)


RESULTS: dict[str, Callable[[], pondertree.SearchResult]] = {
    "uct": lambda: pondertree.UCT(300, seed=1).run(ConnectFour()),
    "three players": lambda: pondertree.UCT(200, seed=1, in_flight=3).run(CoinRow()),
    "rewards": lambda: pondertree.UCT(100, seed=1).run(TabularGame(3, players=2, rewards=True).start()),
    "minimax guard": lambda: pondertree.UCT(60, seed=1, minimax_depth=3).run(after(ConnectFour(), "4 1 4 1")),
    "proven": lambda: pondertree.UCT(3000, seed=1).run(after(ConnectFour(), "4 1 4 1 4 1")),
    "noise": lambda: noised(ConnectFour()),
    "temperature": lambda: pondertree.AlphaZero(Hashed(), 60, seed=1).run(Othello(), temperature=1.0),
    "gumbel": lambda: pondertree.Gumbel(Hashed(), num_simulations=40, seed=1).run(ConnectFour()),
    "gumbel, in two calls": lambda: (
        pondertree.Gumbel(Hashed(), seed=1).tree(ConnectFour()).simulate(20).simulate(16).result()
    ),
    "hybrid": lambda: pondertree.Hybrid(num_simulations=200, seed=1).run(after(Chess(), "e4 e5")),
    "mate": lambda: pondertree.Hybrid(num_simulations=200, seed=1).run(MATE_IN_TWO),
    "muzero": lambda: pondertree.MuZero(ExactBatchModel([TicTacToe()], RandomOutputs()), 40, seed=1).run(TicTacToe()),
    "observation": lambda: pondertree.MuZero(
        ExactBatchModel([TicTacToe()], RandomOutputs()), 40, seed=1, num_players=2
    ).run(observation=TicTacToe().observation()),
    "kept": lambda: kept_result(),
    "root_actions": lambda: pondertree.UCT(50, seed=1).run(ConnectFour(), root_actions=[1, 2]),
}


def kept_result() -> pondertree.SearchResult:
    tree = pondertree.AlphaZero(Hashed(), seed=1).tree(ConnectFour()).simulate(60)
    tree.advance(tree.result().action)
    return tree.simulate(20).result()


def assert_equal(one: pondertree.SearchResult, other: pondertree.SearchResult) -> None:
    assert fingerprint(one) == fingerprint(other)
    for name in ("action", "move", "value", "values", "proven", "pv", "seed", "elapsed", "simulations"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("visits", "q", "policy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    assert one.policy_at(0.3).tolist() == other.policy_at(0.3).tolist()
    assert repr(one) == repr(other)
    assert repr(one.moves) == repr(other.moves)
    assert one._view.depths() == other._view.depths()
    for ours, theirs in zip(every_node(one.root), every_node(other.root), strict=True):
        assert_equal_nodes(ours, theirs)


def assert_equal_nodes(one: pondertree.Node, other: pondertree.Node) -> None:
    assert list(one.children) == list(other.children)
    for name in (
        *("action", "visit_count", "prior", "clean_prior", "total_value", "raw_value", "to_play", "proven", "distance"),
        *("is_terminal", "nn_value", "category", "forced_depth_left", "reward", "in_flight", "move"),
    ):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", RESULTS)
def test_copied_results_are_equal(name: str, how: str) -> None:
    result = RESULTS[name]()
    untouched = COPIES[how](result)
    assert_equal(result, untouched)
    # What was asked for before is not carried along, and asked for again.
    assert_equal(result, COPIES[how](result))


@pytest.mark.parametrize("how", COPIES)
def test_copied_nodes_keep_their_place(how: str) -> None:
    root = pondertree.Hybrid(num_simulations=300, seed=1).run(Chess()).root
    node = root
    while any(child.visit_count > 3 for child in node.children.values()):
        node = max(node.children.values(), key=lambda child: child.visit_count)
    again = COPIES[how](node)
    assert again.state == node.state
    while True:
        assert_equal_nodes(node, again)
        if node.parent is None:
            break
        assert again.parent is not None
        node, again = node.parent, again.parent
    assert again.parent is None


def test_pickled_chess_result_keeps_its_chess_move() -> None:
    chess = pytest.importorskip("chess")
    result = pondertree.Hybrid(num_simulations=50, seed=1).run(chess.Board())
    for how in COPIES.values():
        assert how(result).chess_move == result.chess_move


def test_move_statistics_pickle() -> None:
    moves = pondertree.UCT(50, seed=1).run(ConnectFour()).moves
    assert pickle.loads(pickle.dumps(moves)) == moves == copy.deepcopy(moves)


def test_deep_tree_pickles() -> None:
    from tests.support.search_helpers import Corridor

    search = pondertree.UCT(4000, seed=1, solve=False, c_param=0.0)
    result = search.run(Corridor(4000))
    again = pickle.loads(pickle.dumps(result))
    assert fingerprint(again) == fingerprint(result)


@pytest.mark.parametrize("how", COPIES)
def test_copied_search_keeps_its_options(how: str) -> None:
    searches: list[Any] = [
        pondertree.UCT(50, seed=1),
        pondertree.AlphaZero(Rollout(), 50, seed=1),
        pondertree.AlphaZero(Cached(Uniform()), 50, seed=1),
        pondertree.Gumbel(Uniform(), seed=1),
        pondertree.Hybrid(Pesto(), num_simulations=50, seed=1),
        MCTS(Uniform(), 50, seed=1),
    ]
    for search in searches:
        again = COPIES[how](search)
        assert type(again) is type(search)
        assert fingerprint(again.run(Chess())) == fingerprint(search.run(Chess()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_process_pool_runs_searches(method: str) -> None:
    search = pondertree.UCT(100, seed=4)
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        result = pool.submit(search.run, ConnectFour()).result()
    assert_equal_but_for_time(result, search.run(ConnectFour()))


def assert_equal_but_for_time(one: pondertree.SearchResult, other: pondertree.SearchResult) -> None:
    assert fingerprint(one) == fingerprint(other)
    assert (one.seed, one.pv) == (other.seed, other.pv)


# --- damaged columns ----------------------------------------------------------------------------------------------


def columns_of(name: str) -> tuple[int, dict[str, Any]]:
    _, (version, columns) = RESULTS[name]()._view.__reduce__()
    return version, columns


VIEWS = {name: columns_of(name) for name in ("uct", "three players", "gumbel", "hybrid", "muzero", "noise")}


def use(view: _core.TreeView) -> None:
    """Everything that is asked of a view."""
    place, _ = view.choose(0.0, [])
    view.choose(1.0, [(3, 2), (1, -1)])
    view.policy(1.0, place, 7)
    view.policy(0.5, place, 7)
    view.visits(7)
    _ = view.value, view.values, view.proven, view.clean_priors
    view.principal_variation(place)
    view.depths()
    for node in range(view.num_nodes):
        view.node(node)
        view.edges(node)
    pickle.dumps(view)


@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from(list(VIEWS)), data=st.data())
def test_damaged_columns_are_refused_or_harmless(name: str, data: st.DataObject) -> None:
    version, columns = VIEWS[name]
    damaged = dict(columns)
    for _ in range(data.draw(st.integers(1, 3))):
        which = data.draw(st.sampled_from(sorted(columns)))
        column = columns[which].copy()
        kind = data.draw(st.sampled_from(["entry", "shorter", "longer", "type", "missing", "axes", "none"]))
        if kind == "entry" and column.size:
            place = data.draw(st.integers(0, column.size - 1))
            low, high = (
                (-9, 2**70) if column.dtype.kind == "f" else (np.iinfo(column.dtype).min, np.iinfo(column.dtype).max)
            )
            value = data.draw(st.one_of(st.integers(low, high), st.integers(max(low, -3), 3)))
            numbers = [value, np.nan, np.inf] if column.dtype.kind == "f" else [value]
            column[place] = data.draw(st.sampled_from(numbers))
        elif kind == "shorter":
            column = column[: column.size // 2]
        elif kind == "longer":
            column = np.concatenate([column, column[-1:], np.zeros(1, column.dtype)])
        elif kind == "type":
            column = column.astype(np.complex128)
        elif kind == "axes":
            column = column[None]
        damaged[which] = column
        if kind == "missing":
            del damaged[which]
        elif kind == "none":
            damaged[which] = None
    # An `InternalError` would be a panic.
    with contextlib.suppress(InvalidArgumentError):
        use(_core.TreeView(version, damaged))


def test_columns_of_another_version_are_refused() -> None:
    version, columns = VIEWS["uct"]
    with pytest.raises(InvalidArgumentError, match=f"version {version + 1}: this release reads version {version}"):
        _core.TreeView(version + 1, columns)


@settings(max_examples=60)
@given(plies=st.integers(0, 20), seed=st.integers(0, 99), simulations=st.integers(1, 200), solve=st.booleans())
def test_columns_round_trip(plies: int, seed: int, simulations: int, solve: bool) -> None:
    state = random_position(ConnectFour, plies, seed)
    view = pondertree.UCT(simulations, seed=seed, solve=solve).run(state)._view
    _, (version, columns) = view.__reduce__()
    again = _core.TreeView(version, columns).columns()
    assert list(again) == list(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(again[name], column, strict=True)
