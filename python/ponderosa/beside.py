"""Searches that run where their network computes, as the worlds begin them; the trees come home when somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from ponderosa import _core
from ponderosa.evaluators.lane import NotForLanes
from ponderosa.evaluators.protocol import call


class Trees(Protocol):
    """All trees of a forest, searched where their network computes."""

    simulations: int

    @property
    def rows(self) -> int:
        """How many positions were evaluated."""
        ...

    def search(self, roots: dict[str, Any], stopped: Callable[[], bool]) -> bool:
        """Searches from the roots that the engine gives; False if something was answered that may not be."""
        ...

    def roots(self) -> dict[str, NDArray[Any]]:
        """What the engine is told of the roots."""
        ...

    def nodes(self) -> dict[str, NDArray[Any]]:
        """What it is told of all nodes."""
        ...


class Beside:
    """The trees of one forest that are elsewhere, if any are."""

    def __init__(self, core: _core.Forest) -> None:
        self._core = core
        self._trees: Trees | None = None
        self.rows = 0
        """How many positions the last search elsewhere has evaluated."""

    def search(self, trees: Trees, begin: Callable[[], None] | None = None) -> bool:
        """Searches new trees elsewhere, after `begin`, if it can be; nothing has changed if it cannot."""
        roots = None if self._core.stopped else self._core.leave()
        if roots is None:
            return False
        found = False
        try:
            if begin is not None:
                begin()
            found = call(trees.search, roots, lambda: self._core.stopped)
        except NotForLanes:
            pass
        finally:
            if not found:
                self._core.stay(roots["slots"])
        if found:
            # Most who search many trees want to know of the roots alone.
            self._trees, self.rows = trees, trees.rows
            self._core.come_back(1, trees.roots())
        return found

    def settle(self) -> None:
        """Brings all nodes home."""
        if self._trees is not None:
            self._core.come_back(self._trees.simulations + 1, self._trees.nodes())
            # Not before: whoever interrupts this can ask again.
            self._trees = None
