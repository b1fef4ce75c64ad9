"""Compiled games on boards of several sizes."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.cli.position import find_game
from pondertree.errors import InvalidArgumentError
from pondertree.game import describe
from pondertree.games import Chess, Hex, by_name, find, name_of, name_of_info
from pondertree.testing import check_game


@pytest.mark.parametrize(
    "wrong",
    [0, 14, -1, 10**30, 10**5000, "x", "", "7x7", " 7", "07", "+7", "\u0667", "7" * 5000, True, 2.5, 7.0, b"7", [7]],
    ids=lambda wrong: type(wrong).__name__,
)
def test_invalid_size_raises_error_naming_the_argument(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^size must be a whole number from 1 to 13, not ") as error:
        Hex(wrong)
    assert len(str(error.value)) < 100
    with pytest.raises(InvalidArgumentError, match=r"^size must be "):
        Hex(size=wrong)


@pytest.mark.parametrize("size", range(1, 14))
def test_size_determines_actions_observation_and_name(size: int) -> None:
    state = Hex(size)
    assert state == Hex(size=size) == Hex(str(size)) == find(f"hex:{size}")()
    assert state.num_actions == size * size == state.size**2
    assert state.observation().shape == (3, size, size)
    assert repr(state).startswith(f"Hex({size})\n")
    assert name_of_info(describe(state)) == name_of(find(f"hex:{size}")) == ("hex" if size == 11 else f"hex:{size}")
    assert check_game(lambda: Hex(size), games=3).observation_shape == (3, size, size)


def test_states_of_different_sizes_are_unequal() -> None:
    assert len({Hex(size) for size in range(1, 14)}) == 13
    assert Hex() == Hex(11) != Hex(10)


@pytest.mark.parametrize(
    "size", ["0", "14", "-1", "x", "5.0", "7x7", "", "7:7", "07", "+7", " 7", "\u0667", "\u00b2", "7" * 5000]
)
def test_names_with_invalid_sizes_raise_error(size: str) -> None:
    for named in (find, find_game, by_name):
        with pytest.raises(InvalidArgumentError, match=r"^there is no game .*hex:11.*: size must .* 1 to 13") as error:
            named(f"hex:{size}")
        assert len(str(error.value)) < 400
    for name in ("breakthrough", "chess", "connect4"):
        # python-chess may be installed; x is no attribute of it.
        with pytest.raises(InvalidArgumentError, match=r"has one size|has no attribute 'x'"):
            find(f"{name}:{size}")


def test_module_may_have_the_name_of_a_compiled_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hex.py").write_text("class Board:\n    class Small: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert find("hex:Board.Small").__qualname__ == "Board.Small"
        assert find("hex:7")() == Hex(7)
    finally:
        sys.modules.pop("hex", None)


def test_help_documents_the_size() -> None:
    assert "from 1 to 13" in str(Hex.__doc__)
    assert "FEN" in str(Chess.__doc__)


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
