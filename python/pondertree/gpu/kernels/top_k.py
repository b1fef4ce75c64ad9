"""The top-k kernel: reduces the policies of a large action space so that only k logits are downloaded."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from pondertree.gpu.kernels.nvrtc import CompilationError, kernel
from pondertree.gpu.tree_layout import DTYPE_CODES

SOURCE = Path(__file__).parent / "top_k.cu"
#: The most actions of one thread, which holds their keys in registers.
MAX_ACTIONS_PER_THREAD = 32
#: Threads per block.
MIN_THREADS, MAX_THREADS = 128, 1024


class ModelOutput(ctypes.Structure):
    """`ModelOutput` of the kernel: the outputs of a model, and where the responses go."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("reward", "value", "discount", "logits", "responses")),
        *((f"{name}_type", ctypes.c_int) for name in ("reward", "value", "discount", "logits")),
        ("k", ctypes.c_int),
        ("rows", ctypes.c_int),
    )


Launch = Callable[[ModelOutput], None]


def threads_for(actions: int) -> int:
    """Threads per block for this many actions."""
    threads = MIN_THREADS
    while threads * MAX_ACTIONS_PER_THREAD < 2 * actions and threads < MAX_THREADS:
        threads *= 2
    return threads


def compile_top_k(device: Any, actions: int) -> Launch | None:
    """The kernel for a device; None if it is no GPU, or if there is no compiler."""
    if device.type != "cuda" or actions > MAX_THREADS * MAX_ACTIONS_PER_THREAD:
        return None
    return _compiled(torch.cuda.current_device() if device.index is None else device.index, actions)


@functools.cache
def _compiled(index: int, actions: int) -> Launch | None:
    """Compiles once, even after a failure: later calls may come during a capture, when nothing can be compiled."""
    threads = threads_for(actions)
    try:
        select = kernel(SOURCE, "top_k", (f"-DACTIONS={actions}", f"-DTHREADS={threads}"), index)
    except CompilationError as error:
        warnings.warn(f"large action spaces are slower on this GPU: {error}", RuntimeWarning, stacklevel=2)
        return None
    return lambda outputs: select.launch(outputs.rows, threads, (outputs,))


def top_k_responses(launch: Launch, columns: Sequence[Any], logits: Any, k: int) -> Any:
    """Returns float32 [rows, len(columns) + 2 + 2 k].

    The columns are reward, value and discount if there is one; log-sum-exp of the logits [rows, actions] as the sum of
    two numbers; the k highest logits, lowest action first; their actions.
    """
    rows = len(logits)
    responses = torch.empty((rows, len(columns) + 2 + 2 * k), dtype=torch.float32, device=logits.device)
    outputs = ModelOutput(responses=responses.data_ptr(), k=k, rows=rows)
    contiguous = []
    for name, column in zip(("logits", "reward", "value", "discount"), (logits, *columns), strict=False):
        column = column if column.dtype in DTYPE_CODES else column.float()
        contiguous.append(column.contiguous())
        setattr(outputs, name, contiguous[-1].data_ptr())
        setattr(outputs, f"{name}_type", DTYPE_CODES[column.dtype])
    launch(outputs)
    return responses
