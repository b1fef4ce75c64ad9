"""Contexts for models of PyTorch: hidden states are read, stepped and written on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from pondertree.gpu.buffer import DeviceBuffer
from pondertree.gpu.cuda_graph import host_buffer, require_supported
from pondertree.gpu.device_trees import DeviceTrees, TreeCache
from pondertree.gpu.kernels.launch import Launch
from pondertree.gpu.kernels.top_k import compile_top_k, top_k_responses
from pondertree.gpu.protocol import Support, UnsupportedOutput, graph_batch_size
from pondertree.gpu.tree_shape import TreeShape
from pondertree.models.hidden import flatten
from pondertree.models.pool import HiddenPool

#: In larger action spaces, only the top-k logits are downloaded from an accelerator.
MAX_FULL_POLICY = 256
#: The least k: trees that are kept from move to move still have a choice.
MIN_TOP_K = 64

Step = Callable[[Any, Any], tuple[Any, ...]]


class TorchLatentContext:
    """A pool of hidden states on a device, with buffers and device trees that read and write it.

    A forest leases it for life: its nodes refer to slots of the pool.
    """

    def __init__(self, key: object, trees: int, device: Any, step: Step, prepare: Callable[[], Any]) -> None:
        """`key` describes the hidden states that it fits."""
        self.key = key
        self.pool = HiddenPool(capacity=max(64 * trees, 1))
        self._device = device
        self._step = step
        self._prepare = prepare
        self._buffers: list[TorchLatentBuffer] = []
        self._trees = TreeCache()
        self._fingerprint: object = None

    def buffers(self, capacities: Sequence[int], max_visits: int) -> list[TorchLatentBuffer]:
        """One buffer for each capacity; no node is visited more often than `max_visits`."""
        top_k = max(graph_batch_size(max_visits), MIN_TOP_K) if self._device.type != "cpu" else None
        if [(capacity, top_k) for capacity in capacities] != [
            (each.capacity, each.max_top_k) for each in self._buffers
        ]:
            self._buffers = [
                TorchLatentBuffer(capacity, top_k, self.pool, self._device, self._step, self._prepare)
                for capacity in capacities
            ]
        for buffer in self._buffers:
            buffer.follow()
        return self._buffers

    def trees(self, shapes: Sequence[TreeShape]) -> list[DeviceTrees] | None:
        """One group of trees for each shape; None if memory or the kernel is missing."""
        groups = [self._trees.find(shape, self._make_trees) for shape in shapes]
        found = [group for group in groups if group is not None]
        return found if len(found) == len(groups) else None

    def refresh(self, fingerprint: object) -> None:
        """Drops graphs if the model was replaced."""
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            for buffer in self._buffers:
                buffer.clear()
            self._trees.clear()

    def _make_trees(self, shape: TreeShape) -> LatentTrees:
        return LatentTrees(shape, self.pool, self._device, self._step, self._prepare)


class TorchLatentBuffer(DeviceBuffer):
    """Batches of steps of a model: a request is (slot of the parent, action, slot of the new position)."""

    def __init__(
        self,
        capacity: int,
        max_top_k: int | None,
        pool: HiddenPool,
        device: Any,
        step: Step,
        prepare: Callable[[], Any],
    ) -> None:
        super().__init__(capacity, 3, np.int64, 0, device, prepare)
        self.max_top_k = max_top_k
        self.top_k: int | None = None
        """The policy of a response: logits of all actions if None, else of the top k; see `top_k_responses`."""
        self.has_discount = False
        self._pool = pool
        self._pool_version = -1
        self._step = step

    def submit(self, rows: int) -> Support:
        """Starts a batch, padded to one of few sizes on a device."""
        if self._pool.version != self._pool_version:
            self._graphs.clear()
            self._graphs.follow()
            self._pool_version = self._pool.version
        size = rows
        if not self._is_cpu:
            size = min(graph_batch_size(rows), self.capacity)
            # Padding repeats the first request, whose result is written to the same slot.
            self.requests[rows:size] = self.requests[0]
        return self._graphs.launch(size)

    def _work(self, rows: int) -> None:
        requests = self._upload(slice(rows))
        parents, actions, slots = requests.unbind(1)
        hidden, reward, logits, value, *discount = self._step(self._pool.read(parents), actions)
        columns = [reward, value, *discount]
        require_supported([*columns, logits], requests.device)
        if any(column.numel() != rows or len(column) != rows for column in columns) or logits.ndim != 2:
            raise UnsupportedOutput("a model's outputs must have one row per position")
        self._pool.write(slots, *flatten(hidden))
        responses = self._responses(columns, logits)
        if responses.shape[1] != self.responses.shape[1]:
            self._host_responses, self.responses = host_buffer(
                self.capacity, responses.shape[1], np.float32, self._device
            )
        self.has_discount = bool(discount)
        self._host_responses[:rows].copy_(responses, non_blocking=True)

    def _responses(self, columns: list[Any], logits: Any) -> Any:
        """The columns and a policy [rows, num_actions], as one tensor."""
        rows, actions = logits.shape
        if self.max_top_k is None or actions <= MAX_FULL_POLICY or 2 * self.max_top_k >= actions:
            self.top_k = None
            policy = [logits.float()]
        else:
            self.top_k = self.max_top_k
            kernel = compile_top_k(self._device, actions)
            if kernel is not None:
                return top_k_responses(kernel, columns, logits, self.top_k)
            numbers = logits.float()
            best, places = numbers.topk(self.top_k, dim=1, sorted=False)
            log_sum = numbers.double().logsumexp(dim=1, keepdim=True)
            first = log_sum.float()
            policy = [first, (log_sum - first).float(), best, places.float()]
        return torch.cat([column.float().reshape(rows, 1) for column in columns] + policy, dim=1)


class LatentTrees(DeviceTrees):
    """Trees in a learned model, whose hidden states are in a pool on the device."""

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

    def start(self, roots: dict[str, Any]) -> None:
        """Starts the upload of roots that the engine has exported."""
        # Rows without a tree write into the pool's last slot, which is reserved for them.
        arrays, rest = self._arrays, slice(len(roots["counts"]), None)
        for name, number in (
            ("request_parents", 0),
            ("request_actions", 0),
            ("request_slots", self._pool.capacity - 1),
        ):
            arrays[name][rest].fill_(number)
        super().start(roots)
        if self._pool.version != self._pool_version:
            self._pool_version = self._pool.version
            self.clear()

    def _infer(self, rows: int) -> dict[str, Any]:
        arrays = self._arrays
        hidden, *outputs = self._step(
            self._pool.read(arrays["request_parents"][:rows]), arrays["request_actions"][:rows]
        )
        self._pool.write(arrays["request_slots"][:rows], *flatten(hidden))
        self._struct.params.has_discount = int(len(outputs) > 3)
        return dict(zip(("reward", "logits", "value", "model_discount"), outputs, strict=False))
