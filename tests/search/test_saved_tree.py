"""Trees as files: a saved tree continues bit for bit, in every preset, game and state of its search."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.exact_models import ExactBatchModel, RandomOutputs
from tests.support.saved_trees import (
    CASES,
    COMPLETE,
    RELOADS,
    WITH_SEARCH,
    WITH_STATE,
    Step,
    everything,
    random_root,
    run_steps,
)
from tests.support.search_helpers import PythonGame, after, every_node, fingerprint
from tests.test_pickle import assert_equal

import pondertree
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.evaluators import Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.search.settings import check_settings, settings_data

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["simulate", "simulate", "noise", "clean", "step", "advance", "reset"]),
        st.integers(0, 60),
    ),
    max_size=4,
)


def check_continuation(
    name: str, how: str, root: Any, seed: int, before: list[Step], rest: list[Step], folder: Path
) -> None:
    case = CASES[name]
    tree, other = case.plant(seed, root), case.plant(seed, root)
    run_steps(tree, before, case.noise)
    run_steps(other, before, case.noise)
    start = root
    for kind, _ in before:
        # The state that the last `reset` was given.
        start = None if kind == "reset" else start
    if start is None and name in WITH_STATE:
        start = state_of_last_reset(name, root, seed, before)
    again = RELOADS[how](case, name, tree, folder, start)
    assert everything(again) == everything(tree)
    assert type(again) is type(tree)
    for step in rest:
        run_steps(other, [step], case.noise)
        run_steps(again, [step], case.noise)
        assert everything(again) == everything(other), step
    if again._forest._config.options.trace:
        assert again.trace() == other.trace()
    # Saving changed nothing, but for allocated memory: a snapshot makes the search copy its columns, which drops room.
    run_steps(tree, rest, case.noise)
    one, two = everything(tree), everything(other)
    assert all(one[key] == two[key] for key in one.keys() | two.keys() if key not in ("extent", "bytes"))


def state_of_last_reset(name: str, root: Any, seed: int, before: list[Step]) -> Any:
    """Returns the state at the root when a tree was last reset."""
    tree = CASES[name].plant(seed, root)
    last = max(place for place, (kind, _) in enumerate(before) if kind == "reset")
    run_steps(tree, before[:last], CASES[name].noise)
    return tree.state


@pytest.mark.parametrize("name", CASES)
def test_saved_tree_continues_bit_for_bit(name: str, tmp_path: Path) -> None:
    before: list[Step] = [("noise", 40), ("simulate", 25), ("advance", 0), ("simulate", 20)]
    rest: list[Step] = [("simulate", 30), ("advance", 0), ("noise", 25), ("advance", 1), ("simulate", 10), ("reset", 0)]
    check_continuation(name, "file", CASES[name].root(), 5, before, [*rest, ("simulate", 20)], tmp_path)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(list(CASES)),
    how=st.sampled_from(list(RELOADS)),
    seed=st.integers(0, 9),
    plies=st.integers(0, 12),
    before=STEPS,
    rest=STEPS,
)
def test_any_tree_continues_bit_for_bit(
    name: str, how: str, seed: int, plies: int, before: list[Step], rest: list[Step]
) -> None:
    with TemporaryDirectory() as folder:
        check_continuation(name, how, random_root(CASES[name], plies, seed), seed, before, rest, Path(folder))


# --- read-only trees ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*WITH_SEARCH, *WITH_STATE])
def test_tree_without_its_search_or_state_is_read_only(name: str, tmp_path: Path) -> None:
    tree = CASES[name].plant(3).simulate(40)
    tree.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x")
    result, other = tree.result(), again.result()
    assert fingerprint(other) == fingerprint(result)
    assert (other.value, other.proven, other.seed, other.elapsed) == (
        result.value,
        result.proven,
        result.seed,
        result.elapsed,
    )
    np.testing.assert_array_equal(other.policy, result.policy)
    assert [move.visits for move in other.moves] == [move.visits for move in result.moves]
    assert len(list(every_node(other.root))) == len(list(every_node(result.root)))
    assert len(other.pv) >= 1
    assert repr(again) == repr(tree) or name in WITH_STATE
    with pytest.raises(UsageError, match="search=" if name in WITH_SEARCH else "state="):
        again.simulate(1)
    for use in (lambda: again.advance(0), lambda: again.save(tmp_path / "y"), again.trace, again.stop, again.step):
        with pytest.raises(UsageError, match="read-only"):
            use()
    copied = pickle.loads(pickle.dumps(again))
    assert fingerprint(copied.result()) == fingerprint(result)


@pytest.mark.parametrize("trace", [False, True])
def test_search_in_steps_continues_its_schedule_from_a_file(trace: bool, tmp_path: Path) -> None:
    search = pondertree.Gumbel(Uniform(), 20, seed=4, trace=trace)
    tree = search.tree(ConnectFour())
    for _ in range(7):
        tree.step(of=20)
    tree.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x", search=pondertree.Gumbel(Uniform(), 20, seed=4, trace=trace))
    rows = [(tree.step(of=20), again.step(of=20)) for _ in range(13)]
    assert all(one == other and one is not None for one, other in rows)
    whole = pondertree.Gumbel(Uniform(), 20, seed=4).tree(ConnectFour()).simulate(20)
    assert fingerprint(again.result()) == fingerprint(tree.result()) == fingerprint(whole.result())
    if trace:
        assert again.trace() == tree.trace()


@pytest.mark.parametrize("name", COMPLETE)
def test_result_is_read_from_its_file(name: str, tmp_path: Path) -> None:
    tree = CASES[name].plant(3)
    tree.simulate(50, add_noise=True if CASES[name].noise else None)
    tree.advance(tree.result().action) if tree.result().proven is None else None
    result = tree.simulate(20).result(temperature=0.7)
    result.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x")
    assert_equal(again.result(), result)
    assert_equal(again.result(temperature=0.0), tree.result())
    with pytest.raises(UsageError, match="file is that of a result"):
        again.simulate(1)
    with pytest.raises(InvalidArgumentError, match="that of a result cannot be continued"):
        pondertree.load_tree(tmp_path / "x", CASES[name].search(1))


def test_result_of_a_python_game_takes_its_state(tmp_path: Path) -> None:
    state = PythonGame(ConnectFour())
    result = pondertree.UCT(60, seed=1).run(state)
    result.save(tmp_path / "x")
    assert_equal(pondertree.load_tree(tmp_path / "x", state=state).result(), result)
    assert pondertree.load_tree(tmp_path / "x").state is not state


# --- arguments that do not fit -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "says"),
    [
        (pondertree.UCT(c_param=2.0), "c_param=2.0: the tree was searched with 1.0"),
        (pondertree.UCT(in_flight=2), "in_flight=2: the tree was searched with 1"),
        (pondertree.AlphaZero(Uniform()), "search is a AlphaZero: the tree is of a search with 'UCT'"),
        (pondertree.UCT(evaluator=Uniform()), "evaluator="),
        (3, "search must be a search"),
    ],
)
def test_search_with_other_settings_is_refused(search: Any, says: str, tmp_path: Path) -> None:
    pondertree.UCT(seed=1).tree(ConnectFour()).simulate(9).save(tmp_path / "x")
    with pytest.raises(InvalidArgumentError, match=says):
        pondertree.load_tree(tmp_path / "x", search)


def test_option_that_a_file_lacks_has_its_default() -> None:
    search = pondertree.AlphaZero(Uniform(), c_puct=1.5, fpu=0.25)
    data = settings_data(search)
    del data["options"]["fpu"]
    with pytest.raises(InvalidArgumentError, match=r"fpu=0.25: the tree was searched with 0.0"):
        check_settings(search, data)
    check_settings(pondertree.AlphaZero(Uniform(), c_puct=1.5), data)


def test_limits_may_differ_and_given_search_is_unchanged(tmp_path: Path) -> None:
    tree = pondertree.UCT(seed=1).tree(ConnectFour()).simulate(9)
    tree.save(tmp_path / "x")
    search = pondertree.UCT(num_simulations=5, seed=7, threads=2)
    again = pondertree.load_tree(tmp_path / "x", search)
    assert again.simulate().result().simulations == 14
    assert (search.seed, search.calls) == (7, 0)
    assert fingerprint(again.result()) == fingerprint(tree.simulate(5).result())


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (PythonGame(Othello()), "num_actions=65"),
        (PythonGame(after(ConnectFour(), "4")), "at node 0 the tree has"),
        (PythonGame(after(ConnectFour(), "4 4 4 4 4 4")), "at node"),
        (CoinRow(), "the given state has name='CoinRow'"),
        (3, "not a game state"),
    ],
)
def test_state_of_another_root_is_refused(state: Any, says: str, tmp_path: Path) -> None:
    pondertree.UCT(seed=1).tree(PythonGame(ConnectFour())).simulate(50).save(tmp_path / "x")
    with pytest.raises(InvalidArgumentError, match=says):
        pondertree.load_tree(tmp_path / "x", state=state)


def test_moves_since_the_first_state_are_replayed(tmp_path: Path) -> None:
    tree = pondertree.UCT(seed=1).tree(PythonGame(ConnectFour())).simulate(50)
    tree.advance(3)
    tree.advance(2)
    tree.save(tmp_path / "x")
    assert pondertree.load_tree(tmp_path / "x", state=PythonGame(ConnectFour())).state == tree.state
    with pytest.raises(InvalidArgumentError, match="state is not the one that the tree was planted with: 3 is not"):
        pondertree.load_tree(tmp_path / "x", state=PythonGame(after(ConnectFour(), "4 4 4 4 4 4")))


def test_state_is_refused_where_the_file_holds_it(tmp_path: Path) -> None:
    pondertree.UCT(seed=1).tree(ConnectFour()).save(tmp_path / "x")
    with pytest.raises(InvalidArgumentError, match="state is for games in Python"):
        pondertree.load_tree(tmp_path / "x", state=ConnectFour())


def test_hidden_states_that_are_objects_are_refused_and_pickle(tmp_path: Path) -> None:
    search = pondertree.MuZero(ExactBatchModel([TicTacToe()], RandomOutputs()), 40, seed=1)
    tree = search.tree(TicTacToe()).simulate(30)
    with pytest.raises(InvalidArgumentError, match="hidden_0 has the dtype object: a file holds numbers alone"):
        tree.save(tmp_path / "x")
    assert not list(tmp_path.iterdir())
    again = copy.copy(tree)
    assert fingerprint(again.simulate(20).result()) == fingerprint(tree.simulate(20).result())


def test_repetitions_before_the_root_are_kept(tmp_path: Path) -> None:
    state = after(Chess(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1")
    tree = pondertree.Hybrid(seed=1).tree(state).simulate(60)
    tree.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x")
    assert again.state.repetitions == state.repetitions == 1
    assert again.state.play(again.state.parse_action("f6g8")).repetitions == 2


def test_changed_options_of_the_search_do_not_change_its_trees(tmp_path: Path) -> None:
    search = pondertree.UCT(seed=1)
    tree = search.tree(ConnectFour()).simulate(30)
    search.c_param = 3.0
    tree.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x")
    assert everything(again) == everything(tree)
    assert fingerprint(again.simulate(30).result()) == fingerprint(tree.simulate(30).result())


def test_tree_is_not_saved_while_it_is_searched(tmp_path: Path) -> None:
    def evaluate(observations: Any) -> Any:
        tree.save(tmp_path / "x")

    tree = pondertree.UCT(evaluator=evaluate, seed=1).tree(ConnectFour())
    with pytest.raises(UsageError, match="cannot save while"):
        tree.simulate(3)
    tree.save(tmp_path / "x")
