"""Trees that grow where their network or model computes: on a GPU, whole searches run without the processor.

`kernel/step.cu` is the way from one question of every tree to the next; here is the loop of a search. The engine gives
the roots and takes what was found, of the roots at once, of all nodes when somebody looks at them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pondertree.gpu.cuda_graph import Graphs
from pondertree.gpu.kernels.launch import Launch, compiled
from pondertree.gpu.protocol import NotForLanes, padded
from pondertree.gpu.tree_layout import GIVEN, LATER, NUMBER_TYPES, Columns, First, Trees, rules_of
from pondertree.gpu.tree_shape import MOST_BYTES, TreeShape

#: So many steps are recorded as one, at most and at least; then the processor looks which trees want more.
MOST_STEPS, FEWEST_STEPS = 64, 8
#: Rows are as many as the trees that want more, rounded up to a share of all: each number of rows is recorded.
SHARES = 16
#: The work of telling what was found, beside those of so many steps with so many rows.
TELL = (0, 0)

_TREE = ("bounds", "done", "made")
_NODE = ("headers", "raw", "rewards", "discounts")
_EDGE = ("sums", "visits", "priors", "actions", "children")
#: What is said of leaves, and the kernel's name for its type.
_SAID = {"reward": "reward_type", "value": "value_type", "logits": "logits_type", "own_discount": "discount_type"}


class DeviceTrees(ABC):
    """Trees that are searched side by side, and memory for the next ones."""

    def __init__(
        self,
        shape: TreeShape,
        device: Any,
        prepare: Callable[[], AbstractContextManager[Any]],
        launch: Launch | None = None,
    ) -> None:
        self.shape = shape
        self.trees = 0
        """How many are searched; there may be memory for more."""
        shapes = shape.shapes()
        # Whoever makes the first search may be in inference mode, and the next not.
        with torch.inference_mode(False):
            self._first = First(shapes, device)
            made = {name: torch.zeros(shapes[rows], dtype=dtype, device=device) for name, dtype, rows in LATER}
            self._arrays = self._first.arrays | made
        # What comes down after a search: all about the roots.
        self._shown = {name: self._arrays[name][:, 0] for name in (*_NODE, *_EDGE) if len(self._arrays[name])}
        self._shown |= {name: self._arrays[name] for name in (*_TREE, "rows", "unsound")}
        self._told = {
            name: torch.zeros(array.shape, dtype=array.dtype, pin_memory=device.type == "cuda")
            for name, array in self._shown.items()
        }
        self._slots: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._struct = Trees(**{name: array.data_ptr() for name, array in self._arrays.items()})
        self._struct.rules = rules_of(shape)
        self._lengths = lengths_of(shape)
        self._next = 0
        """The next of them."""
        self._said: dict[str, Any] = {}
        """What was said last, where it lies."""
        self._launch = launch or compiled(device, shape)
        self._graphs = Graphs(device, self._work, prepare)

    def begin(self, roots: dict[str, Any]) -> None:
        """Takes roots as the engine gives them."""
        self._slots = roots["slots"]
        self.trees = len(roots["counts"])
        given = {place: roots[name] for name, place in GIVEN.items() if len(roots.get(name, ()))}
        self._next = 0
        try:
            self._first.send(given, self.trees, self.shape.simulations)
        finally:
            # An interrupt may come in between, and then somebody waits for it.
            self._graphs.follow()

    def go_on(self) -> bool:
        """Begins some more steps, once those before are done; False if no tree wants more simulations."""
        if self._next == len(self._lengths):
            return False
        shape, active = self.shape, self.trees
        if self._next:
            self._graphs.wait()
            active = int((self._told["done"].numpy() < shape.simulations).sum())
            if active == 0 or not self.is_sound:
                return False
        share = -(-shape.trees // SHARES)
        rows = min(-(-active // share) * share, shape.trees)
        self._graphs.launch((self._lengths[self._next], rows))
        self._next += 1
        return True

    def tell(self) -> None:
        """Begins to tell what was found."""
        self._graphs.launch(TELL)

    def wait(self) -> None:
        """Comes back when all that was begun is done."""
        self._graphs.wait()

    def drain(self) -> None:
        """Comes back when the device does nothing more for these trees, whatever went wrong."""
        self._graphs.drain()

    @property
    def is_sound(self) -> bool:
        """Whether everything that was answered may be."""
        return not bool(self._told["unsound"][0])

    @property
    def rows(self) -> int:
        """How many questions were asked."""
        return int(self._told["rows"].sum())

    def roots(self) -> Columns:
        """What the engine is told of the roots."""
        return self._columns(self._told)

    def nodes(self) -> Columns:
        """What it is told of all nodes."""
        return self._columns({name: self._arrays[name][: self.trees].cpu() for name in (*_NODE, *_EDGE)})

    def forget(self) -> None:
        """Drops what was recorded: the weights are elsewhere."""
        self._graphs.forget()

    def _columns(self, tensors: dict[str, Any]) -> Columns:
        told = tensors | {name: self._told[name] for name in _TREE}
        columns = {
            name: told[name][: self.trees].numpy().reshape(-1) for name in (*_NODE, *_EDGE, *_TREE) if name in told
        }
        # Games have no rewards.
        return dict.fromkeys(_NODE, np.zeros(0)) | columns | {"slots": self._slots}

    def _work(self, what: tuple[int, int]) -> None:
        if what == TELL:
            for name, place in self._told.items():
                place.copy_(self._shown[name], non_blocking=True)
            return
        steps, rows = what
        self._struct.rules.rows = rows
        if self.shape.is_game:
            finished = self._arrays["done"] >= self.shape.simulations
            self._arrays["order"].copy_(finished.to(torch.uint8).argsort(stable=True))
        for _ in range(steps):
            self._launch(self._struct, True)
            self._said = self._ask(rows)
            for name, column in self._said.items():
                self._hear(name, column, rows)
        # The last answers are taken at once: rows may belong to other trees afterwards.
        self._launch(self._struct, False)
        for name in ("done", "unsound"):
            self._told[name].copy_(self._shown[name], non_blocking=True)

    def _hear(self, name: str, column: Any, rows: int) -> None:
        """Lets the kernel read what was said."""
        place = self._arrays[name][:rows]
        if not isinstance(column, torch.Tensor) or column.dtype == torch.float64 or column.is_complex():
            raise NotForLanes("only tensors of at most 32 bits fit")
        if column.device != place.device:
            raise NotForLanes("what lies elsewhere cannot be read")
        if column.numel() != place.numel() or len(column) != rows or (name == "logits" and column.ndim != 2):
            raise NotForLanes("shapes that may be wrong are told in words")
        if column.dtype not in NUMBER_TYPES or not column.is_contiguous():
            place.copy_(column.reshape(place.shape))
            column = self._said[name] = place
        setattr(self._struct, name, column.data_ptr())
        setattr(self._struct.rules, _SAID[name], NUMBER_TYPES[column.dtype])

    @abstractmethod
    def _ask(self, rows: int) -> dict[str, Any]:
        """Asks about the new leaves of so many rows: what was said, by the kernel's names."""


