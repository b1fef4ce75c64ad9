"""Device-resident trees are the engine's, edge for edge. The kernel runs compiled as C, and on a GPU."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.support.kernels import COMPILER
from tests.support.precision import need_cpu_precision

import pondertree
from pondertree.config import LogPuct, Puct
from pondertree.evaluators import Torch
from pondertree.games import Backgammon, Pig, TwentyFortyEight
from pondertree.models import TorchModel

torch = pytest.importorskip("torch")

from tests.support.device_trees import (  # noqa: E402
    GAMES,
    MODELS,
    SEARCHES,
    TREES,
    BoardNet,
    HashModel,
    forest_data,
    forest_of,
    grow_on_cpu,
    positions,
)

from pondertree.gpu import device_trees, tree_shape  # noqa: E402
from pondertree.gpu.device_trees import DeviceTrees  # noqa: E402
from pondertree.gpu.kernels import launch  # noqa: E402
from pondertree.gpu.kernels.launch import SOURCE  # noqa: E402
from pondertree.gpu.kernels.nvrtc import CompilationError, compile_source  # noqa: E402

# Models without num_players are searched for one player, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("actions", [1, 2, 7, 40])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_latent_device_trees_match_engine_for_every_rule(
    monkeypatch: pytest.MonkeyPatch, name: str, model: str, actions: int
) -> None:
    preset, options = SEARCHES[name]
    two_players = actions % 2 == 0 or MODELS[model].get("discounts", False)
    results = []
    for on_device in (False, True):
        with monkeypatch.context() as patch:
            groups = grow_on_cpu(patch) if on_device else []
            search = preset(
                model=TorchModel(HashModel(actions, **MODELS[model]), "cpu"),
                num_simulations=60,
                num_players=2 if two_players else 1,
                discount=0.9,
                seed=3,
                **options,
            )
            forest = forest_of(search, actions, two_players=two_players, restricted=actions > 2)
            add_noise = None if preset is pondertree.Gumbel else True
            first = forest_data(forest.simulate(add_noise=add_noise))
            assert len(groups) == int(on_device)
            assert not on_device or groups[0].rows == 60 * TREES
            # Imported trees can be searched further.
            forest.simulate(10)
            for tree, action in enumerate(forest.actions()):
                forest.advance(tree, int(action), observation=np.array([tree + 50], dtype=np.float32))
            results.append([first, forest_data(forest.simulate(25))])
    assert results[0] == results[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("actions", [3, 4, 6])
@pytest.mark.parametrize("wrong", ["nan", "inf", "reward", "value", "raises", "shape", "axis"])
def test_invalid_model_output_raises_the_same_error_as_batched(
    monkeypatch: pytest.MonkeyPatch, wrong: str, actions: int
) -> None:
    class Broken(HashModel):
        def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            after, reward, logits, value = super().recurrent_inference(hidden, actions)
            if wrong == "raises":
                raise ZeroDivisionError("one too many")
            if wrong == "shape":
                return after, reward, logits[:, 1:], value
            if wrong == "axis":
                return after, reward, logits.reshape(len(logits), self.actions, 1), value
            invalid = {"reward": reward, "value": value}.get(wrong, logits)
            invalid[:] = {"nan": torch.nan, "inf": torch.inf}.get(wrong, torch.nan)
            return after, reward, logits, value

    messages = []
    for on_device in (False, True):
        with monkeypatch.context() as patch:
            if on_device:
                grow_on_cpu(patch)
            search = pondertree.MuZero(model=TorchModel(Broken(actions), "cpu"), num_simulations=80, seed=1)
            forest = forest_of(search, actions, two_players=False, restricted=False)
            with pytest.raises(pondertree.EvaluationError) as caught:
                forest.simulate()
            messages.append(str(caught.value))
            # The trees are unchanged.
            assert forest.visits().sum() == 0
    assert messages[0] == messages[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize(("batch", "dtype"), [(None, "float32"), (16, "bfloat16"), (None, "float16")])
@pytest.mark.parametrize("name", GAMES)
def test_game_device_trees_match_engine_for_every_rule(
    monkeypatch: pytest.MonkeyPatch, name: str, batch: int | None, dtype: str
) -> None:
    need_cpu_precision(dtype)
    preset, options = GAMES[name]
    results = []
    for on_device in (False, True):
        with monkeypatch.context() as patch:
            groups, batch_sizes = grow_on_cpu(patch) if on_device else [], []
            evaluator = Torch(BoardNet(batch_sizes=batch_sizes).to(getattr(torch, dtype)), "cpu", batch_size=batch)
            search = preset(evaluator, num_simulations=90, seed=3, solve=False, **options)
            forest = search.forest(positions(40))
            add_noise = None if preset is pondertree.Gumbel else True
            first = forest_data(forest.simulate(add_noise=add_noise))
            assert bool(groups) == on_device
            assert sum(trees.trees for trees in groups) == (40 if on_device else 0)
            # Terminal leaves need no network, and finished trees have no rows.
            requests = sum(trees.rows for trees in groups)
            assert not on_device or (0 < requests < 40 * 90 and sum(batch_sizes) < 0.85 * 40 * 90)
            forest.simulate(10)
            for tree, action in enumerate(forest.actions()):
                if not forest.state(tree).play(int(action)).is_terminal:
                    forest.advance(tree, int(action))
            results.append([first, forest_data(forest.simulate(25))])
    assert results[0] == results[1]


@pytest.mark.parametrize("game", [Pig, Backgammon, TwentyFortyEight])
@pytest.mark.parametrize("preset", [pondertree.AlphaZero, pondertree.Gumbel])
def test_games_with_chance_are_searched_by_the_engine(monkeypatch: pytest.MonkeyPatch, preset: Any, game: Any) -> None:
    results = []
    for on_device in (False, True):
        with monkeypatch.context() as patch:
            groups = grow_on_cpu(patch) if on_device else []
            evaluator = Torch(LinearNet(game()), "cpu")
            options = {"normalize": "tree"} if game is TwentyFortyEight and preset is pondertree.AlphaZero else {}
            search = preset(evaluator, num_simulations=40, seed=3, solve=False, **options)
            forest = search.forest([game() for _ in range(40)])
            first = forest_data(forest.simulate())
            assert groups == []
            for tree, action in enumerate(forest.actions()):
                forest.advance(tree, int(action))
                while forest.waits_for_outcome(tree):
                    forest.advance(tree, forest.state(tree).chance_outcomes()[0][0])
            results.append([first, forest_data(forest.simulate(25))])
    assert results[0] == results[1]


class LinearNet(torch.nn.Module):
    """A network of one layer."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(math.prod(state.observation().shape), state.num_actions + 1)

    def forward(self, positions: Any) -> tuple[Any, Any]:
        """Returns logits and values."""
        both = self.layer(positions.flatten(1))
        return both[:, 1:], torch.tanh(both[:, 0])


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["puct", "gumbel"])
def test_terminal_descents_per_step_are_limited(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The limit does not change the trees."""
    grow_on_cpu(monkeypatch)
    monkeypatch.setattr(device_trees, "MAX_STEPS", 1)
    monkeypatch.setattr(device_trees, "MIN_STEPS", 1)
    preset, advance, results = GAMES[name][0], DeviceTrees.advance, []
    for limit in (1, 3, 90):
        monkeypatch.setattr(launch, "MAX_TERMINAL_DESCENTS_PER_STEP", limit)
        done = [0]

        def go(trees: DeviceTrees, done: list[int] = done) -> bool:
            more = advance(trees)
            done.append(int(trees._host["simulations"][: trees.trees].max()))
            return more

        monkeypatch.setattr(DeviceTrees, "advance", go)
        search = preset(Torch(BoardNet(), "cpu"), 90, seed=3, solve=False)
        results.append(forest_data(search.forest(positions(40)).simulate()))
        most = max(after - before for before, after in itertools.pairwise(done))
        # One request is completed in the same step as the terminal descents.
        assert most <= limit + 1
        assert limit < 90 or most > 10
    assert results[0] == results[1] == results[2]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("invalid", ["value", "logits"])
def test_invalid_network_output_raises_the_same_error_as_batched(
    monkeypatch: pytest.MonkeyPatch, invalid: str, batch: int | None
) -> None:
    messages = []
    for on_device in (False, True):
        with monkeypatch.context() as patch:
            if on_device:
                grow_on_cpu(patch)
            search = pondertree.AlphaZero(Torch(BoardNet(invalid), "cpu", batch_size=batch), 90, seed=3, solve=False)
            forest = search.forest(positions(3))
            with pytest.raises(pondertree.EvaluationError) as caught:
                forest.simulate()
            assert forest.visits().sum() == 0 or not on_device
            messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("is_game", [True, False])
@pytest.mark.parametrize("simulations", [1, 2, 7, 8, 9, 50, 64, 100, 400, 1000])
def test_graph_lengths_add_up_to_simulations(simulations: int, is_game: bool) -> None:
    shape = tree_shape.TreeShape(
        8, simulations, 7, Puct(1.0) if is_game else LogPuct(19652.0, 1.25, "node"), is_game=is_game
    )
    lengths = device_trees.graph_lengths(shape)
    assert sum(lengths) == simulations
    assert max(lengths) <= device_trees.MAX_STEPS
    assert is_game or len(lengths) == -(-simulations // device_trees.MAX_STEPS)


def test_step_compiles_for_gpu() -> None:
    """Needs no GPU, only the NVRTC that PyTorch ships."""
    for gumbel, game in ((0, 0), (1, 0), (0, 1), (1, 1)):
        sizes = ("-DPLACES=40", "-DGROUPS=2", "-DMAX_TERMINAL_DESCENTS_PER_STEP=2", "-DWARPS=8")
        defined = (*sizes, f"-DGUMBEL={gumbel}", f"-DCONNECT_FOUR={game}")
        try:
            assert compile_source(SOURCE, ("--gpu-architecture=sm_80", "--fmad=false", *defined))
        except CompilationError as error:
            if "not found" in str(error) or "without CUDA" in str(error):
                pytest.skip(str(error))
            raise


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_latent_device_trees_on_gpu_match_engine(monkeypatch: pytest.MonkeyPatch, name: str, model: str) -> None:
    preset, options = SEARCHES[name]
    monkeypatch.setattr(tree_shape, "MIN_TREES", 1)
    for actions in (1, 2, 7, 40, 200):
        results = []
        for device in ("cpu", "cuda"):
            two_players = actions % 2 == 0 or MODELS[model].get("discounts", False)
            search = preset(
                model=TorchModel(HashModel(actions, **MODELS[model]), device),
                num_simulations=60,
                num_players=2 if two_players else 1,
                discount=0.9,
                seed=3,
                **options,
            )
            forest = forest_of(search, actions, two_players=two_players, restricted=actions > 2)
            results.append(forest_data(forest.simulate(add_noise=None if preset is pondertree.Gumbel else True)))
            if device == "cuda":
                assert forest._world._offload.rows == 60 * TREES
        assert results[0] == results[1], actions


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_game_device_trees_on_gpu_match_engine(name: str, dtype: str) -> None:
    preset, options = GAMES[name]
    results = []
    for device in ("cpu", "cuda"):
        evaluator = Torch(BoardNet().to(getattr(torch, dtype)), device)
        search = preset(evaluator, num_simulations=90, seed=3, solve=False, **options)
        forest = search.forest(positions(500))
        results.append(forest_data(forest.simulate(add_noise=None if preset is pondertree.Gumbel else True)))
        assert (forest._world._offload.rows > 0) == (device == "cuda")
    assert results[0] == results[1]
