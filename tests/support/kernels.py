"""GPU kernels compiled as C for the CPU, from the same sources."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

#: Path of the C compiler, or None.
COMPILER = shutil.which("cc")


@functools.cache
def compile_for_cpu(source: Path, options: tuple[str, ...]) -> Any:
    """Compiles a kernel with one thread per block and one lane per warp; returns the shared library."""
    built = Path(tempfile.mkdtemp()) / f"{source.stem}.so"
    flags = ("-x", "c", "-std=c11", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Werror", "-Wall")
    subprocess.run(
        [str(COMPILER), *flags, "-Wno-unused-function", *options, str(source), "-o", str(built), "-lm"], check=True
    )
    return ctypes.CDLL(str(built))
