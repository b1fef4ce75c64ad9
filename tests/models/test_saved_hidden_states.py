"""Saved trees of models of PyTorch and JAX: hidden states come back in their library, dtype and structure."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support.kernels import COMPILER
from tests.support.saved_trees import everything, run_steps
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree.evaluators import Torch
from pondertree.games import ConnectFour
from pondertree.models import JaxModel, TorchModel

STEPS = [("noise", 20), ("simulate", 15), ("advance", 0), ("simulate", 10)]
REST = [("simulate", 20), ("advance", 1), ("noise", 15)]


def check_model(make: Any, observation: Any, folder: Path) -> Any:
    """Saves a tree in the middle, and returns the loaded one at the end."""

    def search(seed: int) -> Any:
        return pondertree.MuZero(make(), seed=seed, num_players=1, in_flight=2)

    tree, other = (search(4).tree(observation=observation) for _ in range(2))
    run_steps(tree, STEPS, True)
    run_steps(other, STEPS, True)
    tree.save(folder / "x")
    loaded = pondertree.load_tree(folder / "x", search(9))
    for again in (loaded, copy.copy(tree)):
        assert everything(again) == everything(tree)
    for step in REST:
        run_steps(loaded, [step], True)
        run_steps(other, [step], True)
        assert everything(loaded) == everything(other)
    return loaded


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_torch_hidden_states_keep_dtype(device: str, dtype: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no accelerator")
    from tests.support.torch_models import OBSERVATIONS, Net, net

    class Narrow(Net):
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            hidden, *rest = super().initial_inference(observations)
            return hidden.to(getattr(torch, dtype)), *rest

        def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            hidden, *rest = super().recurrent_inference(hidden.float(), actions)
            return hidden.to(getattr(torch, dtype)), *rest

    tree = check_model(lambda: TorchModel(net(Narrow), device=device), OBSERVATIONS[0], tmp_path)
    assert tree._forest._world._pool.gather(np.zeros(1, np.int64)).dtype == getattr(torch, dtype)


class Pair(NamedTuple):
    """Hidden states of a class that files do not name."""

    state: Any
    count: Any


def pairs() -> Any:
    class Model:
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            hidden = Pair(np.asarray(observations, np.float32), np.zeros(len(observations), np.int64))
            return hidden, *self.predict(hidden)

        def recurrent_inference(self, hidden: Pair, actions: Any) -> tuple[Any, ...]:
            after = Pair(np.cos(hidden.state * 3 + actions[:, None]), hidden.count + 1)
            return after, np.sin(after.state[:, 0]), *self.predict(after)

        def predict(self, hidden: Pair) -> tuple[Any, Any]:
            return np.repeat(hidden.state[:, :1], 3, axis=1) * np.arange(3), hidden.state.sum(axis=1)

    return Model()


def test_structure_of_another_class_comes_from_the_model(tmp_path: Path) -> None:
    search = pondertree.MuZero(pairs(), seed=1, num_players=1)
    tree = search.tree(observation=np.array([0.3, 0.7])).simulate(20)
    tree.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x", search)
    assert type(again._forest._world._pool.gather(np.zeros(1, np.int64))) is Pair
    assert everything(again.simulate(20)) == everything(tree.simulate(20))
    tree.advance(int(tree.result().action))
    tree.save(tmp_path / "x")
    with pytest.raises(pondertree.InvalidArgumentError, match="no observation"):
        pondertree.load_tree(tmp_path / "x", search)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_jax_hidden_states_keep_dtype(dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    from tests.models.test_jax_model import OBSERVATIONS, initial, params, recurrent

    def narrow(function: Any) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            (state, more), *rest = function(*arguments)
            return (state.astype(dtype), more), *rest

        return call

    tree = check_model(lambda: JaxModel(narrow(initial), narrow(recurrent), params()), OBSERVATIONS[0], tmp_path)
    state, more = tree._forest._world._pool.gather(np.zeros(1, np.int64))
    assert (str(state.dtype), str(more["count"].dtype)) == (dtype, "int32")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("game", [False, True])
def test_device_resident_tree_is_saved_whole(game: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.support.device_trees import BoardNet, HashModel, grow_on_cpu

    search: Any
    groups = grow_on_cpu(monkeypatch)
    if game:
        search = pondertree.AlphaZero(Torch(BoardNet(), device="cpu"), 60, seed=3, solve=False)
        trees = [search.tree(ConnectFour(), seeds=8) for _ in range(2)]
    else:
        search = pondertree.MuZero(TorchModel(HashModel(7), "cpu"), 60, seed=3, num_players=1)
        trees = [search.tree(observation=np.array([4.0], np.float32), seeds=8) for _ in range(2)]
    tree, other = [each.simulate() for each in trees]
    assert groups
    tree.save(tmp_path / "x")
    again = pondertree.load_tree(tmp_path / "x", search)
    for _ in range(2):
        assert fingerprint(again.result()) == fingerprint(other.result())
        for each in (again, other):
            each.simulate(20).advance(int(each.result().action))