class Kept:
    """Trees of a few kinds, kept for the next searches. They are large: the oldest make room for new ones."""

    def __init__(self) -> None:
        self._shapes: dict[TreeShape, DeviceTrees | None] = {}

    def find(self, shape: TreeShape, make: Callable[[TreeShape], DeviceTrees]) -> DeviceTrees | None:
        """Memory for as many trees or a few more, so that games which end one by one do not ask for new one each time.

        None where there is none to be had, or no kernel.
        """
        shape = replace(shape, trees=padded(shape.trees))
        if shape in self._shapes:
            self._shapes[shape] = self._shapes.pop(shape)
            return self._shapes[shape]
        while self._shapes and shape.bytes + sum(other.bytes for other in self._shapes) > MOST_BYTES:
            del self._shapes[next(iter(self._shapes))]
        try:
            self._shapes[shape] = make(shape)
        except (NotForLanes, RuntimeError):
            # No memory is left on the device, or of the kind that it reads by itself.
            self._shapes[shape] = None
        return self._shapes[shape]

    def forget(self) -> None:
        """Drops what was recorded: the weights are elsewhere."""
        for trees in self._shapes.values():
            if trees is not None:
                trees.forget()


class Grove:
    """All trees of a forest, in groups that take turns on the device."""

    def __init__(self, groups: Sequence[DeviceTrees], sizes: Sequence[int]) -> None:
        self._groups = groups
        self.simulations = groups[0].shape.simulations
        self.sizes = sizes

    def search(self, leave: Callable[[int], dict[str, Any]], stopped: Callable[[], bool]) -> bool:
        """Searches from the roots that the engine gives of each group, until all simulations are done or it is to stop.

        False if something was answered that may not be; the engine then asks again, and tells.
        """
        under_way: deque[DeviceTrees] = deque()
        try:
            for number, group in enumerate(self._groups):
                roots = leave(number)
                # If one begins, all do, or there would be trees that nobody planted.
                if number == 0 and stopped():
                    return False
                group.begin(roots)
                if group.go_on():
                    under_way.append(group)
            while under_way and not stopped():
                group = under_way.popleft()
                if group.go_on():
                    under_way.append(group)
            for group in self._groups:
                group.tell()
            for group in self._groups:
                group.wait()
        except BaseException:
            # Nothing may be written into memory that others get next.
            for group in self._groups:
                group.drain()
            raise
        return all(group.is_sound for group in self._groups)

    @property
    def rows(self) -> int:
        """How many questions were asked."""
        return sum(group.rows for group in self._groups)

    def roots(self) -> list[Columns]:
        """What the engine is told of the roots of each group."""
        return [group.roots() for group in self._groups]

    def nodes(self) -> list[Columns]:
        """What it is told of all nodes."""
        return [group.nodes() for group in self._groups]


