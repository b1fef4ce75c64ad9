"""Compiled games on boards of several sizes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.errors import InvalidArgumentError
from pondertree.game import describe
from pondertree.games import Hex, find, name_of, name_of_info
from pondertree.testing import check_game


@pytest.mark.parametrize("wrong", [0, 14, -1, 10**30, "x", "", "7x7", True, 2.5, b"7", [7], float("nan")])
def test_invalid_size_raises_error_naming_the_argument(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^size must be "):
        Hex(wrong)
    with pytest.raises(InvalidArgumentError, match=r"^size must be "):
        Hex(size=wrong)


@pytest.mark.parametrize("size", range(1, 14))
def test_size_determines_actions_observation_and_name(size: int) -> None:
    state = Hex(size)
    assert state == Hex(size=size) == Hex(str(size)) == find(f"hex:{size}")()
    assert state.num_actions == size * size
    assert state.observation().shape == (3, size, size)
    assert repr(state).startswith(f"Hex({size})\n")
    assert name_of_info(describe(state)) == name_of(find(f"hex:{size}")) == ("hex" if size == 11 else f"hex:{size}")
    assert check_game(lambda: Hex(size), games=3).observation_shape == (3, size, size)


def test_states_of_different_sizes_are_unequal() -> None:
    assert len({Hex(size) for size in range(1, 14)}) == 13
    assert Hex() == Hex(11) != Hex(10)


@pytest.mark.parametrize("name", ["hex:0", "hex:14", "hex:x", "hex:", "hex:7:7", "othello:6", "hex:-7"])
def test_names_with_invalid_sizes_raise_error(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        find(name)


def test_pickle_restores_size() -> None:
    state = Hex(7).play(3).play(48)
    restored = pickle.loads(pickle.dumps(state))
    assert restored == state
    assert restored.num_actions == 49
    assert str(restored) == str(state)


def test_one_batch_of_several_sizes_raises_error() -> None:
    for search in (pondertree.UCT(10), pondertree.AlphaZero(pondertree.evaluators.Uniform(), 10)):
        with pytest.raises(InvalidArgumentError, match=r"states\[2\] is a state of hex:7, states\[0\] one of hex:5: "):
            search.run([Hex(5), Hex(5), Hex(7)])
        forest = search.forest([Hex(5), Hex(5)])
        with pytest.raises(InvalidArgumentError, match=r"another game than this forest \(hex:5\)"):
            forest.reset(1, Hex(6))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 11, 12, 13])
def test_network_search_matches_game_in_python(size: int) -> None:
    """Planes of one to three words reach the evaluator as `observation()` has them."""

    def network(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.random.default_rng(size).normal(size=(3, size, size)).astype(np.float32)
        weighted = observations * weights
        return (weighted[:, 0] - weighted[:, 1]).reshape(len(observations), -1), np.tanh(weighted.mean(axis=(1, 2, 3)))

    class Observed(PythonGame):
        def observation(self) -> np.ndarray:
            return np.asarray(self.inside.observation())

    state = random_position(lambda: Hex(size), size, seed=size)
    for options in ({}, {"in_flight": 4}):
        ours, theirs = (
            pondertree.AlphaZero(network, 60, seed=3, **options).run(one) for one in (state, Observed(state))
        )
        assert ours.visits.tolist() == theirs.visits.tolist()
