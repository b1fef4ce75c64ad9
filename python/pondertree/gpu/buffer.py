"""Lanes through a network of PyTorch: questions up, unpacked there, legal logits and values down, on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pondertree.config import Rule
from pondertree.errors import EvaluationError
from pondertree.gpu.cuda_graph import Graphs, host_buffer
from pondertree.gpu.device_trees import ONES, DeviceTrees, GameTrees, Kept
from pondertree.gpu.protocol import NotForLanes, RowLayout, padded
from pondertree.gpu.tree_shape import TreeShape

Forward = Callable[[Any], tuple[Any, Any]]


class TorchBuffer:
    """One batch at a time on its way through a network."""

    def __init__(
        self,
        layout: RowLayout,
        capacity: int,
        most_at_once: int | None,
        device: Any,
        dtype: Any,
        forward: Forward,
        prepare: Callable[[], Any],
    ) -> None:
        """Rows beyond `most_at_once` are computed one lot after another. `forward` runs within `prepare()`."""
        self.layout = layout
        self.capacity = capacity
        self._most_at_once = most_at_once or max(capacity, 1)
        self._forward = forward
        self._host_requests, self.requests = host_buffer(capacity, layout.words, np.uint64, device)
        self._host_responses, self.responses = host_buffer(capacity, layout.legal + 1, np.float32, device)
        self._on_device = device.type == "cpu"
        self._device_requests = (
            self._host_requests if self._on_device else torch.zeros_like(self._host_requests, device=device)
        )
        self._dtype = dtype
        self._masks = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=device)
        self._shifts = torch.arange(layout.height * layout.width, device=device)
        self._channels_last = device.type == "cuda" and dtype in (torch.bfloat16, torch.float16)
        self._device, self._prepare = device, prepare
        self._graphs = Graphs(device, self._work, prepare)
        self._trees = Kept()
        self._captured = device.type == "cuda"
        self.weights: object = None
        """What tells the weights apart that the graphs have recorded."""

    def submit(self, rows: int) -> None:
        """Begins to answer the first `rows` questions. Rows are padded to few sizes, each of which is recorded once."""
        self._graphs.launch(min(padded(rows), self.capacity) if self._captured else rows)

    def wait(self) -> None:
        """Comes back when they are answered."""
        self._graphs.wait()

    def renew(self, weights: object) -> None:
        """Forgets what was recorded of other weights, and comes after whatever has written them."""
        self._graphs.follow()
        if weights != self.weights:
            self._graphs.forget()
            self.weights = weights
            self._trees.forget()

    def open_trees(self, trees: int, simulations: int, rule: Rule) -> DeviceTrees | None:
        """So many trees that grow on the device itself; None where they cannot, or need not."""
        shape = TreeShape(trees, simulations, self.layout.num_actions, rule, is_game=True)
        if not shape.may_grow(self._device) or self._dtype not in ONES:
            return None
        return self._trees.find(shape, self._make_trees)

    def _make_trees(self, shape: TreeShape) -> GameTrees:
        layout = self.layout
        size = (shape.trees, layout.planes + layout.scalars, layout.height, layout.width)
        with torch.inference_mode(False):
            seen = torch.zeros(size, dtype=self._dtype, device=self._device)
            if self._channels_last:
                seen = seen.contiguous(memory_format=torch.channels_last)
        return GameTrees(shape, self._device, self._look, self._prepare, seen)

    def _look(self, observations: Any) -> tuple[Any, Any]:
        """Logits and values of positions, as many at once as one likes."""
        lots = range(0, len(observations), self._most_at_once)
        said = [self._checked(observations[first : first + self._most_at_once]) for first in lots]
        if len(said) == 1:
            return said[0]
        logits, values = zip(*said, strict=True)
        return torch.cat(logits), torch.cat(values)

    def _checked(self, observations: Any) -> tuple[Any, Any]:
        """What the network says, of the right shapes."""
        logits, values = self._forward(observations)
        shape = (len(observations), self.layout.num_actions)
        if logits.shape != shape:
            raise EvaluationError(f"policy_logits has shape {tuple(logits.shape)}: it must be {shape}")
        if values.numel() != len(observations) or torch.float64 in (values.dtype, logits.dtype):
            raise NotForLanes("values for each player, and numbers of 64 bits, do not fit")
        return logits, values

    def _work(self, rows: int) -> None:
        for first in range(0, rows, self._most_at_once):
            self._answer(slice(first, min(first + self._most_at_once, rows)))

    def _answer(self, which: slice) -> None:
        requests = self._device_requests[which]
        if not self._on_device:
            requests.copy_(self._host_requests[which], non_blocking=True)
        logits, values = self._checked(self._observations(requests))
        rows = len(requests)
        legal = logits.gather(1, self._actions(requests))
        responses = torch.cat([legal.float(), values.float().reshape(rows, 1)], dim=1)
        self._host_responses[which].copy_(responses, non_blocking=True)

    def _observations(self, requests: Any) -> Any:
        """[rows, planes + scalars, height, width]; bit row * width + column of a plane is its cell."""
        layout, rows = self.layout, len(requests)
        bits = self._bits(requests)
        scalars = requests.view(torch.float32)[:, layout.first_scalar : layout.first_scalar + layout.scalars]
        if self._channels_last:
            whole = torch.empty(
                (rows, layout.height, layout.width, layout.planes + layout.scalars),
                dtype=self._dtype,
                device=requests.device,
            )
            whole[..., : layout.planes] = bits
            whole[..., layout.planes :] = scalars[:, None, None, :]
            return whole.permute(0, 3, 1, 2)
        whole = torch.empty(
            (rows, layout.planes + layout.scalars, layout.height, layout.width),
            dtype=self._dtype,
            device=requests.device,
        )
        whole[:, : layout.planes] = bits.permute(0, 3, 1, 2)
        whole[:, layout.planes :] = scalars[:, :, None, None]
        return whole

    def _bits(self, requests: Any) -> Any:
        """The bit planes [rows, height, width, planes]: whole channels are written side by side, which devices like."""
        layout, rows = self.layout, len(requests)
        if layout.width == 8:
            # A byte is a row of the board, and small numbers are quick.
            octets = requests.view(torch.uint8)[:, : 8 * layout.planes].view(rows, layout.planes, 8)
            ranks = octets[:, :, : layout.height].transpose(1, 2).unsqueeze(2)
            return (ranks & self._masks[:, None]) != 0
        words = requests[:, : layout.planes]
        return ((words[:, None, :] >> self._shifts[:, None]) & 1).view(rows, layout.height, layout.width, layout.planes)

    def _actions(self, requests: Any) -> Any:
        """The legal actions [rows, legal], 0 where there are no more. Torch knows signed numbers of 16 bits alone."""
        first = self.layout.first_action
        actions = requests.view(torch.int16)[:, first : first + self.layout.legal].to(torch.int64)
        return actions if self.layout.num_actions <= 1 << 15 else actions & 0xFFFF


def unpacked(planes: torch.Tensor, numbers: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The observations, float32 [N, *shape], from planes (as int64) and numbers, on the device that these are on."""
    if numbers.dtype == torch.uint8:
        numbers = numbers.float() / 255.0
    if planes.shape[1] == 0:
        return numbers.reshape(len(numbers), *shape)
    cells = torch.arange(shape[1] * shape[2], device=planes.device)
    bits = ((planes[:, :, None] >> cells) & 1).float()
    constant = numbers[:, :, None].expand(-1, -1, len(cells))
    return torch.cat([bits, constant], dim=1).reshape(len(planes), *shape)
