"""The cache changes nothing but the number of evaluations."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.support.networks import NONSENSE, Switch, assert_refused, assert_same_search, table
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.evaluators import Cached, Function, Packed, Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe


class Dense:
    """The table, as an evaluator of observations."""

    def __init__(self, num_actions: int) -> None:
        self.num_actions = num_actions
        self.rows = 0
        self.version = 0

    def evaluate(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.rows += len(observations)
        logits, values = table(observations, self.num_actions)
        return logits, values * (1 - self.version)


class Fast(Dense):
    """The table, also in packed form."""

    def evaluate_packed(self, packed: Packed) -> tuple[np.ndarray, np.ndarray]:
        logits, values = self.evaluate(packed.unpack())
        return logits[packed.rows(), packed.legal_actions], values


class States(Dense):
    """The table, as an evaluator of states."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        return Dense.evaluate(self, np.stack([state.observation() for state in states]))


class StatesOnly:
    """Values of states with a uniform policy."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[None, np.ndarray]:
        return None, table(np.stack([state.observation() for state in states]))[1]


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
@pytest.mark.parametrize("kind", [Dense, Fast, States])
@pytest.mark.parametrize("size", [100_000, 3])
def test_cached_search_matches_uncached(start: Any, kind: type[Dense], size: int) -> None:
    state = start()
    assert_same_search(kind(state.num_actions), Cached(kind(state.num_actions), size), state, in_flight=4)


@pytest.mark.parametrize("kind", [Dense, States])
def test_cached_search_of_python_game_matches_uncached(kind: type[Dense]) -> None:
    assert_same_search(kind(7), Cached(kind(7)), PythonGame(ConnectFour()), in_flight=4)


@pytest.mark.parametrize("evaluator", [StatesOnly(), Uniform(), Function(lambda o: (None, table(o)[1]))])
def test_uniform_policy_is_cached(evaluator: Any) -> None:
    assert_same_search(evaluator, Cached(evaluator), ConnectFour())
    assert_same_search(evaluator, Cached(evaluator), PythonGame(ConnectFour()))


def test_uniform_policy_for_some_positions() -> None:
    """Entries without a policy are combined with entries that have one."""
    cached = Cached(lambda o: (None if o[0, 0, 0, 0] else np.ones((len(o), 7)), np.zeros(len(o))))
    marked = np.zeros((2, 1, 1, 1), dtype=np.float32)
    marked[1] = 1
    assert cached.evaluate(marked[1:])[0] is None
    policy, values = cached.evaluate(marked)
    assert policy is not None
    assert policy.tolist() == [[1.0] * 7, [0.0] * 7]
    assert values.tolist() == [0.0, 0.0]


def test_cached_probabilities() -> None:
    evaluator = Function(lambda o: (np.exp(table(o)[0]), table(o)[1]))
    assert Cached(evaluator).policy == "probabilities"
    assert_same_search(evaluator, Cached(evaluator), ConnectFour())


def test_uct_uses_cache() -> None:
    runs = [pondertree.UCT(100, evaluator=e, seed=1).run(ConnectFour()) for e in (Dense(7), Cached(Dense(7)))]
    assert runs[0].visits.tolist() == runs[1].visits.tolist()


def test_positions_are_evaluated_once() -> None:
    inner = Fast(9)
    cached = Cached(inner)
    search = pondertree.AlphaZero(cached, 100, seed=1, solve=False)
    search.run([TicTacToe()] * 4)
    assert inner.rows == cached.misses == len(cached)
    assert cached.hits > cached.misses
    once = inner.rows
    pondertree.AlphaZero(cached, 100, seed=1, solve=False).run([TicTacToe()] * 4)
    assert inner.rows == once


def test_duplicates_in_a_batch_are_evaluated_once() -> None:
    inner = Dense(7)
    cached = Cached(inner)
    rows = np.stack([random_position(ConnectFour, plies, 1).observation() for plies in (1, 2, 1, 3, 2)])
    logits, values = cached.evaluate(rows)
    assert inner.rows == cached.misses == 3
    assert cached.hits == 2
    assert np.array_equal(logits, table(rows)[0])
    assert np.array_equal(values, table(rows)[1])


def test_cache_is_bounded_and_evicts_oldest() -> None:
    inner = Dense(7)
    cached = Cached(inner, size=2)
    one, two, three = (random_position(ConnectFour, plies, 1).observation()[None] for plies in (1, 2, 3))
    for key in (one, two, one, three):  # two is the oldest when three is added
        cached.evaluate(key)
    assert (len(cached), inner.rows) == (2, 3)
    cached.evaluate(one)
    assert inner.rows == 3
    cached.evaluate(two)
    assert inner.rows == 4


def test_batch_larger_than_cache() -> None:
    cached = Cached(Dense(7), size=2)
    rows = np.stack([random_position(ConnectFour, plies, 1).observation() for plies in range(6)])
    for _ in range(2):
        assert np.array_equal(cached.evaluate(rows)[1], table(rows)[1])
    assert len(cached) == 2


def test_new_version_clears_cache() -> None:
    inner = Fast(7)
    cached = Cached(inner)
    first = pondertree.AlphaZero(cached, 50, seed=1).run(ConnectFour())
    inner.version = 1
    second = pondertree.AlphaZero(cached, 50, seed=1).run(ConnectFour())
    assert cached.version == 1
    changed = Fast(7)
    changed.version = 1
    assert second.visits.tolist() == pondertree.AlphaZero(changed, 50, seed=1).run(ConnectFour()).visits.tolist()
    assert second.value != first.value


def test_clear_resets_entries_and_counts() -> None:
    inner = Dense(7)
    cached = Cached(inner)
    observation = ConnectFour().observation()[None]
    cached.evaluate(observation)
    cached.clear()
    assert (len(cached), cached.hits, cached.misses) == (0, 0, 0)
    cached.evaluate(observation)
    assert inner.rows == 2


def test_legal_actions_are_part_of_the_key() -> None:
    """Equal observations may have different legal actions."""
    cached = Cached(Fast(9))
    planes = np.zeros((2, 2), dtype=np.uint64)
    legal = np.array([0, 1, 4, 5, 6], dtype=np.uint16)
    packed = Packed(planes, np.zeros((2, 1), dtype=np.float32), 3, 3, np.array([0, 3, 5]), legal, 9)
    policy, _ = cached.evaluate_packed(packed)
    assert cached.misses == 2
    assert policy is not None
    assert np.array_equal(policy, table(packed.unpack(), 9)[0][0][legal])


# The cache does not know the number of players: values for three are cached until the version changes.
@pytest.mark.parametrize("name", [name for name in NONSENSE if name != "three values"])
def test_invalid_outputs_are_refused_and_not_cached(name: str) -> None:
    switch = Switch()
    assert_refused(Cached(switch), switch, *NONSENSE[name])


def test_unhashable_states_raise() -> None:
    class Unhashable(PythonGame):
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(pondertree.EvaluationError, match="unhashable"):
        pondertree.AlphaZero(Cached(StatesOnly()), 5).run(Unhashable(ConnectFour()))


def test_cache_is_thread_safe() -> None:
    cached = Cached(Fast(7), size=50)
    wanted = pondertree.AlphaZero(Fast(7), 200, seed=1).run(ConnectFour()).visits.tolist()
    found: list[list[int]] = []

    def search() -> None:
        found.append(pondertree.AlphaZero(cached, 200, seed=1).run(ConnectFour()).visits.tolist())

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4
    assert len(cached) == 50


@pytest.mark.parametrize("size", [0, -1, 1.5, "3", None])
def test_invalid_size_raises(size: Any) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="size"):
        Cached(table, size)


def test_non_evaluators_raise() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="evaluator"):
        Cached(3)
    assert repr(Cached(Uniform(), 5)) == "Cached(Uniform(), size=5)"


@pytest.mark.parametrize("kind", [Fast, States, Dense])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cached: pickle.loads(pickle.dumps(cached))])
def test_copies_start_empty_with_all_forms(kind: type[Dense], copied: Any) -> None:
    cached = Cached(kind(7), size=50)
    wanted = pondertree.AlphaZero(cached, 40, seed=1).run(ConnectFour()).visits.tolist()
    other = copied(cached)
    assert other.evaluator is not cached.evaluator
    assert (len(other), other.hits, other.misses, other.size) == (0, 0, 0, 50)
    assert cached.misses == len(cached) > 0
    assert pondertree.AlphaZero(other, 40, seed=1).run(ConnectFour()).visits.tolist() == wanted
    assert other.misses == other.evaluator.rows - cached.evaluator.rows == cached.misses
    other.evaluator.version = 1
    assert (other.version, cached.version) == (1, 0)
    for form in ("evaluate", "evaluate_states", "evaluate_packed"):
        assert hasattr(other, form) == hasattr(cached, form)
