"""Trees that grow beside their model are the engine's own, edge for edge. The kernel runs here as it is, compiled for a
processor; with a GPU, there too.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderosa
from ponderosa.models import TorchModel

torch = pytest.importorskip("torch")

from ponderosa.models import device_trees, torch_lane  # noqa: E402 (after the package they need)
from ponderosa.models.device_trees import SOURCE, DeviceTrees, Trees, options_of  # noqa: E402
from ponderosa.models.nvrtc import NotCompiled, compile_source  # noqa: E402

TREES = 5
COMPILER = shutil.which("cc")


class Dice(torch.nn.Module):  # type: ignore[misc]
    """A model that answers by chance, always the same to the same; few different numbers, so that many are level."""

    def __init__(self, actions: int, *, discounts: bool = False, ruled_out: bool = False, even: bool = False) -> None:
        super().__init__()
        self.actions, self.discounts, self.ruled_out, self.even = actions, discounts, ruled_out, even

    def draw(self, hidden: Any, salt: int, count: int) -> Any:
        """Whole numbers from 0 to 8, [rows, count]."""
        mixed = (hidden[:, None] * 48271 + torch.arange(count, device=hidden.device) * 40692 + salt * 9973) % 2147483647
        return (mixed * 16807 % 2147483647) // 127 % 9

    def see(self, hidden: Any) -> tuple[Any, Any]:
        """Logits and values."""
        logits = self.draw(hidden, 1, self.actions).float() * (0.0 if self.even else 0.5)
        if self.ruled_out:
            keep = self.draw(hidden, 2, self.actions) > 3
            keep[:, 0] = True
            logits = logits.masked_fill(~keep, -torch.inf)
        return logits, (self.draw(hidden, 3, 1)[:, 0].float() - 4.0) / 4.0

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = observations.reshape(len(observations), -1)[:, 0].long() + 7
        return (hidden, *self.see(hidden))

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        after = (hidden * 31 + actions + 1) % 1000003
        reward = (self.draw(after, 4, 1)[:, 0].float() - 4.0) / 8.0
        discount = torch.where(self.draw(after, 5, 1)[:, 0] > 3, -0.75, 0.5)
        return (after, reward, *self.see(after), *([discount] if self.discounts else []))


@functools.cache
def for_a_processor(options: tuple[str, ...]) -> Any:
    """The kernel, compiled for this machine."""
    folder = Path(tempfile.mkdtemp())
    built = folder / "step.so"
    flags = ("-x", "c", "-std=c11", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Werror", "-Wall")
    subprocess.run(
        [str(COMPILER), *flags, "-Wno-unused-function", *options, str(SOURCE), "-o", str(built), "-lm"], check=True
    )
    return ctypes.CDLL(str(built))


def beside(monkeypatch: pytest.MonkeyPatch) -> list[DeviceTrees]:
    """Lets trees grow beside a model on a CPU; those that did."""
    opened: list[DeviceTrees] = []

    def open_trees(
        studio: Any, trees: int, simulations: int, actions: int, rule: Any, players: int, discount: float
    ) -> Any:
        library = for_a_processor(options_of(rule, 1, actions))

        def launch(struct: Trees, asks: bool) -> None:
            library.step(ctypes.byref(struct), ctypes.c_int(int(asks)))

        shape = (trees, simulations, actions, rule, players, discount)
        opened.append(
            DeviceTrees(*shape, studio.pool, torch.device("cpu"), studio._step, studio._prepare, launch=launch)
        )
        return opened[-1]

    monkeypatch.setattr(torch_lane.TorchStudio, "open_trees", open_trees)
    return opened


def planted(search: Any, actions: int, *, two: bool, some: bool) -> Any:
    """A forest of observations, with masks and turns if there are `some`."""
    observations = [np.array([row], dtype=np.float32) for row in range(TREES)]
    options: dict[str, Any] = {}
    if some:
        options["legal_actions"] = [
            [action for action in range(actions) if (action * 7 + row) % 3 or action == row % actions]
            for row in range(TREES)
        ]
    if two:
        options["to_play"] = [row % 2 for row in range(TREES)]
    return search.forest(observation=observations, **options)


def dumped(node: Any) -> Any:
    """A tree as nested tuples."""
    own = (node.visit_count, node.total_value, node.prior, node.clean_prior, node.to_play)
    if node.visit_count == 0:
        return own
    seen = (node.raw_value, node.reward)
    return (*own, *seen, [(action, dumped(child)) for action, child in node.children.items()])


def told(forest: Any) -> list[Any]:
    """All that can be seen of a forest: first what needs the roots alone."""
    shown = [forest.actions().tolist(), forest.visits().tolist(), forest.values().tolist(), forest.policies().tolist()]
    return [*shown, [dumped(result.root) for result in forest.results()]]


SEARCHES: dict[str, Any] = {
    "node": (ponderosa.MuZero, {}),
    "tree": (ponderosa.MuZero, {"normalize": "tree"}),
    "as they are": (ponderosa.MuZero, {"normalize": None}),
    "gumbel": (ponderosa.Gumbel, {}),
    "own value": (ponderosa.Gumbel, {"use_mixed_value": False, "rescale_values": False, "value_scale": 1.0}),
    "few": (ponderosa.Gumbel, {"max_num_considered_actions": 3}),
}
MODELS: dict[str, dict[str, Any]] = {
    "dice": {},
    "discounts": {"discounts": True},
    "ruled out": {"ruled_out": True},
    "even": {"even": True},
}


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("actions", [1, 2, 7, 40])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_they_are_the_engine_s_own(monkeypatch: pytest.MonkeyPatch, name: str, model: str, actions: int) -> None:
    kind, options = SEARCHES[name]
    two = actions % 2 == 0 or MODELS[model].get("discounts", False)
    found = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            opened = beside(patch) if grows else []
            search = kind(
                model=TorchModel(Dice(actions, **MODELS[model]), "cpu"),
                num_simulations=60,
                num_players=2 if two else 1,
                discount=0.9,
                seed=3,
                **options,
            )
            forest = planted(search, actions, two=two, some=actions > 2)
            noisy = None if kind is ponderosa.Gumbel else True
            first = told(forest.simulate(add_noise=noisy))
            assert len(opened) == int(grows)
            assert not grows or opened[0].searched == 60
            # What came home goes on like any other.
            forest.simulate(10)
            for tree, action in enumerate(forest.actions()):
                forest.advance(tree, int(action), observation=np.array([tree + 50], dtype=np.float32))
            found.append([first, told(forest.simulate(25))])
    assert found[0] == found[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("wrong", ["nan", "inf", "reward", "value", "raises", "shape"])
def test_what_no_model_may_say_is_told_in_words(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    class Broken(Dice):
        def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            after, reward, logits, value = super().recurrent_inference(hidden, actions)
            if wrong == "raises":
                raise ZeroDivisionError("one too many")
            if wrong == "shape":
                return after, reward, logits[:, 1:], value
            spoiled = {"reward": reward, "value": value}.get(wrong, logits)
            spoiled[0] = {"nan": torch.nan, "inf": torch.inf}.get(wrong, torch.nan)
            return after, reward, logits, value

    said = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            if grows:
                beside(patch)
            search = ponderosa.MuZero(model=TorchModel(Broken(4), "cpu"), num_simulations=8, seed=1)
            forest = planted(search, 4, two=False, some=False)
            with pytest.raises(ponderosa.EvaluationError) as caught:
                forest.simulate()
            said.append(str(caught.value))
            # Nothing was lost: the same trees can be searched again.
            assert forest.visits().sum() == 0
    assert said[0] == said[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_search_that_is_stopped_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = beside(monkeypatch)
    monkeypatch.setattr(device_trees, "LOOK_EVERY", 4)
    search = ponderosa.MuZero(model=TorchModel(Dice(6), "cpu"), num_simulations=40, seed=1)
    forest = planted(search, 6, two=False, some=False)
    asked = device_trees.DeviceTrees._ask

    def ask(trees: DeviceTrees) -> None:
        asked(trees)
        if trees.searched == 10:
            forest.stop()

    monkeypatch.setattr(device_trees.DeviceTrees, "_ask", ask)
    forest.simulate()
    assert opened[0].searched == 12
    assert (forest.visits().sum(axis=1) == 12).all()
    assert [result.simulations for result in forest.results()] == [12] * TREES
    monkeypatch.setattr(device_trees.DeviceTrees, "_ask", asked)
    same = planted(
        search.__class__(model=TorchModel(Dice(6), "cpu"), num_simulations=12, seed=1), 6, two=False, some=False
    )
    assert (same.simulate().visits() == forest.visits()).all()


def test_it_compiles_for_a_gpu() -> None:
    """No GPU is needed for that, only the compiler that comes with PyTorch for CUDA."""
    for gumbel in (0, 1):
        try:
            options = ("--gpu-architecture=sm_80", "--fmad=false", "-DGROUPS=2", f"-DGUMBEL={gumbel}")
            assert compile_source(SOURCE, options)
        except NotCompiled as error:
            if "not found" in str(error) or "without CUDA" in str(error):
                pytest.skip(str(error))
            raise


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch, name: str, model: str) -> None:
    kind, options = SEARCHES[name]
    monkeypatch.setattr(device_trees, "FEWEST_TREES", 1)
    for actions in (1, 2, 7, 40, 200):
        found = []
        for device in ("cpu", "cuda"):
            two = actions % 2 == 0 or MODELS[model].get("discounts", False)
            search = kind(
                model=TorchModel(Dice(actions, **MODELS[model]), device),
                num_simulations=60,
                num_players=2 if two else 1,
                discount=0.9,
                seed=3,
                **options,
            )
            forest = planted(search, actions, two=two, some=actions > 2)
            found.append(told(forest.simulate(add_noise=None if kind is ponderosa.Gumbel else True)))
            if device == "cuda":
                (grown,) = forest._world._studio._trees.values()
                assert grown.searched == 60
        assert found[0] == found[1], actions
