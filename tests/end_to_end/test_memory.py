"""Memory of trees."""

from __future__ import annotations

from typing import Any

import pytest

import pondertree
from pondertree.games import Chess, ConnectFour


@pytest.mark.parametrize(("state", "most"), [(Chess(), 24.0), (ConnectFour(), 28.0)], ids=["chess", "connect4"])
@pytest.mark.parametrize("simulations", [10_000, 100_000])
def test_memory_per_edge_is_bounded(state: Any, most: float, simulations: int) -> None:
    """Larger trees are built without playouts, to save time."""
    view = pondertree.UCT(simulations, seed=1, max_depth=0 if simulations > 10_000 else None).run(state)._view
    assert view.num_edges > simulations
    assert view.bytes / view.num_edges <= most


def test_memory_per_simulation_is_bounded() -> None:
    result = pondertree.UCT(1_000_000, seed=1).run(ConnectFour())
    assert result.simulations == 1_000_000
    assert result.memory / result.simulations <= 81


def test_snapshot_does_not_copy_tree() -> None:
    """Results share the memory of an idle tree, which is copied only if the search continues."""
    tree = pondertree.UCT(seed=1).tree(ConnectFour()).simulate(1000)
    a, b = tree.result(), tree.result()
    assert a.memory == b.memory
    tree.simulate(5000)
    assert tree.result().memory > a.memory
