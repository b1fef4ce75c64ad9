"""The arrays of device-resident trees: the one description that the host, the kernel and `kernels/layout.h` share."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pondertree.config import GumbelRule, LogPuct, Puct
from pondertree.gpu.tree_shape import TreeShape

Columns = dict[str, NDArray[Any]]
_NORMALIZE: dict[str | None, int] = {"node": 0, "tree": 1, None: 2}
#: Dtypes of network outputs that kernels read in place, and their codes in `outputs.h`.
DTYPE_CODES = {torch.float32: 0, torch.bfloat16: 1}
#: Arrays within one allocation begin at multiples of this many bytes.
ALIGNMENT = 256

#: Fields of `SearchParameters`, which all trees of a search have in common.
_SIZES = ("nodes", "actions", "players")
_OPTIONS = ("normalize", "rescale_values", "use_mixed_value", "has_discount", "fpu_parent")
#: Codes of output dtypes; bit pattern of the number 1 in observations, bits per number, strides; rows of the step.
_OBSERVATIONS = (
    *("reward_type", "value_type", "logits_type", "discount_type"),
    *("one_bits", "bits_per_value", "plane_step", "row_step", "column_step", "rows"),
)
_NUMBERS = ("discount", "value_scale", "maxvisit_init", "fpu")

_DTYPES = {
    **{"int": torch.int32, "short": torch.int16, "float": torch.float32, "double": torch.float64},
    **{"int64": torch.int64, "uint64": torch.int64, "void": torch.float32, "Header": torch.int32},
}
#: Name, element type in C (`void`: float32, or an output in place), and row kind (`TreeShape.dimensions`).
_ROOTS = (
    ("root_count", "const int", "tree"),
    ("root_to_play", "const int", "tree"),
    ("root_actions", "const short", "action"),
    ("root_priors", "const float", "action"),
    ("root_raw", "const double", "tree"),
    ("keys", "const uint64", "tree"),
    ("simulation_offset", "const uint64", "tree"),
    ("root_boards", "const uint64", "root_board"),
    ("slots", "const int64", "slot"),
    ("draws", "const double", "draw"),
    ("considered", "const int", "simulation"),
    ("weights", "const double", "visits"),
    ("row_to_tree", "const int", "tree"),
)
_NETWORK_OUTPUTS = (
    ("reward", "const void", "tree"),
    ("value", "const void", "tree"),
    ("model_discount", "const void", "tree"),
    ("logits", "const void", "action"),
)
_TREES = (
    ("headers", "Header", "header"),
    ("raw", "double", "node"),
    ("rewards", "double", "reward"),
    ("discounts", "double", "reward"),
    ("sums", "double", "edge"),
    ("visits", "int", "edge"),
    ("priors", "float", "edge"),
    ("actions", "short", "edge"),
    ("children", "short", "edge"),
    ("bounds", "double", "bounds"),
)
_STATE = (
    ("path", "int", "node"),
    ("depth", "int", "tree"),
    ("simulations", "int", "tree"),
    ("nodes_added", "int", "tree"),
    ("pending", "int", "tree"),
    ("rows", "int", "tree"),
    ("has_invalid_output", "int", "scalar"),
    ("boards", "uint64", "board"),
)
_REQUESTS = (
    ("request_parents", "int64", "request"),
    ("request_actions", "int64", "request"),
    ("request_slots", "int64", "request"),
)
_SECTIONS = (
    (
        "Roots as the engine exports them, and the tree of each row: unfinished trees come first.",
        _ROOTS,
    ),
    ("A network's outputs for each row, of the dtypes in `SearchParameters`.", _NETWORK_OUTPUTS),
    ("Nodes [trees, nodes] and edges [trees, nodes, actions].", _TREES),
    (
        "Of each tree: the descent; simulations done (-1 before the root is written), nodes added, whether a request\n"
        "    // is pending, total requests. Whether any output was invalid. Stones of both players.",
        _STATE,
    ),
    ("The next requests of a learned model, row by row.", _REQUESTS),
)
ARRAYS = tuple(array for _, section in _SECTIONS for array in section)
#: The engine's names of exported columns, and the arrays that receive them.
ROOT_COLUMNS = {
    "counts": "root_count",
    "to_play": "root_to_play",
    "actions": "root_actions",
    "priors": "root_priors",
    "raw": "root_raw",
    "keys": "keys",
    "begun": "simulation_offset",
    "boards": "root_boards",
    "slots": "slots",
    "draws": "draws",
    "considered": "considered",
    "weights": "weights",
}
_STAGED = frozenset((*ROOT_COLUMNS.values(), "row_to_tree", "simulations", "pending", "rows", "has_invalid_output"))


def _with_dtypes(is_staged: bool) -> list[tuple[str, torch.dtype, str]]:
    return [
        (name, _DTYPES[kind.removeprefix("const ")], rows)
        for name, kind, rows in ARRAYS
        if (name in _STAGED) == is_staged
    ]


#: Arrays (name, dtype, row kind) that the kernel initialises.
SEARCH_ARRAYS = _with_dtypes(is_staged=False)


class SearchParameters(ctypes.Structure):
    """`SearchParameters` of the kernel."""

    _fields_ = (
        *((name, ctypes.c_int) for name in (*_SIZES, *_OPTIONS, *_OBSERVATIONS)),
        *((name, ctypes.c_double) for name in _NUMBERS),
    )


class TreeArrays(ctypes.Structure):
    """`TreeArrays` of the kernel."""

    _fields_ = (
        ("params", SearchParameters),
        *((name, ctypes.c_void_p) for name in (*(name for name, _, _ in ARRAYS), "observations")),
    )
    params: SearchParameters


class StagingBuffer:
    """The arrays that start a search, in one pinned allocation that is uploaded by one copy."""

    def __init__(self, dimensions: dict[str, tuple[int, ...]], device: Any) -> None:
        staged = {name: (dtype, dimensions[rows]) for name, dtype, rows in _with_dtypes(is_staged=True)}
        sizes = [-(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT for dtype, shape in staged.values()]
        self._device = torch.zeros(sum(sizes), dtype=torch.uint8, device=device)
        self._host = torch.zeros(sum(sizes), dtype=torch.uint8, pin_memory=device.type == "cuda")
        self.arrays: dict[str, Any] = {}
        """Views on the device."""
        self._views: Columns = {}
        for (name, (dtype, shape)), first in zip(staged.items(), itertools.accumulate(sizes, initial=0), strict=False):
            bytes_of = slice(first, first + math.prod(shape) * dtype.itemsize)
            self.arrays[name] = self._device[bytes_of].view(dtype).view(shape)
            self._views[name] = self._host[bytes_of].view(dtype).numpy()
        self._views["row_to_tree"][:] = np.arange(len(self._views["row_to_tree"]))

    def send(self, columns: Columns, trees: int, simulations: int) -> None:
        """Starts the upload of exported roots; rows beyond `trees` are marked as finished."""
        for name, array in columns.items():
            self._views[name][: len(array)] = array.view(np.int64) if array.dtype == np.uint64 else array
        self._views["simulations"][:trees] = -1
        self._views["simulations"][trees:] = simulations
        self._device.copy_(self._host, non_blocking=True)


def search_parameters(shape: TreeShape) -> SearchParameters:
    """Returns the scoring rule as the kernel reads it."""
    rule = shape.rule
    params = SearchParameters(nodes=shape.simulations + 1, actions=shape.actions, players=shape.players)
    params.discount = shape.discount
    params.normalize = _NORMALIZE[rule.normalize if isinstance(rule, LogPuct) else None]
    if isinstance(rule, Puct):
        params.fpu_parent, params.fpu = rule.relative_fpu
    elif isinstance(rule, GumbelRule):
        params.rescale_values, params.use_mixed_value = int(rule.rescale_values), int(rule.use_mixed_value)
        params.value_scale, params.maxvisit_init = rule.value_scale, rule.maxvisit_init
    return params


def header() -> str:
    """The text of `kernels/layout.h`."""
    lines = [
        "// The arrays of device-resident trees. Generated by `python -m pondertree.gpu.tree_layout`.",
        *("", '#include "outputs.h"', ""),
        *(f"#define BY_{name.upper()} {code}" for name, code in _NORMALIZE.items() if name is not None),
        *("", "typedef struct {"),
        *(f"    int {', '.join(names)};" for names in (_SIZES, _OPTIONS, _OBSERVATIONS)),
        f"    double {', '.join(_NUMBERS)};",
        *("} SearchParameters;", "", "typedef struct {", "    int to_play, count, opened, padding;", "} Header;", ""),
        *("typedef struct {", "    SearchParameters params;"),
    ]
    for title, arrays in _SECTIONS:
        lines.append(f"    // {title}")
        lines += [f"    {kind} *{name};" for name, kind, _ in arrays]
    lines += ["    // The next observations of a network, row by row.", "    void *observations;", "} TreeArrays;", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    from pathlib import Path

    (Path(__file__).parent / "kernels" / "layout.h").write_text(header(), encoding="utf-8")
