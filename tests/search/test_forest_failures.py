"""Forests under interruption: stop, re-entrance, snapshots, exceptions and rollback."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.forests import made
from tests.support.search_helpers import Failing, Hashed, PythonGame, after, every_node, fingerprint, random_position

import pondertree
from pondertree.chess import Pesto
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame

BOTH = pytest.mark.parametrize("wrap", [False, True], ids=["compiled", "python"])


# --- Stopping and threads -----------------------------------------------------------------------------------------


@BOTH
def test_stop_from_another_thread_ends_simulate(wrap: bool) -> None:
    tree = pondertree.UCT(seed=3).tree(made(Othello(), wrap))
    timer = threading.Timer(0.1, tree.stop)
    timer.start()
    begun = time.perf_counter()
    tree.simulate(seconds=60.0)
    assert time.perf_counter() - begun < 10.0
    timer.join()
    result = tree.result()
    assert result.simulations == result.visits.sum() > 0
    alone = pondertree.UCT(seed=3).tree(made(Othello(), wrap)).simulate(result.simulations)
    assert fingerprint(alone.result()) == fingerprint(result)
    tree.simulate(10)
    assert tree.result().simulations == result.simulations + 10


@BOTH
def test_reentrant_simulate_is_refused(wrap: bool) -> None:
    tree = pondertree.UCT(seed=3).tree(made(Othello(), wrap))
    runner = threading.Thread(target=lambda: tree.simulate(seconds=0.5))
    runner.start()
    time.sleep(0.1)
    for use in (lambda: tree.simulate(1), lambda: tree.advance(19), lambda: tree.reset(tree.state)):
        with pytest.raises(pondertree.UsageError, match=r"running|while `simulate` runs"):
            use()
    try:
        seen = tree.result()
        assert seen.simulations >= 0
    except pondertree.UsageError:
        pass
    runner.join()
    result = tree.result()
    assert result.simulations == result.visits.sum() > 0
    alone = pondertree.UCT(seed=3).tree(made(Othello(), wrap)).simulate(result.simulations)
    assert fingerprint(alone.result()) == fingerprint(result)


@BOTH
def test_evaluator_cannot_reenter_its_own_search(wrap: bool) -> None:
    trees: list[pondertree.Tree] = []

    class Entering(Hashed):
        def evaluate(self, observations: np.ndarray) -> tuple[None, np.ndarray]:
            if self.calls == 5:
                trees[0].simulate(1)
            return super().evaluate(observations)

    tree = pondertree.UCT(seed=3, evaluator=Entering()).tree(made(ConnectFour(), wrap))
    trees.append(tree)
    with pytest.raises(pondertree.PondertreeError, match="already running") as caught:
        tree.simulate(20)
    assert isinstance(caught.value.__cause__, pondertree.UsageError) or isinstance(caught.value, pondertree.UsageError)
    assert tree.result().simulations == 5
    tree._forest._config.evaluator.calls = 6
    assert tree.simulate(20).result().simulations == 25


def test_evaluator_may_run_another_search() -> None:
    class Nested:
        def evaluate_states(self, states: Any) -> tuple[None, np.ndarray]:
            inner = pondertree.UCT(8, seed=1).run(list(states))
            return None, np.array([result.value for result in inner])

    assert pondertree.UCT(20, seed=3, evaluator=Nested()).run(ConnectFour()).simulations == 20


# --- Snapshots ----------------------------------------------------------------------------------------------------


@BOTH
def test_result_does_not_change_when_the_tree_grows(wrap: bool) -> None:
    tree = pondertree.UCT(seed=3).tree(made(ConnectFour(), wrap)).simulate(60)
    held = tree.result()
    before, text = fingerprint(held), held.root.to_json()
    untouched = tree.result().root
    tree.simulate(200)
    tree.advance(held.action)
    tree.simulate(50)
    tree.reset(made(random_position(ConnectFour, 5, 1), wrap))
    tree.simulate(50)
    assert fingerprint(held) == before
    assert held.root.to_json() == text == untouched.to_json()
    assert held.simulations == 60


# --- Slots of Python games ----------------------------------------------------------------------------------------


def slots_of(forest: pondertree.Forest) -> int:
    """Nodes that have a state, counted in the trees themselves."""
    return sum(forest.result(row)._view.num_nodes for row in range(len(forest)))


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    steps=st.lists(
        st.tuples(st.sampled_from(["simulate", "advance", "reset", "fail"]), st.integers(0, 3)), max_size=15
    ),
    in_flight=st.sampled_from([1, 3]),
)
def test_state_table_holds_exactly_the_positions_of_the_trees(
    seed: int, steps: list[tuple[str, int]], in_flight: int
) -> None:
    evaluator = Failing(0, RuntimeError("on purpose"))
    start = TabularGame(seed, depth=(6, 9)).start()
    forest = pondertree.UCT(seed=1, in_flight=in_flight, evaluator=evaluator).forest([start] * 3)
    for what, number in steps:
        row = number % 3
        if what == "simulate":
            forest.simulate(15 + number)
        elif what == "reset":
            forest.reset(row, start)
        elif what == "fail":
            evaluator.left = number + 1
            with contextlib.suppress(pondertree.EvaluationError):
                forest.simulate(15)
            evaluator.left = 0
        else:
            action = forest.result(row).action
            if not forest.state(row).play(action).is_terminal:
                forest.advance(row, action)
        assert forest._world is not None
        assert len(forest._world._states) == slots_of(forest)
        assert not forest._world._forced_plies_left, "stored only in searches with forced_depth"


def raised_by(call: Callable[[], object]) -> BaseException | None:
    """What `call` raises, also if that is no Exception."""
    try:
        call()
    except BaseException as error:
        return error
    return None


# --- Exceptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [False, True])
@settings(max_examples=60)
@given(
    at=st.integers(1, 25),
    in_flight=st.sampled_from([1, 2, 4]),
    trees=st.integers(1, 3),
    plies=st.integers(0, 34),
    solve=st.booleans(),
    interrupt=st.booleans(),
    count=st.integers(10, 80),
)
def test_failed_batch_is_rolled_back(
    at: int, in_flight: int, trees: int, plies: int, wrap: bool, solve: bool, interrupt: bool, count: int
) -> None:
    """After the exception the trees are those of a search stopped at the last whole batch, and going on heals all."""
    states = [made(random_position(ConnectFour, plies + row, row), wrap) for row in range(trees)]
    error: BaseException = KeyboardInterrupt() if interrupt else RuntimeError("on purpose")
    evaluator = Failing(at, error)
    options: dict[str, Any] = {"in_flight": in_flight, "solve": solve}
    disturbed = pondertree.UCT(evaluator=evaluator, **options).forest(states, seeds=list(range(trees)))
    before: list[Any] = [fingerprint(result) for result in disturbed.results()]

    def note(done: int, wanted: int) -> None:
        before[:] = [fingerprint(result) for result in disturbed.results()]

    caught = raised_by(lambda: disturbed.simulate(count, progress=note))
    if evaluator.left > 0:
        assert caught is None, "the evaluator was not asked that often"
        return
    assert isinstance(caught, KeyboardInterrupt if interrupt else pondertree.EvaluationError)
    assert [fingerprint(result) for result in disturbed.results()] == before
    done = [result.simulations for result in disturbed.results()]
    disturbed.simulate([count - n for n in done])
    whole = pondertree.UCT(evaluator=Hashed(), **options).forest(states, seeds=list(range(trees))).simulate(count)
    assert [fingerprint(a) for a in disturbed.results()] == [fingerprint(b) for b in whole.results()]
    assert all(node.in_flight == 0 for result in disturbed.results() for node in every_node(result.root))


@pytest.mark.parametrize("wrap", [False, True])
def test_rollback_after_advance_ends_at_the_new_root(wrap: bool) -> None:
    for seed in range(6):
        for count in range(1, 20):
            evaluator = Failing(0, RuntimeError("on purpose"))
            state = made(random_position(ConnectFour, 26, seed), wrap)
            tree = pondertree.UCT(seed=seed, evaluator=evaluator, solve=False).tree(state).simulate(count)
            if tree.state.play(tree.result().action).is_terminal:
                continue
            tree.advance(tree.result().action)
            before = fingerprint(tree.result())
            evaluator.left = 1
            caught = raised_by(lambda tree=tree: tree.simulate(1))
            if caught is None:
                continue
            assert isinstance(caught, pondertree.EvaluationError)
            assert fingerprint(tree.result()) == before
            assert tree.simulate(5).result().simulations == 5, "counted from the new root"


class Fragile(PythonGame):
    """A game one of whose methods raises at a certain call."""

    left = 0
    method = ""
    error: BaseException = RuntimeError("on purpose")

    def _strike(self, method: str) -> None:
        if method == Fragile.method:
            Fragile.left -= 1
            if Fragile.left == 0:
                raise Fragile.error

    def play(self, action: int) -> PythonGame:
        self._strike("play")
        return super().play(action)

    def legal_actions(self) -> list[int]:
        self._strike("legal_actions")
        return super().legal_actions()

    def returns(self) -> list[float]:
        self._strike("returns")
        return super().returns()


@settings(max_examples=60)
@given(
    at=st.integers(1, 300),
    method=st.sampled_from(["play", "legal_actions", "returns"]),
    in_flight=st.sampled_from([1, 4]),
    plies=st.integers(0, 30),
    interrupt=st.booleans(),
    forced_depth=st.sampled_from([0, 2]),
)
def test_failing_game_leaves_trees_consistent(
    at: int, method: str, in_flight: int, plies: int, interrupt: bool, forced_depth: int
) -> None:
    states = [Fragile(random_position(ConnectFour, plies + row, row)) for row in range(2)]
    options: dict[str, Any] = {"in_flight": in_flight, "forced_depth": forced_depth}
    Fragile.method = ""
    forest = pondertree.UCT(**options).forest(states, seeds=[1, 2])
    Fragile.method, Fragile.left = method, at
    Fragile.error = KeyboardInterrupt() if interrupt else ZeroDivisionError("on purpose")
    caught = raised_by(lambda: forest.simulate(25))
    Fragile.method = ""
    if Fragile.left > 0:
        assert caught is None, "it was not asked that often"
    elif interrupt:
        assert isinstance(caught, KeyboardInterrupt)
    else:
        assert isinstance(caught, pondertree.GameContractError)
        assert "ZeroDivisionError" in str(caught)
        assert "Fragile" in str(caught)
    assert forest._world is not None
    assert len(forest._world._states) == slots_of(forest)
    done = [result.simulations for result in forest.results()]
    forest.simulate([25 - n for n in done])
    whole = pondertree.UCT(**options).forest(states, seeds=[1, 2]).simulate(25)
    assert [fingerprint(a) for a in forest.results()] == [fingerprint(b) for b in whole.results()]


@BOTH
def test_exception_in_progress_leaves_the_tree_usable(wrap: bool) -> None:
    def refuse(done: int, wanted: int) -> None:
        raise LookupError("enough")

    tree = pondertree.UCT(seed=3).tree(made(Othello(), wrap))
    with pytest.raises(LookupError, match="enough"):
        tree.simulate(20_000 if not wrap else 30, progress=refuse)
    count = tree.result().simulations
    assert count > 0
    told: list[int] = []
    tree.simulate(50, progress=lambda done, wanted: told.append(done))
    assert tree.result().simulations == count + 50
    assert told[-1] == count + 50
    alone = pondertree.UCT(seed=3).tree(made(Othello(), wrap)).simulate(count + 50)
    assert fingerprint(alone.result()) == fingerprint(tree.result())


def test_trace_without_the_option_raises_usage_error() -> None:
    with pytest.raises(pondertree.UsageError, match="trace=True"):
        pondertree.UCT().tree(ConnectFour()).trace()
    tree = pondertree.UCT(trace=True, seed=1).tree(ConnectFour()).simulate(5)
    assert [row["simulation"] for row in tree.trace()] == list(range(5))
    assert "Tree: 5 simulations" in repr(tree)


def test_advance_keeps_the_history_of_chess() -> None:
    tree = pondertree.UCT(seed=1, max_depth=2).tree(Chess())
    for move in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1"]:
        tree.simulate(20)
        tree.advance(tree.state.parse_action(move))
    assert tree.state.repetitions == after(Chess(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1").repetitions
    assert tree.simulate(30).result().visits.sum() >= 30


def test_trace_omits_rolled_back_simulations() -> None:
    """Ends of the game in a batch that fails are taken back with it, from the trace too."""
    for at in range(1, 12):
        evaluator = Failing(at, RuntimeError("on purpose"))
        search = pondertree.UCT(60, seed=1, evaluator=evaluator, in_flight=4, solve=False, trace=True)
        tree = search.tree(random_position(TicTacToe, 4, 1))
        with contextlib.suppress(pondertree.EvaluationError):
            tree.simulate()
        assert [row["simulation"] for row in tree.trace()] == list(range(tree.result().simulations))


def test_advance_of_a_large_tree_releases_the_gil() -> None:
    """The UCI engine keeps its clock by another thread: copying the tree must not hold the interpreter lock."""
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.001):
            ticks.append(time.perf_counter())

    tree = pondertree.AlphaZero(Pesto(), seed=1).tree(Chess()).simulate(100_000)
    clock = threading.Thread(target=tick)
    clock.start()
    try:
        action = tree.result().action
        begun = time.perf_counter()
        tree.advance(action)
        ended = time.perf_counter()
    finally:
        over.set()
        clock.join()
    assert sum(begun < moment < ended for moment in ticks) >= (ended - begun) / 0.1


@pytest.mark.parametrize("simulations", [0, 200])
@pytest.mark.parametrize("wrap", [False, True])
def test_advance_to_the_end_raises_and_changes_nothing(simulations: int, wrap: bool) -> None:
    state = Chess("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1")
    tree = pondertree.UCT(seed=1, solve=False).tree(PythonGame(state) if wrap else state)
    tree.simulate(simulations)
    before = tree.result().visits if simulations else None
    with pytest.raises(pondertree.GameOverError, match="ends the game"):
        tree.advance(state.parse_action("Ra8#"))
    if simulations:
        assert (tree.result().visits == before).all()
    tree.advance(state.parse_action("Ra7"))
