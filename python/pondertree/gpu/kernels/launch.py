"""The kernel, compiled for trees of one kind: from one question of each to the next."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pondertree.config import Halving
from pondertree.gpu.kernels.nvrtc import NotCompiled, kernel
from pondertree.gpu.protocol import NotForLanes
from pondertree.gpu.tree_layout import Trees
from pondertree.gpu.tree_shape import TreeShape

SOURCE = Path(__file__).parent / "step.cu"
#: Warps of one block.
WARPS = 4
#: So many simulations of a tree that end without a question are done in one step, at most: all trees wait for it.
PATIENCE = 3
#: Begins one step of every row: all arrays, and whether a next question is wanted.
Launch = Callable[[Trees, bool], None]


def options_of(shape: TreeShape, lanes: int) -> tuple[str, ...]:
    """What the kernel is compiled with, for warps of so many lanes."""
    groups = 1
    while groups * lanes < shape.actions:
        groups *= 2
    return (
        f"-DPLACES={shape.actions}",
        f"-DGROUPS={groups}",
        f"-DGUMBEL={int(isinstance(shape.rule, Halving))}",
        f"-DCONNECT_FOUR={int(shape.is_game)}",
        f"-DPATIENCE={PATIENCE}",
    )


def compiled(device: Any, shape: TreeShape) -> Launch:
    """The kernel for a device. `NotForLanes` where there is no compiler."""
    if device.type != "cuda":
        raise NotForLanes("only GPUs of CUDA are programmed")
    index = torch.cuda.current_device() if device.index is None else device.index
    try:
        # Products are not added without rounding, as the engine does not, either.
        step = kernel(SOURCE, "step", (*options_of(shape, 32), f"-DWARPS={WARPS}", "--fmad=false"), index)
    except NotCompiled as error:
        warnings.warn(
            f"trees cannot grow on this GPU, and the processor searches: {error}", RuntimeWarning, stacklevel=2
        )
        raise NotForLanes(f"no kernel: {error}") from error

    def launch(struct: Trees, goes_on: bool) -> None:
        step.launch(-(-struct.rules.rows // WARPS), 32 * WARPS, (struct, ctypes.c_int(int(goes_on))))

    return launch
