"""The likeliest actions of a wide policy, picked on the device by one kernel; what else a model said goes along."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from pondertree.gpu.kernels.nvrtc import NotCompiled, kernel
from pondertree.gpu.tree_layout import NUMBER_TYPES

SOURCE = Path(__file__).parent / "likeliest.cu"
#: Actions of one thread at most: they are held in registers.
MOST_OWN = 32
#: Threads of a block, at least and at most.
FEWEST_THREADS, MOST_THREADS = 128, 1024


class Said(ctypes.Structure):
    """What a model said of some rows, and where the answers go, as the kernel reads it."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("reward", "value", "discount", "logits", "answers")),
        *((f"{name}_type", ctypes.c_int) for name in ("reward", "value", "discount", "logits")),
        ("most", ctypes.c_int),
        ("rows", ctypes.c_int),
    )


Launch = Callable[[Said], None]


def threads_for(actions: int) -> int:
    """Threads of a block, each of which has some actions."""
    threads = FEWEST_THREADS
    while threads * MOST_OWN < 2 * actions and threads < MOST_THREADS:
        threads *= 2
    return threads


def compiled(device: Any, actions: int) -> Launch | None:
    """The kernel for a device; None where there is none, or no compiler."""
    if device.type != "cuda" or actions > MOST_THREADS * MOST_OWN:
        return None
    return _compiled(torch.cuda.current_device() if device.index is None else device.index, actions)


@functools.cache
def _compiled(index: int, actions: int) -> Launch | None:
    """Tried once: it may be asked for while a graph is recorded, when nothing can be compiled."""
    threads = threads_for(actions)
    try:
        pick = kernel(SOURCE, "likeliest", (f"-DACTIONS={actions}", f"-DTHREADS={threads}"), index)
    except NotCompiled as error:
        warnings.warn(f"wide policies are slower on this GPU: {error}", RuntimeWarning, stacklevel=2)
        return None
    return lambda said: pick.launch(said.rows, threads, (said,))


def pick_likeliest(launch: Launch, columns: Sequence[Any], logits: Any, most: int) -> Any:
    """[rows, 2 or 3 columns + 2 + 2 most]: reward, value and discount if there is one; the logarithm of the sum of the
    exponentials of all logits [rows, actions], as the sum of two numbers; the `most` highest logits, lowest action
    first, and their actions.
    """
    rows = len(logits)
    answers = torch.empty((rows, len(columns) + 2 + 2 * most), dtype=torch.float32, device=logits.device)
    said = Said(answers=answers.data_ptr(), most=most, rows=rows)
    kept = []
    for name, column in zip(("logits", "reward", "value", "discount"), (logits, *columns), strict=False):
        column = column if column.dtype in NUMBER_TYPES else column.float()
        kept.append(column.contiguous())
        setattr(said, name, kept[-1].data_ptr())
        setattr(said, f"{name}_type", NUMBER_TYPES[column.dtype])
    launch(said)
    return answers
