"""Lanes through a model of PyTorch: hidden states are read, stepped and written on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from pondertree.gpu.cuda_graph import Graphs, host_buffer
from pondertree.gpu.device_trees import DeviceTrees, Grove, Kept
from pondertree.gpu.kernels.launch import Launch
from pondertree.gpu.kernels.top_k import compiled, pick_likeliest
from pondertree.gpu.protocol import NotForLanes, padded
from pondertree.gpu.tree_shape import TreeShape
from pondertree.models.hidden import flatten
from pondertree.models.pool import HiddenPool

#: In action spaces above this size only the likeliest actions come down from an accelerator.
WIDE = 256
#: So many of them in any case: trees that are kept from move to move still have a choice.
LEAST_LIKELIEST = 64


class TorchLatentContext:
    """A table of hidden states on a device, and lanes that read and write it."""

    def __init__(self, key: object, trees: int, device: Any, step: Step, prepare: Callable[[], Any]) -> None:
        self.key = key
        self.pool = HiddenPool(capacity=max(64 * trees, 1))
        self._device = device
        self._step = step
        self._prepare = prepare
        self._buffers: list[TorchLatentBuffer] = []
        self._trees = Kept()
        self._weights: object = None

    def acquire_buffers(self, capacities: Sequence[int], most_visits: int) -> list[TorchLatentBuffer]:
        """A lane for each capacity."""
        likeliest = max(padded(most_visits), LEAST_LIKELIEST) if self._device.type != "cpu" else None
        shapes = [(capacity, likeliest) for capacity in capacities]
        if shapes != [(buffer.capacity, buffer.most_likeliest) for buffer in self._buffers]:
            self._buffers = [
                TorchLatentBuffer(capacity, likeliest, self.pool, self._device, self._step, self._prepare)
                for capacity in capacities
            ]
        for buffer in self._buffers:
            buffer.follow()
        return self._buffers

    def open_trees(self, shape: TreeShape) -> Grove | None:
        """Trees that grow on the device itself; None where they cannot, or need not."""
        if not shape.may_grow(self._device):
            return None
        trees = self._trees.find(
            shape, lambda shape: ModelTrees(shape, self.pool, self._device, self._step, self._prepare)
        )
        return None if trees is None else Grove([trees], [shape.trees])

    def renew(self, weights: object) -> None:
        """Forgets what was recorded of other weights."""
        if weights != self._weights:
            self._weights = weights
            for buffer in self._buffers:
                buffer.forget()
            self._trees.forget()


class TorchLatentBuffer:
    """One batch of steps at a time on its way through a model."""

    def __init__(
        self,
        capacity: int,
        most_likeliest: int | None,
        pool: HiddenPool,
        device: Any,
        step: Step,
        prepare: Callable[[], Any],
    ) -> None:
        self.capacity = capacity
        self.most_likeliest = most_likeliest
        self.likeliest: int | None = None
        self.has_discount = False
        self._pool = pool
        self._pool_version = -1
        self._device = device
        self._step = step
        self._host_requests, self.requests = host_buffer(capacity, 3, np.int64, device)
        self._host_responses, self.responses = host_buffer(capacity, 0, np.float32, device)
        self._on_device = device.type == "cpu"
        self._device_requests = (
            self._host_requests if self._on_device else torch.zeros_like(self._host_requests, device=device)
        )
        self._graphs = Graphs(device, self._work, prepare)

    def submit(self, rows: int) -> None:
        """Begins to answer the first `rows` questions."""
        if self._pool.version != self._pool_version:
            self._graphs.forget()
            self._graphs.follow()
            self._pool_version = self._pool.version
        size = rows
        if not self._on_device:
            size = min(padded(rows), self.capacity)
            # Rows too many do the same as the first one, and no harm.
            self.requests[rows:size] = self.requests[0]
        self._graphs.launch(size)

    def wait(self) -> None:
        """Comes back when they are answered."""
        self._graphs.wait()

    def follow(self) -> None:
        """Comes after what this thread has asked of the device so far: the hidden states of roots, new weights."""
        self._graphs.follow()

    def forget(self) -> None:
        """Drops what was recorded."""
        self._graphs.forget()

    def _work(self, rows: int) -> None:
        requests = self._device_requests[:rows]
        if not self._on_device:
            requests.copy_(self._host_requests[:rows], non_blocking=True)
        parents, actions, slots = requests.unbind(1)
        hidden, reward, logits, value, *discount = self._step(self._pool.read(parents), actions)
        columns = [reward, value, *discount]
        for column in (*columns, logits):
            if not isinstance(column, torch.Tensor) or column.dtype == torch.float64 or column.is_complex():
                raise NotForLanes("only tensors of at most 32 bits fit")
            if column.device != requests.device:
                raise NotForLanes("what lies elsewhere cannot be read")
        if any(column.numel() != rows or len(column) != rows for column in columns) or logits.ndim != 2:
            raise NotForLanes("shapes that may be wrong are told in words")
        self._pool.write(slots, *flatten(hidden))
        responses = self._together(columns, logits)
        if responses.shape[1] != self.responses.shape[1]:
            self._host_responses, self.responses = host_buffer(
                self.capacity, responses.shape[1], np.float32, self._device
            )
        self.has_discount = bool(discount)
        self._host_responses[:rows].copy_(responses, non_blocking=True)

    def _together(self, columns: list[Any], logits: Any) -> Any:
        """What comes down of the numbers and a policy [rows, num_actions], as one tensor."""
        rows, actions = logits.shape
        if self.most_likeliest is None or actions <= WIDE or 2 * self.most_likeliest >= actions:
            self.likeliest = None
            policy = [logits.float()]
        else:
            self.likeliest = self.most_likeliest
            pick = compiled(self._device, actions)
            if pick is not None:
                return pick_likeliest(pick, columns, logits, self.likeliest)
            numbers = logits.float()
            best, places = numbers.topk(self.likeliest, dim=1, sorted=False)
            logarithm = numbers.double().logsumexp(dim=1, keepdim=True)
            first = logarithm.float()
            policy = [first, (logarithm - first).float(), best, places.float()]
        return torch.cat([column.float().reshape(rows, 1) for column in columns] + policy, dim=1)


Step = Callable[[Any, Any], tuple[Any, ...]]


class ModelTrees(DeviceTrees):
    """Their positions are hidden states in a table on the device."""

    def __init__(
        self,
        shape: TreeShape,
        pool: HiddenPool,
        device: Any,
        step: Step,
        prepare: Callable[[], AbstractContextManager[Any]],
        launch: Launch | None = None,
    ) -> None:
        super().__init__(shape, device, prepare, launch)
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
