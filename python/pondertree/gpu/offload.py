"""Searches that run where their network computes, as the worlds begin them; the trees come home when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree.evaluators.protocol import call
from pondertree.gpu.protocol import NotForLanes


class Trees(Protocol):
    """All trees of a forest, searched where their network computes, in groups that take turns."""

    simulations: int
    sizes: Sequence[int]
    """How many trees each group has."""

    @property
    def rows(self) -> int:
        """How many positions were evaluated."""
        ...

    def search(self, leave: Callable[[int], dict[str, Any]], stopped: Callable[[], bool]) -> bool:
        """Searches from the roots that the engine gives, one group after another, while those before are under way.

        False if something was answered that may not be.
        """
        ...

    def roots(self) -> list[dict[str, NDArray[Any]]]:
        """What the engine is told of the roots of each group."""
        ...

    def nodes(self) -> list[dict[str, NDArray[Any]]]:
        """What it is told of all nodes."""
        ...


class Beside:
    """The trees of one forest that are elsewhere, if any are."""

    def __init__(self, core: EngineForest) -> None:
        self._core = core
        self._trees: Trees | None = None
        self.rows = 0
        """How many positions the last search elsewhere has evaluated."""

    def search(
        self,
        trees: Trees,
        answer_roots: Callable[[int], None] | None = None,
        make_room: Callable[[], None] | None = None,
    ) -> bool:
        """Searches new trees elsewhere, if it can be; otherwise no tree has changed, but that its root was evaluated.

        Before a group leaves, the engine must know what its roots are worth; afterwards, there must be room for it.
        """
        left: list[tuple[int, NDArray[Any]]] = []

        def leave(group: int) -> dict[str, Any]:
            if answer_roots is not None:
                answer_roots(group)
            first = sum(trees.sizes[:group])
            roots = self._core.export_roots(first, first + trees.sizes[group])
            if roots is None:
                raise NotForLanes("only new trees can leave")
            left.append((trees.sizes[group], roots["slots"]))
            if make_room is not None:
                make_room()
            return roots

        found = False
        try:
            found = not self._core.stopped and call(trees.search, leave, lambda: self._core.stopped)
        except NotForLanes:
            pass
        finally:
            if not found:
                for count, slots in left:
                    self._core.cancel_export(count, slots)
        if found:
            # Most who search many trees want to know of the roots alone.
            self._trees, self.rows = trees, trees.rows
            try:
                self._tell(trees, 1, trees.roots())
            except BaseException:
                # Some know what was found and others do not; what all nodes are can be told again.
                self.settle()
                raise
        return found

    @property
    def are_away(self) -> bool:
        """Whether there are trees elsewhere that are not home yet."""
        return self._trees is not None

    def settle(self) -> None:
        """Brings all nodes home."""
        if self._trees is not None:
            self._tell(self._trees, self._trees.simulations + 1, self._trees.nodes())
            # Not before: whoever interrupts this can ask again.
            self._trees = None

    def _tell(self, trees: Trees, nodes: int, groups: list[dict[str, NDArray[Any]]]) -> None:
        first = 0
        for size, columns in zip(trees.sizes, groups, strict=True):
            self._core.import_results(first, nodes, columns)
            first += size
