"""Device-resident searches that are stopped, interrupted or followed by others keep their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.kernels import COMPILER

import pondertree
from pondertree.evaluators import Torch
from pondertree.gpu.offload import DeviceOffload
from pondertree.gpu.pipeline import InferencePipeline
from pondertree.models import TorchModel

torch = pytest.importorskip("torch")

from tests.support.device_trees import (  # noqa: E402
    TREES,
    BoardNet,
    HashModel,
    forest_data,
    forest_of,
    grow_on_cpu,
    positions,
)

from pondertree.gpu import device_trees  # noqa: E402
from pondertree.gpu.device_trees import DeviceTrees  # noqa: E402

# Models without num_players are searched for one player, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_stopped_search_keeps_its_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_on_cpu(monkeypatch)
    monkeypatch.setattr(device_trees, "MAX_STEPS", 4)
    search = pondertree.MuZero(model=TorchModel(HashModel(6), "cpu"), num_simulations=40, seed=1)
    forest = forest_of(search, 6, two_players=False, restricted=False)
    advance, advanced = DeviceTrees.advance, []

    def counted(trees: DeviceTrees) -> bool:
        advanced.append(trees)
        if len(advanced) == 3:
            forest.stop()
        return advance(trees)

    monkeypatch.setattr(DeviceTrees, "advance", counted)
    forest.simulate()
    assert len(advanced) == 3
    assert (forest.visits().sum(axis=1) == 12).all()
    assert [result.simulations for result in forest.results()] == [12] * TREES
    monkeypatch.setattr(DeviceTrees, "advance", advance)
    again = pondertree.MuZero(model=TorchModel(HashModel(6), "cpu"), num_simulations=12, seed=1)
    assert (forest_of(again, 6, two_players=False, restricted=False).simulate().visits() == forest.visits()).all()


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_search_stopped_before_its_start_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_on_cpu(monkeypatch)
    search = pondertree.AlphaZero(Torch(BoardNet(), "cpu", batch_size=4), 40, seed=3, solve=False)
    forest, complete = search.forest(positions(12)), InferencePipeline.complete

    def stop(pipeline: InferencePipeline, group: int) -> Any:
        support = complete(pipeline, group)
        forest.stop()
        return support

    monkeypatch.setattr(InferencePipeline, "complete", stop)
    assert forest.simulate().visits().sum() == 0
    monkeypatch.setattr(InferencePipeline, "complete", complete)
    alone = pondertree.AlphaZero(Torch(BoardNet(), "cpu"), 40, seed=3, solve=False).forest(positions(12)).simulate()
    assert (forest.simulate().visits() == alone.visits()).all()
    # Roots that are evaluated already do not prevent device-resident search.
    assert forest._world._offload.rows > 0


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_interrupted_download_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_on_cpu(monkeypatch)
    search = pondertree.MuZero(model=TorchModel(HashModel(6), "cpu"), num_simulations=40, seed=1)
    forest = forest_of(search, 6, two_players=False, restricted=False).simulate()
    nodes = DeviceTrees.nodes

    def interrupted(trees: DeviceTrees) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeviceTrees, "nodes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forest.results()
    monkeypatch.setattr(DeviceTrees, "nodes", nodes)
    assert [result.root.visit_count for result in forest.simulate(5).results()] == [46] * TREES


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_interrupt_between_groups_keeps_results_and_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All trees are imported, and no other search overwrites them."""
    grow_on_cpu(monkeypatch)
    search = pondertree.AlphaZero(Torch(BoardNet(), "cpu", batch_size=4), 40, seed=3, solve=False)
    expected = forest_data(search.forest(positions(12), seeds=1).simulate())
    forest, import_nodes, calls = search.forest(positions(12), seeds=1), DeviceOffload._import, []

    def interrupted(offload: DeviceOffload, nodes: int, groups: Any) -> None:
        calls.append(nodes)
        if len(calls) == 1:
            offload._core.import_results(0, nodes, groups[0])
            raise KeyboardInterrupt
        import_nodes(offload, nodes, groups)

    monkeypatch.setattr(DeviceOffload, "_import", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forest.simulate()
    search.forest(positions(24)[12:], seeds=2).simulate()
    assert calls[:2] == [1, 41]
    assert forest_data(forest) == expected


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("what", ["game", "model"])
def test_smaller_forests_reuse_device_memory(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Rows without a tree have no effect; each number of simulations has its own arrays."""
    results = []
    for on_device in (False, True):
        with monkeypatch.context() as patch:
            groups = grow_on_cpu(patch) if on_device else []
            model, evaluator, data = TorchModel(HashModel(6), "cpu"), Torch(BoardNet(), "cpu"), []
            for trees, simulations in ((23, 40), (22, 20), (21, 40), (19, 20), (19, 40)):
                if what == "game":
                    search = pondertree.AlphaZero(evaluator, simulations, seed=3, solve=False)
                    forest = search.forest(positions(trees), seeds=1)
                else:
                    search = pondertree.MuZero(model=model, num_simulations=simulations, seed=3)
                    observations = [np.array([row], dtype=np.float32) for row in range(trees)]
                    forest = search.forest(observation=observations, seeds=1)
                data.append(forest_data(forest.simulate()))
                assert (forest._world._offload.rows > 0) == on_device
                # Releases its context.
                del forest
            assert len(groups) == (2 if on_device else 0)
            results.append(data)
    assert results[0] == results[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_slots_of_cancelled_simulations_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_on_cpu(monkeypatch)
    monkeypatch.setattr(device_trees, "MAX_STEPS", 4)
    search = pondertree.MuZero(model=TorchModel(HashModel(6), "cpu"), num_simulations=400, seed=1)
    forest, advance, most = forest_of(search, 6, two_players=False, restricted=False), DeviceTrees.advance, []

    def stop(trees: DeviceTrees) -> bool:
        forest.stop()
        return advance(trees)

    monkeypatch.setattr(DeviceTrees, "advance", stop)
    for _ in range(4):
        forest.simulate()
        for tree in range(TREES):
            forest.reset(tree, observation=np.array([tree], dtype=np.float32))
        most.append(forest._world.core.num_slots())
    assert most[-1] <= most[0] + 10 * TREES


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_pending_buffers_are_not_leased_to_another_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that are not imported yet must not be overwritten."""
    grow_on_cpu(monkeypatch)
    search = pondertree.AlphaZero(Torch(BoardNet(), "cpu"), 40, seed=3, solve=False)
    first, second = search.forest(positions(5), seeds=1), search.forest(positions(9)[4:], seeds=1)
    alone = forest_data(search.forest(positions(5), seeds=1).simulate())
    first.simulate()
    second.simulate()
    assert forest_data(first) == alone


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("searched", [0, 20])
def test_step_runs_in_the_engine(monkeypatch: pytest.MonkeyPatch, searched: int) -> None:
    """Also of new trees, which the device could search, and of trees that it has searched."""
    groups = grow_on_cpu(monkeypatch)
    rows, data = [], []
    for trace in (False, True):
        search = pondertree.MuZero(model=TorchModel(HashModel(6), "cpu"), num_simulations=20, seed=1, trace=trace)
        forest = forest_of(search, 6, two_players=False, restricted=False)
        forest.simulate(searched)
        assert bool(groups) == (searched > 0)
        rows.append([forest.step(2, of=9) for _ in range(9)])
        assert bool(groups) == (searched > 0)
        data.append(forest_data(forest))
    assert None not in rows[0]
    assert rows[0] == rows[1]
    assert data[0] == data[1]
