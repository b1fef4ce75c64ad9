"""Trees of a compiled game that grow beside a network of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from pondertree.device.kind import Kind
from pondertree.device.step import Launch
from pondertree.device.trees import DeviceTrees

#: The bits of the number 1.
ONES = {torch.float32: 0x3F800000, torch.bfloat16: 0x3F80, torch.float16: 0x3C00}


class GameTrees(DeviceTrees):
    """The kernel knows the game, and writes what the network sees of a position where that reads it."""

    def __init__(
        self,
        kind: Kind,
        device: Any,
        forward: Callable[[Any], tuple[Any, Any]],
        prepare: Callable[[], AbstractContextManager[Any]],
        observations: Any,
        launch: Launch | None = None,
    ) -> None:
        """`forward` gives (logits, values) of `observations` [trees, planes, height, width], which lie close."""
        super().__init__(kind, device, prepare, launch)
        self._forward, self._observations = forward, observations
        rules, self._struct.observations = self._struct.rules, observations.data_ptr()
        rules.one, rules.bits = ONES[observations.dtype], 8 * observations.element_size()
        _, rules.plane_step, rules.row_step, rules.column_step = observations.stride()

    def _ask(self, rows: int) -> dict[str, Any]:
        """The network's word on the new leaves."""
        logits, values = self._forward(self._observations[:rows])
        return {"logits": logits, "value": values}
