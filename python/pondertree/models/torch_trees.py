"""Trees that grow beside a learned model of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pondertree.device.kind import Kind
from pondertree.device.step import Launch
from pondertree.device.trees import DeviceTrees
from pondertree.models.hidden import flatten
from pondertree.models.pool import HiddenPool

Step = Callable[[Any, Any], tuple[Any, ...]]


class ModelTrees(DeviceTrees):
    """Their positions are hidden states in a table on the device."""

    def __init__(
        self,
        kind: Kind,
        pool: HiddenPool,
        device: Any,
        step: Step,
        prepare: Callable[[], AbstractContextManager[Any]],
        launch: Launch | None = None,
    ) -> None:
        super().__init__(kind, device, prepare, launch)
        self._pool, self._pool_version, self._step = pool, pool.version, step

    def begin(self, roots: dict[str, Any]) -> None:
        """Takes roots as the engine gives them."""
        # Rows without a tree write where nobody reads: there is room for one more.
        arrays, rest = self._arrays, slice(len(roots["counts"]), None)
        for name, number in (("parents", 0), ("chosen", 0), ("targets", self._pool.capacity - 1)):
            arrays[name][rest].fill_(number)
        super().begin(roots)
        if self._pool.version != self._pool_version:
            self._pool_version = self._pool.version
            self.forget()

    def _ask(self, rows: int) -> dict[str, Any]:
        """The model's step from the positions before the new leaves."""
        arrays = self._arrays
        hidden, *said = self._step(self._pool.read(arrays["parents"][:rows]), arrays["chosen"][:rows])
        self._pool.write(arrays["targets"][:rows], *flatten(hidden))
        self._struct.rules.has_discount = int(len(said) > 3)
        return dict(zip(("reward", "logits", "value", "own_discount"), said, strict=False))
