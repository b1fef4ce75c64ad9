"""The arrays of trees on a device: one description, which the kernels' `layout.h` and the host share."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pondertree.config import Halving, LogPuct, Puct
from pondertree.gpu.tree_shape import TreeShape

Columns = dict[str, NDArray[Any]]
_NORMALIZE = {"node": 0, "tree": 1, None: 2}


class Rules(ctypes.Structure):
    """`Rules` of the kernel."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("nodes", "actions", "players")),
        *((name, ctypes.c_int) for name in ("normalize", "rescale", "mixed", "has_discount")),
        *((name, ctypes.c_int) for name in ("fpu_parent", "reward_type", "value_type", "logits_type")),
        *((name, ctypes.c_int) for name in ("discount_type", "one", "bits", "plane_step")),
        *((name, ctypes.c_int) for name in ("row_step", "column_step", "rows")),
        *((name, ctypes.c_double) for name in ("discount", "value_scale", "maxvisit_init", "fpu")),
    )


#: Types of networks' numbers that kernels read as they are, as `numbers.h` calls them.
NUMBER_TYPES = {torch.float32: 0, torch.bfloat16: 1}
#: Arrays of the kernel in its order: name, type, and what their rows are.
ARRAYS: tuple[tuple[str, torch.dtype, str], ...] = (
    ("root_count", torch.int32, "tree"),
    ("root_to_play", torch.int32, "tree"),
    ("root_actions", torch.int16, "action"),
    ("root_priors", torch.float32, "action"),
    ("root_raw", torch.float64, "tree"),
    ("keys", torch.int64, "tree"),
    ("begun", torch.int64, "tree"),
    ("root_boards", torch.int64, "board"),
    ("slots", torch.int64, "slot"),
    ("draws", torch.float64, "draw"),
    ("considered", torch.int32, "simulation"),
    ("weights", torch.float64, "visits"),
    ("order", torch.int32, "tree"),
    ("reward", torch.float32, "tree"),
    ("value", torch.float32, "tree"),
    ("own_discount", torch.float32, "tree"),
    ("logits", torch.float32, "action"),
    ("headers", torch.int32, "header"),
    ("raw", torch.float64, "node"),
    ("rewards", torch.float64, "gain"),
    ("discounts", torch.float64, "gain"),
    ("sums", torch.float64, "edge"),
    ("visits", torch.int32, "edge"),
    ("priors", torch.float32, "edge"),
    ("actions", torch.int16, "edge"),
    ("children", torch.int16, "edge"),
    ("bounds", torch.float64, "pair"),
    ("path", torch.int32, "node"),
    ("depth", torch.int32, "tree"),
    ("done", torch.int32, "tree"),
    ("made", torch.int32, "tree"),
    ("asked", torch.int32, "tree"),
    ("rows", torch.int32, "tree"),
    ("unsound", torch.int32, "one"),
    ("boards", torch.int64, "position"),
    ("parents", torch.int64, "model"),
    ("chosen", torch.int64, "model"),
    ("targets", torch.int64, "model"),
)
#: What the engine calls the arrays that begin a search.
GIVEN = {
    "counts": "root_count",
    "to_play": "root_to_play",
    "actions": "root_actions",
    "priors": "root_priors",
    "raw": "root_raw",
    "keys": "keys",
    "begun": "begun",
    "boards": "root_boards",
    "slots": "slots",
    "draws": "draws",
    "considered": "considered",
    "weights": "weights",
}
#: Those, and what a search has from its beginning without being told.
_BEGIN = frozenset((*GIVEN.values(), "order", "done", "asked", "rows", "unsound"))
LATER = [array for array in ARRAYS if array[0] not in _BEGIN]
#: Arrays in one piece of memory begin at multiples of so many bytes.
ALIGNED = 256


class Trees(ctypes.Structure):
    """`Trees` of the kernel."""

    _fields_ = (
        ("rules", Rules),
        *((name, ctypes.c_void_p) for name in (*(each for each, _, _ in ARRAYS), "observations")),
    )
    rules: Rules


class First:
    """What a search begins with, in one piece of memory: it goes to the device at once."""

    def __init__(self, shapes: dict[str, tuple[int, ...]], device: Any) -> None:
        wanted = {name: (dtype, shapes[rows]) for name, dtype, rows in ARRAYS if name in _BEGIN}
        sizes = [-(-math.prod(shape) * dtype.itemsize // ALIGNED) * ALIGNED for dtype, shape in wanted.values()]
        self._device = torch.zeros(sum(sizes), dtype=torch.uint8, device=device)
        self._host = torch.zeros(sum(sizes), dtype=torch.uint8, pin_memory=device.type == "cuda")
        self.arrays: dict[str, Any] = {}
        """Those on the device."""
        self._places: Columns = {}
        for (name, (dtype, shape)), first in zip(wanted.items(), itertools.accumulate(sizes, initial=0), strict=False):
            bytes_of = slice(first, first + math.prod(shape) * dtype.itemsize)
            self.arrays[name] = self._device[bytes_of].view(dtype).view(shape)
            self._places[name] = self._host[bytes_of].view(dtype).numpy()
        self._places["order"][:] = np.arange(len(self._places["order"]))

    def send(self, given: Columns, trees: int, simulations: int) -> None:
        """Begins to send what the engine gives of so many trees, not planted yet. Others are as if they were done."""
        for name, array in given.items():
            self._places[name][: len(array)] = array.view(np.int64) if array.dtype == np.uint64 else array
        self._places["done"][:trees] = -1
        self._places["done"][trees:] = simulations
        self._device.copy_(self._host, non_blocking=True)


def rules_of(shape: TreeShape) -> Rules:
    """A rule as the kernel reads it."""
    rule = shape.rule
    rules = Rules(nodes=shape.simulations + 1, actions=shape.actions, players=shape.players)
    rules.discount = shape.discount
    rules.normalize = _NORMALIZE[rule.normalize if isinstance(rule, LogPuct) else None]
    if isinstance(rule, Puct):
        rules.fpu, rules.fpu_parent = rule.fpu, int(rule.fpu_parent)
    elif isinstance(rule, Halving):
        rules.rescale, rules.mixed = int(rule.rescale_values), int(rule.use_mixed_value)
        rules.value_scale, rules.maxvisit_init = rule.value_scale, rule.maxvisit_init
    return rules
