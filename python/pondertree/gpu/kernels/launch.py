"""The tree-search kernel (`step.cu`), compiled for one shape of trees."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pondertree.gpu.kernels.nvrtc import CompilationError, kernel
from pondertree.gpu.tree_layout import TreeArrays
from pondertree.gpu.tree_shape import TreeShape

SOURCE = Path(__file__).parent / "step.cu"
WARPS_PER_BLOCK = 4
#: The most simulations of one tree in one step that end without a network request; all other trees wait for them.
MAX_TERMINAL_DESCENTS_PER_STEP = 3
#: Launches one step of every row, and whether it makes a next request.
Launch = Callable[[TreeArrays, bool], None]


def options_of(shape: TreeShape, lanes: int) -> tuple[str, ...]:
    """Compiler options for warps of `lanes` lanes."""
    groups = 1
    while groups * lanes < shape.actions:
        groups *= 2
    return (
        f"-DPLACES={shape.actions}",
        f"-DGROUPS={groups}",
        f"-DGUMBEL={int(shape.kernel == 'gumbel.h')}",
        f"-DCONNECT_FOUR={int(shape.is_game)}",
        f"-DMAX_TERMINAL_DESCENTS_PER_STEP={MAX_TERMINAL_DESCENTS_PER_STEP}",
    )


def compile_step(device: Any, shape: TreeShape) -> Launch:
    """Compiles the kernel for a device; raises `CompilationError`, after a warning, where there is no compiler."""
    if device.type != "cuda":
        raise CompilationError("kernels are compiled for CUDA devices only")
    index = torch.cuda.current_device() if device.index is None else device.index
    try:
        # Without fused multiply-add, which the engine does not use either: results are equal bit for bit.
        step = kernel(SOURCE, "step", (*options_of(shape, 32), f"-DWARPS={WARPS_PER_BLOCK}", "--fmad=false"), index)
    except CompilationError as error:
        warnings.warn(f"GPU-resident search is not available, the CPU searches: {error}", RuntimeWarning, stacklevel=2)
        raise

    def launch(struct: TreeArrays, wants_request: bool) -> None:
        blocks = -(-struct.params.rows // WARPS_PER_BLOCK)
        step.launch(blocks, 32 * WARPS_PER_BLOCK, (struct, ctypes.c_int(int(wants_request))))

    return launch
