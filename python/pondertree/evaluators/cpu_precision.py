"""Probes whether PyTorch can compute in bfloat16 or float16 on this CPU.

A virtual machine may advertise AMX without being able to run it. PyTorch then dies of SIGILL or raises "could not
create a primitive", after which float32 convolutions of the same process fail as well. Each dtype is therefore probed
once, in a child process, when it is first used on the CPU.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from functools import lru_cache
from typing import Any

from pondertree.errors import InvalidArgumentError

#: Environment variable that replaces the probe: "fail" or "pass".
VARIABLE = "PONDERTREE_CPU_PRECISION_PROBE"
WORKAROUND = "use float32, or set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE before Python starts"
REDUCED = ("bfloat16", "float16")
#: In seconds; the import of PyTorch dominates.
TIME_LIMIT = 120.0

# Prints "begun" after the import of PyTorch and "done" at the end. Layers of small and larger networks run with cast
# inputs, under autocast, and in float32 afterwards.
_CODE = """
import contextlib, sys
with contextlib.suppress(ImportError, OSError, ValueError):
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import torch
from torch import nn
print("begun", flush=True)
dtype = getattr(torch, sys.argv[1])
def check(answer, expected):
    if not torch.allclose(answer.float(), expected, atol=0.1):
        raise SystemExit("wrong results")
with torch.inference_mode():
    for rows, width in ((1, 16), (8, 16), (32, 64)):
        boards = torch.rand(rows, width, 8, 8)
        vectors = boards.mean((2, 3))
        trials = [
            (nn.Conv2d(width, width, 3, padding=1), boards),
            (nn.Conv2d(width, width, 1), boards.contiguous(memory_format=torch.channels_last)),
            (nn.Linear(width, width), vectors),
            (nn.Bilinear(width, width, 8), vectors),
        ]
        for layer, x in trials:
            inputs = (x, x) if isinstance(layer, nn.Bilinear) else (x,)
            expected = layer(*inputs)
            with torch.autocast("cpu", dtype=dtype):
                check(layer(*inputs), expected)
            check(layer.to(dtype)(*(one.to(dtype) for one in inputs)), expected)
            check(layer.float()(*inputs), expected)
        square = boards.flatten(2)
        check(torch.bmm(square.to(dtype), square.to(dtype).mT) / 64, torch.bmm(square, square.mT) / 64)
print("done")
"""


def check_cpu_precision(device: Any, *dtypes: Any) -> None:
    """Raises `InvalidArgumentError` for dtypes that do not work if `device` is this CPU; None counts as float32."""
    for dtype in dtypes:
        name = str(dtype).removeprefix("torch.")
        if name in REDUCED and device.type == "cpu":
            reason = cpu_precision_failure(name)
            if reason is not None:
                raise InvalidArgumentError(f"{name} does not work on this CPU ({reason}): {WORKAROUND}")


def cpu_precision_failure(name: str) -> str | None:
    """Why PyTorch cannot compute in a dtype ("bfloat16" or "float16") on this CPU; None if it can."""
    outcome = os.environ.get(VARIABLE)
    if outcome == "fail":
        return f"{VARIABLE} is set to fail"
    if outcome == "pass":
        return None
    if outcome:
        raise InvalidArgumentError(f"{VARIABLE} must be fail or pass, not {outcome!r}")
    return _probe(name)


@lru_cache
def _probe(name: str) -> str | None:
    """Runs the probe; None also if it cannot be run, which says nothing about the CPU."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _CODE, name]  # -P: modules of the working directory are not imported
    try:
        child = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired as error:
        if b"begun" not in (error.stdout or b"").split():
            return None
        return f"a trial in a child process took more than {TIME_LIMIT:.0f} s"
    except OSError:
        return None
    printed = child.stdout.split()
    if b"begun" not in printed or b"done" in printed:
        return None
    if child.returncode < 0:
        reason = f"signal {-child.returncode}"
        with contextlib.suppress(ValueError):
            reason = signal.Signals(-child.returncode).name
    else:
        reason = (child.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1][:200]
    return f"a trial in a child process ended with {reason}"
