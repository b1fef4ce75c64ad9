"""Inference buffers for PyTorch: requests are uploaded and unpacked; legal logits and values are downloaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pondertree.errors import EvaluationError
from pondertree.gpu.cuda_graph import GraphCache, host_buffer
from pondertree.gpu.device_trees import DeviceTrees, GameTrees, TreeCache
from pondertree.gpu.protocol import RowLayout, Support, UnsupportedOutput, graph_batch_size
from pondertree.gpu.tree_shape import TreeShape

Forward = Callable[[Any], tuple[Any, Any]]


class DeviceBuffer(ABC):
    """Pinned requests and responses of one batch, and the graphs that evaluate it."""

    def __init__(
        self, capacity: int, words: int, dtype: Any, columns: int, device: Any, prepare: Callable[[], Any]
    ) -> None:
        """Rows of `words` numbers of `dtype` are requests; responses have `columns` float32 numbers."""
        self.capacity = capacity
        self._device = device
        self._host_requests, self.requests = host_buffer(capacity, words, dtype, device)
        self._host_responses, self.responses = host_buffer(capacity, columns, np.float32, device)
        self._is_cpu = device.type == "cpu"
        self._device_requests = (
            self._host_requests if self._is_cpu else torch.zeros_like(self._host_requests, device=device)
        )
        self._graphs = GraphCache(device, self._work, prepare)

    @abstractmethod
    def submit(self, rows: int) -> Support:
        """Starts the inference of the first `rows` requests; not ok if the network's output does not fit."""

    def wait(self) -> None:
        """Blocks until the responses are complete."""
        self._graphs.wait()

    def follow(self) -> None:
        """Makes later batches wait for what this thread has queued on the current stream."""
        self._graphs.follow()

    def clear(self) -> None:
        """Drops all graphs."""
        self._graphs.clear()

    @abstractmethod
    def _work(self, rows: int) -> None:
        """The work of a batch, which a graph captures."""

    def _upload(self, which: slice) -> Any:
        """Copies requests to the device; returns them there."""
        requests = self._device_requests[which]
        if not self._is_cpu:
            requests.copy_(self._host_requests[which], non_blocking=True)
        return requests


