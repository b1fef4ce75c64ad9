"""A panic of the engine raises InternalError, and its forest raises from then on."""

from __future__ import annotations

import pytest

import pondertree
from pondertree import UCT, InternalError, _core
from pondertree.games import ConnectFour


@pytest.mark.parametrize("on_worker", [False, True], ids=["caller", "worker"])
def test_panic_in_forest_raises_internal_error_in_later_calls_too(
    on_worker: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    forest = UCT(20, threads=2).forest([ConnectFour()] * 4).simulate()
    with pytest.raises(InternalError, match="on purpose"):
        _core._panic_for_tests(forest._core, on_worker)
    with pytest.raises(InternalError, match=r"make a new one.*on purpose"):
        forest.simulate()
    with pytest.raises(InternalError):
        forest.actions()
    with pytest.raises(InternalError):
        len(forest._core)
    del forest
    assert "panicked" in capfd.readouterr().err
    # Other forests and the thread pool are unaffected.
    assert len(UCT(20, threads=2).forest([ConnectFour()] * 4).simulate().actions()) == 4


@pytest.mark.parametrize("on_worker", [False, True], ids=["caller", "worker"])
def test_panic_outside_forest_raises_internal_error(on_worker: bool) -> None:
    with pytest.raises(InternalError, match="on purpose"):
        _core._panic_for_tests(None, on_worker)


def test_panic_in_snapshot_raises_internal_error() -> None:
    """An argument that the package never passes."""
    view = UCT(20).forest([ConnectFour()]).simulate()._core.view(0)
    with pytest.raises(InternalError, match="out of bounds"):
        view.principal_variation(1_000_000)


def test_internal_error_is_pondertree_error() -> None:
    assert issubclass(InternalError, pondertree.PondertreeError)
    assert issubclass(InternalError, RuntimeError)
