"""Single steps: one simulation with its record, in every preset and world."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_alphazero import Table
from tests.support.models import TableModel
from tests.support.search_helpers import Failing, PythonGame, fingerprint, random_position
from tests.support.terms import check_terms

import pondertree
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.testing.tabular import TabularGame

GAMES = ("UCT", "AlphaZero", "Gumbel", "Hybrid")


@st.composite
def searches(draw: st.DrawFn) -> tuple[Any, dict[str, Any], bool | None]:
    """(search of the option `trace`, arguments of `tree`, noise)."""
    preset = draw(st.sampled_from([*GAMES, "MuZero", "Gumbel of a model"]))
    options: dict[str, Any] = {"seed": draw(st.integers(0, 1000)), "in_flight": draw(st.sampled_from([1, 1, 3]))}
    noise = draw(st.sampled_from([None, True, False])) if preset in ("AlphaZero", "MuZero") else None
    if preset in ("MuZero", "Gumbel of a model"):
        model = TableModel(num_actions=draw(st.sampled_from([2, 7, 300])), seed=options["seed"], largest_reward=1.0)
        kind = pondertree.MuZero if preset == "MuZero" else pondertree.Gumbel
        return lambda trace: kind(model, num_players=1, trace=trace, **options), {"observation": np.array([5])}, noise
    options["solve"] = draw(st.booleans())
    plies = draw(st.integers(0, 12))
    if preset == "Hybrid":
        options["priority"] = draw(st.sampled_from(["strict", "tactical", "prior", None]))
        state = random_position(Chess, plies, options["seed"])
        return lambda trace: pondertree.Hybrid(trace=trace, **options), {"state": state}, noise
    state = random_position(draw(st.sampled_from([TicTacToe, ConnectFour])), plies, options["seed"])
    state = draw(st.sampled_from([state, PythonGame(state)]))
    if preset == "UCT":
        return lambda trace: pondertree.UCT(trace=trace, **options), {"state": state}, noise
    network = Table(levels=5)
    if preset == "AlphaZero":
        options["forced_playouts"] = draw(st.sampled_from([0.0, 2.0]))
        return lambda trace: pondertree.AlphaZero(network, trace=trace, **options), {"state": state}, noise
    return lambda trace: pondertree.Gumbel(network, trace=trace, **options), {"state": state}, noise


@settings(max_examples=60)
@given(searches(), st.sampled_from([1, 5, 40]))
def test_steps_make_the_tree_of_single_simulations(given_search: Any, count: int) -> None:
    search, root, noise = given_search
    stepped, traced, simulated = (search(trace).tree(**root) for trace in (False, True, False))
    rows = []
    for number in range(count):
        add_noise = noise if number % 3 == 0 else None
        row = stepped.step(add_noise=add_noise)
        traced.simulate(1, add_noise=add_noise)
        simulated.simulate(1, add_noise=add_noise)
        assert fingerprint(stepped.result()) == fingerprint(simulated.result())
        rows += [] if row is None else [row]
        assert (row is None) == (len(traced.trace()) < number + 1)
    assert rows == traced.trace()
    check_terms(rows)


@settings(max_examples=60)
@given(searches(), st.sampled_from([1, 2, 16, 40]), st.integers(0, 40), st.booleans())
def test_steps_of_a_search_make_its_tree(given_search: Any, count: int, done: int, trace: bool) -> None:
    """One leaf is in flight per step, so that whole searches are compared with one leaf in flight."""
    search, root, noise = given_search
    stepped, whole = (search(trace) for trace in (trace, True))
    stepped.in_flight = whole.in_flight = 1
    trees = [each.tree(**root).simulate(done) for each in (stepped, whole)]
    begun = len(trees[1].trace())
    trees[1].simulate(count, add_noise=noise)
    rows = []
    for number in range(count):
        rows.append(trees[0].step(of=count, add_noise=noise if number == 0 else None))
    rows = [row for row in rows if row is not None]
    assert rows == trees[1].trace()[begun:]
    assert fingerprint(trees[0].result()) == fingerprint(trees[1].result())
    if trace:
        assert trees[0].trace() == trees[1].trace()
    results = [tree.simulate(7).result() for tree in trees]
    assert fingerprint(results[0]) == fingerprint(results[1]), "and the next search is the same"


def test_step_of_another_number_begins_a_search() -> None:
    trees = [pondertree.Gumbel(Table(), seed=3).tree(ConnectFour()) for _ in range(2)]
    for _ in range(3):
        trees[0].step(of=16)
    row = trees[0].step(of=8)
    assert row is not None
    assert row["terms"][0]["considered_visits"] == 0
    assert [edge["scheduled_visits"] for edge in row["terms"][0]["edges"]] == [0] * 7
    for _ in range(7):
        trees[0].step(of=8)
    assert trees[0].step(of=8)["terms"][0]["considered_visits"] == 0, "a search is over after its last step"  # type: ignore[index]


def test_step_after_a_move_begins_a_search() -> None:
    trees = [pondertree.Gumbel(Table(), seed=3, trace=True).tree(ConnectFour()) for _ in range(2)]
    for tree in trees:
        for _ in range(16):
            tree.step(of=16)
        tree.step(of=16)
        tree.advance(tree.result().action)
    trees[1].simulate(16)
    for _ in range(16):
        trees[0].step(of=16)
    assert trees[0].trace() == trees[1].trace()


def test_step_of_one_tree_leaves_the_others() -> None:
    states = [random_position(ConnectFour, plies, plies) for plies in range(4)]
    forest, alone = (pondertree.Gumbel(Table(), seed=3).forest(states) for _ in range(2))
    for number in range(16):
        for index in (1, 3):
            row = forest.step(index, of=16)
            assert row is not None
            assert row["simulation"] == number
    alone.simulate([0, 16, 0, 16])
    for ours, theirs in zip(forest.results(), alone.results(), strict=True):
        assert fingerprint(ours) == fingerprint(theirs)
    assert forest.step(-1, of=16) is not None
    with pytest.raises(pondertree.InvalidArgumentError, match="index 4 is out of range"):
        forest.step(4)


@pytest.mark.parametrize("wrap", [False, True], ids=["compiled", "python"])
@pytest.mark.parametrize("trace", [False, True])
def test_step_returns_none_at_a_proven_root_and_in_a_full_tree(wrap: bool, trace: bool) -> None:
    state = TicTacToe().play(0).play(3).play(1).play(4)
    tree = pondertree.UCT(seed=1, trace=trace).tree(PythonGame(state) if wrap else state)
    while tree.result().proven is None:
        assert tree.step() is not None
    assert tree.step() is None
    assert tree.step(of=5) is None
    full = pondertree.UCT(seed=1, max_nodes=4, trace=trace).tree(PythonGame(ConnectFour()) if wrap else ConnectFour())
    rows = [full.step() for _ in range(20)]
    before = fingerprint(full.result())
    assert rows[0] is not None
    assert full.step() is rows[-1] is None
    assert fingerprint(full.result()) == before


def test_step_records_nothing_else() -> None:
    tree = pondertree.UCT(seed=1).tree(ConnectFour())
    tree.step()
    with pytest.raises(pondertree.UsageError, match="trace=True"):
        tree.trace()
    tree.simulate(10)
    assert tree._forest._core.trace(0) == []


def test_failed_step_changes_nothing() -> None:
    for at in range(1, 6):
        evaluator = Failing(at, RuntimeError("on purpose"))
        tree = pondertree.UCT(seed=1, evaluator=evaluator).tree(ConnectFour())
        rows = [tree.step(of=9) for _ in range(at - 1)]
        before = fingerprint(tree.result())
        with pytest.raises(pondertree.EvaluationError):
            tree.step(of=9)
        assert fingerprint(tree.result()) == before
        assert tree._forest._core.trace(0) == []
        rows += [tree.step(of=9) for _ in range(at - 1, 9)]
        assert [row and row["simulation"] for row in rows] == list(range(9))


def test_step_inside_an_evaluator_is_refused() -> None:
    class Entering:
        def evaluate(self, observations: Any) -> tuple[None, Any]:
            with pytest.raises(pondertree.UsageError, match="already running"):
                tree.step()
            return None, np.zeros(len(observations))

    tree = pondertree.AlphaZero(Entering(), seed=1, trace=True).tree(ConnectFour())
    tree.simulate(5)
    assert len(tree.trace()) == 5


@pytest.mark.parametrize("of", [0, -1, 1.5, "8", True])
def test_step_refuses_a_search_that_is_no_count(of: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="of must be"):
        pondertree.UCT().tree(ConnectFour()).step(of=of)


@settings(max_examples=40)
@given(
    st.builds(
        TabularGame,
        seed=st.integers(0, 10**6),
        players=st.sampled_from([1, 2, 3]),
        turn_order=st.sampled_from(["alternate", "random", "double"]),
        rewards=st.booleans(),
    )
)
def test_step_records_games_with_any_players_and_rewards(game: TabularGame) -> None:
    trees = [pondertree.UCT(seed=1, trace=trace).tree(copy.copy(game).start()) for trace in (False, True)]
    rows = [trees[0].step(of=30) for _ in range(30)]
    trees[1].simulate(30)
    rows = [row for row in rows if row is not None]
    assert rows == trees[1].trace()
    check_terms(rows)
