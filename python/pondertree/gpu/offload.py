"""Device-resident tree search: whole searches run on the network's device; nodes are copied back on first access."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from pondertree._core import Forest as EngineForest
from pondertree.config import SearchConfig
from pondertree.errors import call_evaluator
from pondertree.gpu.protocol import GameContext, InferenceBackend, Job, LatentContext, Mode, Support, query
from pondertree.gpu.tree_shape import TreeShape, runs_on_device

if TYPE_CHECKING:
    from pondertree.gpu.device_trees import DeviceTrees


class DeviceOffload:
    """The trees of one forest on the device, and their results there until `synchronize`."""

    def __init__(self, core: EngineForest) -> None:
        self._core = core
        self._groups: Sequence[DeviceTrees] = ()
        """Searched groups whose nodes are not imported yet."""
        self._shapes: Sequence[TreeShape] = ()
        self.rows = 0
        """Positions that the last search on the device evaluated."""

    def acquire_trees(
        self, config: SearchConfig, backend: InferenceBackend, context: GameContext | LatentContext, job: Job
    ) -> Sequence[DeviceTrees] | None:
        """Returns the groups of trees of the job's shapes; None if the search cannot run on the device."""
        if not runs_on_device(config) or not self._core.all_new() or not query(backend, job, Mode.DEVICE).ok:
            return None
        return context.trees(job.shapes)

    def run(
        self,
        groups: Sequence[DeviceTrees],
        shapes: Sequence[TreeShape],
        *,
        roots_ready: Callable[[int], Support] | None = None,
        reserve: Callable[[], None] | None = None,
    ) -> bool:
        """Searches new trees on the device; if False, no tree has changed, except that its root may be evaluated.

        Before a group's roots are exported, `roots_ready(group)` completes their evaluation; afterwards, `reserve()`
        makes room for their hidden states.
        """
        exported: list[tuple[int, NDArray[Any]]] = []
        is_done = False
        try:
            is_done = not self._core.stopped and call_evaluator(
                self._search, groups, shapes, roots_ready, reserve, exported
            )
        finally:
            if not is_done:
                for trees, slots in exported:
                    self._core.cancel_export(trees, slots)
        if is_done:
            self._groups, self._shapes = groups, shapes
            self.rows = sum(group.rows for group in groups)
            try:
                # Roots are imported eagerly, nodes lazily.
                self._import(1, [group.roots() for group in groups])
            except BaseException:
                # Some trees have their roots and others do not; importing all nodes again is safe.
                self.synchronize()
                raise
        return is_done

    @property
    def is_pending(self) -> bool:
        """Whether the nodes of some trees are not imported yet."""
        return bool(self._groups)

    def synchronize(self) -> None:
        """Imports all nodes into the engine."""
        if self._groups:
            self._import(self._shapes[0].simulations + 1, [group.nodes() for group in self._groups])
            # Cleared last, so that an interrupted import is retried.
            self._groups = ()

    def _search(
        self,
        groups: Sequence[DeviceTrees],
        shapes: Sequence[TreeShape],
        roots_ready: Callable[[int], Support] | None,
        reserve: Callable[[], None] | None,
        exported: list[tuple[int, NDArray[Any]]],
    ) -> bool:
        """Runs the groups alternately until all are done or the search is stopped; False if outputs were not valid."""
        running: deque[DeviceTrees] = deque()
        is_valid, first = False, 0
        try:
            for number, (group, shape) in enumerate(zip(groups, shapes, strict=True)):
                if roots_ready is not None and not roots_ready(number).ok:
                    return False
                roots = self._core.export_roots(first, first + shape.trees)
                if roots is None:
                    return False
                first += shape.trees
                exported.append((shape.trees, roots["slots"]))
                if reserve is not None:
                    reserve()
                # Once one group has started, all do: results of every group are imported.
                if number == 0 and self._core.stopped:
                    return False
                group.start(roots)
                if group.advance():
                    running.append(group)
            while running and not self._core.stopped:
                group = running.popleft()
                if group.advance():
                    running.append(group)
            if not all(group.support.ok for group in groups):
                return False
            for group in groups:
                group.download()
            for group in groups:
                group.wait()
            is_valid = all(group.is_valid for group in groups)
            return is_valid
        finally:
            if not is_valid:
                # The device must not write into memory that other searches acquire.
                for group in groups:
                    group.drain()

    def _import(self, nodes: int, groups: Sequence[dict[str, NDArray[Any]]]) -> None:
        first = 0
        for shape, columns in zip(self._shapes, groups, strict=True):
            self._core.import_results(first, nodes, columns)
            first += shape.trees
