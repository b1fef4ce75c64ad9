"""Trees of a compiled game that grow beside a network of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ponderosa.device.kind import Kind
from ponderosa.device.trees import DeviceTrees, Launch


class GameTrees(DeviceTrees):
    """The kernel knows the game, and writes questions as the engine does; the network reads them where they are."""

    def __init__(
        self,
        kind: Kind,
        device: Any,
        reply: Callable[[Any], Any],
        prepare: Callable[[], AbstractContextManager[Any]],
        launch: Launch | None = None,
    ) -> None:
        """`reply` gives answers [trees, legal + 1] to questions [trees, words]."""
        super().__init__(kind, device, prepare, launch)
        self._reply = reply

    def _ask(self) -> None:
        """The network's word on the new leaves."""
        self._arrays["answers"].copy_(self._reply(self._arrays["questions"]))