class TorchBuffer(DeviceBuffer):
    """Batches of positions of a compiled game."""

    def __init__(
        self,
        layout: RowLayout,
        capacity: int,
        max_rows: int | None,
        device: Any,
        dtype: Any,
        forward: Forward,
        prepare: Callable[[], Any],
    ) -> None:
        """Rows beyond `max_rows` are computed in several calls. `forward` runs within `prepare()`."""
        super().__init__(capacity, layout.words, np.uint64, layout.legal + 1, device, prepare)
        self.layout = layout
        self._max_rows = max_rows or max(capacity, 1)
        self._forward = forward
        self.dtype = dtype
        self._masks = torch.tensor([1 << bit for bit in range(8)], dtype=torch.uint8, device=device)
        self._shifts = torch.arange(layout.height * layout.width, device=device) % 64
        self._channels_last = device.type == "cuda" and dtype in (torch.bfloat16, torch.float16)
        self._prepare = prepare
        self._trees = TreeCache()
        self.fingerprint: object = None
        """Fingerprint of the network whose graphs are captured."""

    def submit(self, rows: int) -> Support:
        """Starts a batch; on CUDA it is padded to one of few sizes, each of which has a graph."""
        return self._graphs.launch(rows if self._device.type != "cuda" else min(graph_batch_size(rows), self.capacity))

    def refresh(self, fingerprint: object) -> None:
        """Orders later batches after queued work, new weights included; drops graphs if the network was replaced."""
        self.follow()
        if fingerprint != self.fingerprint:
            self.clear()
            self.fingerprint = fingerprint
            self._trees.clear()

    def trees(self, shape: TreeShape) -> DeviceTrees | None:
        """Device-resident trees; None if memory or the kernel is missing."""
        return self._trees.find(shape, self._make_trees)

    def _make_trees(self, shape: TreeShape) -> GameTrees:
        layout = self.layout
        size = (shape.trees, layout.planes + layout.scalars, layout.height, layout.width)
        with torch.inference_mode(False):
            observations = torch.zeros(size, dtype=self.dtype, device=self._device)
            if self._channels_last:
                observations = observations.contiguous(memory_format=torch.channels_last)
        return GameTrees(shape, self._device, self._infer, self._prepare, observations)

    def _infer(self, observations: Any) -> tuple[Any, Any]:
        """Logits and values of any number of positions."""
        parts = [
            self._checked(observations[first : first + self._max_rows])
            for first in range(0, len(observations), self._max_rows)
        ]
        if len(parts) == 1:
            return parts[0]
        logits, values = zip(*parts, strict=True)
        return torch.cat(logits), torch.cat(values)

    def _checked(self, observations: Any) -> tuple[Any, Any]:
        """The network's logits and values, with their shapes checked."""
        logits, values = self._forward(observations)
        shape = (len(observations), self.layout.num_actions)
        if logits.shape != shape:
            raise EvaluationError(f"policy_logits has shape {tuple(logits.shape)}: it must be {shape}")
        if values.numel() != len(observations) or torch.float64 in (values.dtype, logits.dtype):
            raise UnsupportedOutput("values must be one number per position, of at most 32 bits")
        return logits, values

    def _work(self, rows: int) -> None:
        for first in range(0, rows, self._max_rows):
            self._infer_rows(slice(first, min(first + self._max_rows, rows)))

    def _infer_rows(self, which: slice) -> None:
        requests = self._upload(which)
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
        channels, board = layout.planes + layout.scalars, (layout.height, layout.width)
        if self._channels_last:
            whole = torch.empty((rows, *board, channels), dtype=self.dtype, device=requests.device)
            whole[..., : layout.planes] = bits
            whole[..., layout.planes :] = scalars[:, None, None, :]
            return whole.permute(0, 3, 1, 2)
        whole = torch.empty((rows, channels, *board), dtype=self.dtype, device=requests.device)
        whole[:, : layout.planes] = bits.permute(0, 3, 1, 2)
        whole[:, layout.planes :] = scalars[:, :, None, None]
        return whole

    def _bits(self, requests: Any) -> Any:
        """The bit planes [rows, height, width, planes]: channels are adjacent, so that writes are coalesced."""
        layout, rows = self.layout, len(requests)
        if layout.width == 8 and layout.words_per_plane == 1:
            # A byte is a row of the board; 8-bit operations are faster.
            octets = requests.view(torch.uint8)[:, : 8 * layout.planes].view(rows, layout.planes, 8)
            ranks = octets[:, :, : layout.height].transpose(1, 2).unsqueeze(2)
            return (ranks & self._masks[:, None]) != 0
        words = requests[:, : layout.plane_words].view(rows, 1, layout.planes, layout.words_per_plane)
        bits = [(words[..., place] >> shifts[:, None]) & 1 for place, shifts in enumerate(self._shifts.split(64))]
        cells = bits[0] if len(bits) == 1 else torch.cat(bits, dim=1)
        return cells.view(rows, layout.height, layout.width, layout.planes)

    def _actions(self, requests: Any) -> Any:
        """The legal actions [rows, legal], padded with 0. PyTorch has only signed 16-bit integers."""
        first = self.layout.first_action
        actions = requests.view(torch.int16)[:, first : first + self.layout.legal].to(torch.int64)
        return actions if self.layout.num_actions <= 1 << 15 else actions & 0xFFFF


def unpacked(planes: torch.Tensor, numbers: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The observations, float32 [N, *shape], from bit planes (words, as int64) and numbers, on their device."""
    if numbers.dtype == torch.uint8:
        numbers = numbers.float() / 255.0
    if planes.shape[1] == 0:
        return numbers.reshape(len(numbers), *shape)
    return unpacked_planes(planes, numbers, (shape[1], shape[2]), torch.float32)


def unpacked_planes(words: torch.Tensor, scalars: torch.Tensor, board: tuple[int, int], dtype: Any) -> torch.Tensor:
    """The observations [N, planes + scalars, height, width] of a compiled game: see `Packed`."""
    rows, cells = len(words), board[0] * board[1]
    words_per_plane = -(-cells // 64)
    planes = words.shape[1] // words_per_plane
    shifts = torch.arange(8, dtype=torch.uint8, device=words.device)
    # Byte k of a plane has the cells 8k to 8k + 7; 8-bit operations are faster.
    bits = (words.view(torch.uint8)[:, :, None] >> shifts) & 1
    whole = torch.empty((rows, planes + scalars.shape[1], cells), dtype=dtype, device=words.device)
    whole[:, :planes] = bits.reshape(rows, planes, 64 * words_per_plane)[:, :, :cells]
    whole[:, planes:] = scalars[:, :, None]
    return whole.reshape(*whole.shape[:2], *board)
