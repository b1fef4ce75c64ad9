"""Device-resident trees: on a GPU, whole searches run without the CPU.

`kernels/step.cu` advances every tree from one network request to the next; this module drives it. The engine exports
roots and imports results: those of the roots at once, all nodes on first access.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pondertree.gpu.cuda_graph import GraphCache, require_supported
from pondertree.gpu.kernels.launch import Launch, compile_step
from pondertree.gpu.kernels.nvrtc import CompilationError
from pondertree.gpu.protocol import SUPPORTED, UnsupportedOutput, graph_batch_size
from pondertree.gpu.tree_layout import (
    DTYPE_CODES,
    ROOT_COLUMNS,
    SEARCH_ARRAYS,
    Columns,
    StagingBuffer,
    TreeArrays,
    search_parameters,
)
from pondertree.gpu.tree_shape import MAX_BYTES, TreeShape

#: Steps captured as one graph; after each graph, the CPU reads which trees are unfinished.
MAX_STEPS, MIN_STEPS = 64, 8
#: The number of rows is that of unfinished trees, rounded up to a multiple of 1 / ROW_SHARES of all: each has a graph.
ROW_SHARES = 16
#: The key of the graph that downloads results, next to (steps, rows).
DOWNLOAD = (0, 0)

_TREE = ("bounds", "simulations", "nodes_added")
#: Arrays that the engine imports under other names.
_IMPORTED_AS = {"simulations": "done", "nodes_added": "made"}
_NODE = ("headers", "raw", "rewards", "discounts")
_EDGE = ("sums", "visits", "priors", "actions", "children")
#: A network's outputs, and the field of `SearchParameters` that holds the code of their dtype.
_OUTPUTS = {"reward": "reward_type", "value": "value_type", "logits": "logits_type", "model_discount": "discount_type"}
#: The bits of the number 1, which the kernel writes into observations.
ONE_BITS = {torch.float32: 0x3F800000, torch.bfloat16: 0x3F80, torch.float16: 0x3C00}


class DeviceTrees(ABC):
    """Arrays for a group of trees that are searched in lockstep, and their captured graphs."""

    def __init__(
        self,
        shape: TreeShape,
        device: Any,
        prepare: Callable[[], AbstractContextManager[Any]],
        launch: Launch | None = None,
    ) -> None:
        self.shape = shape
        self.trees = 0
        """Trees that are searched, at most `shape.trees`."""
        self.support = SUPPORTED
        """Not ok after the network gave an output that kernels cannot read."""
        dimensions = shape.dimensions()
        # The first search may run in inference mode, and a later one outside it.
        with torch.inference_mode(False):
            self._staging = StagingBuffer(dimensions, device)
            arrays = {
                name: torch.zeros(dimensions[rows], dtype=dtype, device=device) for name, dtype, rows in SEARCH_ARRAYS
            }
            self._arrays = self._staging.arrays | arrays
        # Downloaded after a search: all columns of the roots.
        self._downloads = {name: self._arrays[name][:, 0] for name in (*_NODE, *_EDGE) if len(self._arrays[name])}
        self._downloads |= {name: self._arrays[name] for name in (*_TREE, "rows", "has_invalid_output")}
        self._host = {
            name: torch.zeros(array.shape, dtype=array.dtype, pin_memory=device.type == "cuda")
            for name, array in self._downloads.items()
        }
        self._slots: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._struct = TreeArrays(**{name: array.data_ptr() for name, array in self._arrays.items()})
        self._struct.params = search_parameters(shape)
        self._lengths = graph_lengths(shape)
        self._next = 0
        """The index of the next graph in `_lengths`."""
        self._outputs: dict[str, Any] = {}
        """The network's last outputs, whose memory the kernel reads."""
        self._launch = launch or compile_step(device, shape)
        self._graphs = GraphCache(device, self._work, prepare)

    def start(self, roots: dict[str, Any]) -> None:
        """Starts the upload of roots that the engine has exported."""
        self._slots = roots["slots"]
        self.trees = len(roots["counts"])
        columns = {array: roots[name] for name, array in ROOT_COLUMNS.items() if len(roots.get(name, ()))}
        self._next, self.support = 0, SUPPORTED
        try:
            self._staging.send(columns, self.trees, self.shape.simulations)
        finally:
            # Also after an interrupt, so that `drain` waits for the upload.
            self._graphs.follow()

    def advance(self) -> bool:
        """Launches further steps, after those before are complete; False if no steps remain."""
        if self._next == len(self._lengths):
            return False
        shape, active = self.shape, self.trees
        if self._next:
            self._graphs.wait()
            active = int((self._host["simulations"].numpy() < shape.simulations).sum())
            if active == 0 or not self.is_valid:
                return False
        share = -(-shape.trees // ROW_SHARES)
        rows = min(-(-active // share) * share, shape.trees)
        self.support = self._graphs.launch((self._lengths[self._next], rows))
        self._next += 1
        return self.support.ok

    def download(self) -> None:
        """Starts the download of the roots' results."""
        self._graphs.launch(DOWNLOAD)

    def wait(self) -> None:
        """Blocks until all launched work is complete."""
        self._graphs.wait()

    def drain(self) -> None:
        """Blocks until the stream of these trees is empty, even if a launch has failed."""
        self._graphs.drain()

    @property
    def is_valid(self) -> bool:
        """Whether every network output was valid; otherwise the engine repeats the search, which raises the error."""
        return not bool(self._host["has_invalid_output"][0])

    @property
    def rows(self) -> int:
        """Positions evaluated."""
        return int(self._host["rows"].sum())

    def roots(self) -> Columns:
        """The columns of root nodes that `import_results` takes."""
        return self._columns(self._host)

    def nodes(self) -> Columns:
        """The columns of all nodes that `import_results` takes."""
        return self._columns({name: self._arrays[name][: self.trees].cpu() for name in (*_NODE, *_EDGE)})

    def clear(self) -> None:
        """Drops all graphs: the weights have moved."""
        self._graphs.clear()

    def _columns(self, tensors: dict[str, Any]) -> Columns:
        found = tensors | {name: self._host[name] for name in _TREE}
        columns = {
            _IMPORTED_AS.get(name, name): found[name][: self.trees].numpy().reshape(-1)
            for name in (*_NODE, *_EDGE, *_TREE)
            if name in found
        }
        # Games have no rewards.
        return dict.fromkeys(_NODE, np.zeros(0)) | columns | {"slots": self._slots}

    def _work(self, key: tuple[int, int]) -> None:
        if key == DOWNLOAD:
            for name, target in self._host.items():
                target.copy_(self._downloads[name], non_blocking=True)
            return
        steps, rows = key
        self._struct.params.rows = rows
        if self.shape.is_game:
            finished = self._arrays["simulations"] >= self.shape.simulations
            self._arrays["row_to_tree"].copy_(finished.to(torch.uint8).argsort(stable=True))
        for _ in range(steps):
            self._launch(self._struct, True)
            self._outputs = self._infer(rows)
            for name, column in self._outputs.items():
                self._bind(name, column, rows)
        # The last outputs are applied at once: in the next graph, rows may belong to other trees.
        self._launch(self._struct, False)
        for name in ("simulations", "has_invalid_output"):
            self._host[name].copy_(self._downloads[name], non_blocking=True)

    def _bind(self, name: str, column: Any, rows: int) -> None:
        """Sets the kernel's pointer to an output; other dtypes and strides are copied into the array of that name."""
        array = self._arrays[name][:rows]
        require_supported([column], array.device)
        if column.numel() != array.numel() or len(column) != rows or (name == "logits" and column.ndim != 2):
            raise UnsupportedOutput("a network's outputs must have one row per position")
        if column.dtype not in DTYPE_CODES or not column.is_contiguous():
            array.copy_(column.reshape(array.shape))
            column = self._outputs[name] = array
        setattr(self._struct, name, column.data_ptr())
        setattr(self._struct.params, _OUTPUTS[name], DTYPE_CODES[column.dtype])

    @abstractmethod
    def _infer(self, rows: int) -> dict[str, Any]:
        """Evaluates the new leaves of the first rows; returns outputs by the names of the kernel's arrays."""


class GameTrees(DeviceTrees):
    """Trees of a game that the kernel plays; it writes observations where the network reads them."""

    def __init__(
        self,
        shape: TreeShape,
        device: Any,
        forward: Callable[[Any], tuple[Any, Any]],
        prepare: Callable[[], AbstractContextManager[Any]],
        observations: Any,
        launch: Launch | None = None,
    ) -> None:
        """`forward` maps `observations` [trees, planes, height, width], of any strides, to (logits, values)."""
        super().__init__(shape, device, prepare, launch)
        self._forward, self._observations = forward, observations
        params, self._struct.observations = self._struct.params, observations.data_ptr()
        params.one_bits, params.bits_per_value = ONE_BITS[observations.dtype], 8 * observations.element_size()
        _, params.plane_step, params.row_step, params.column_step = observations.stride()

    def _infer(self, rows: int) -> dict[str, Any]:
        logits, values = self._forward(self._observations[:rows])
        return {"logits": logits, "value": values}


class TreeCache:
    """Device trees of recent shapes for later searches, at most `MAX_BYTES`; evicts the least recently used."""

    def __init__(self) -> None:
        self._trees: dict[TreeShape, DeviceTrees | None] = {}

    def find(self, shape: TreeShape, make: Callable[[TreeShape], DeviceTrees]) -> DeviceTrees | None:
        """Trees of this shape, or a few more: games that end one by one would need new arrays each time.

        None if memory or the kernel is missing.
        """
        shape = replace(shape, trees=graph_batch_size(shape.trees))
        if shape in self._trees:
            self._trees[shape] = self._trees.pop(shape)
            return self._trees[shape]
        while self._trees and shape.bytes + sum(other.bytes for other in self._trees) > MAX_BYTES:
            del self._trees[next(iter(self._trees))]
        try:
            self._trees[shape] = make(shape)
        except (CompilationError, RuntimeError):
            # RuntimeError: out of device memory, or of pinned memory.
            self._trees[shape] = None
        return self._trees[shape]

    def clear(self) -> None:
        """Drops all graphs: the weights have moved."""
        for trees in self._trees.values():
            if trees is not None:
                trees.clear()


def graph_lengths(shape: TreeShape) -> list[int]:
    """The steps of each graph of a search; their sum is the number of simulations.

    Terminal leaves need no network, so trees of games finish at different times: towards the end, graphs are shorter
    so that the CPU reads more often which trees are done.
    """
    lengths, left = [], shape.simulations
    while left:
        # Half of the rest, rounded down to a power of two.
        length = max(1 << (left // 2).bit_length() >> 1, MIN_STEPS) if shape.is_game else left
        lengths.append(min(length, MAX_STEPS, left))
        left -= lengths[-1]
    return lengths