def lengths_of(shape: TreeShape) -> list[int]:
    """How many steps are begun together, piece after piece: as many as simulations in all.

    Ends of a game need no answer, so that trees are done sooner or later: the nearer that is, the oftener one looks.
    """
    lengths, left = [], shape.simulations
    while left:
        length = max(_power(left // 2), FEWEST_STEPS) if shape.is_game else left
        lengths.append(min(length, MOST_STEPS, left))
        left -= lengths[-1]
    return lengths


def _power(number: int) -> int:
    """The greatest power of two that is not above a number."""
    return 1 << number.bit_length() >> 1


#: The bits of the number 1.
ONES = {torch.float32: 0x3F800000, torch.bfloat16: 0x3F80, torch.float16: 0x3C00}


class GameTrees(DeviceTrees):
    """The kernel knows the game, and writes what the network sees of a position where that reads it."""

    def __init__(
        self,
        shape: TreeShape,
        device: Any,
        forward: Callable[[Any], tuple[Any, Any]],
        prepare: Callable[[], AbstractContextManager[Any]],
        observations: Any,
        launch: Launch | None = None,
    ) -> None:
        """`forward` gives (logits, values) of `observations` [trees, planes, height, width], which lie close."""
        super().__init__(shape, device, prepare, launch)
        self._forward, self._observations = forward, observations
        rules, self._struct.observations = self._struct.rules, observations.data_ptr()
        rules.one, rules.bits = ONES[observations.dtype], 8 * observations.element_size()
        _, rules.plane_step, rules.row_step, rules.column_step = observations.stride()

    def _ask(self, rows: int) -> dict[str, Any]:
        """The network's word on the new leaves."""
        logits, values = self._forward(self._observations[:rows])
        return {"logits": logits, "value": values}
