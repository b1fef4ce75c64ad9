"""Kernels of GPUs, compiled as they are for the processor of this machine."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

#: None where there is none.
COMPILER = shutil.which("cc")


@functools.cache
def for_a_processor(source: Path, options: tuple[str, ...]) -> Any:
    """The kernel of a file, which has one thread in a block and one lane in a warp."""
    built = Path(tempfile.mkdtemp()) / f"{source.stem}.so"
    flags = ("-x", "c", "-std=c11", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Werror", "-Wall")
    subprocess.run(
        [str(COMPILER), *flags, "-Wno-unused-function", *options, str(source), "-o", str(built), "-lm"], check=True
    )
    return ctypes.CDLL(str(built))
