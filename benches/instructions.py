"""Counts the instructions of single-threaded kernels with callgrind, and compares two versions of the package.

    python benches/instructions.py                   this interpreter's package, with the recorded counts
    python benches/instructions.py OLD.whl           a wheel, with this interpreter's package
    python benches/instructions.py OLD.whl NEW.whl   two wheels
    python benches/instructions.py --record          renew the recorded counts

The bar is a ratio of 1.02 for each kernel; the exit status is 1 if one misses it. Counts repeat within 0.1 % on the
same machine, and hardly depend on its load. They do depend on the compiler, Python, NumPy and the CPU's instruction
sets: recorded counts of another environment are compared for information only. Build the engine in the profile
`release` on both sides, as `make bench` does. Needs Valgrind (`apt-get install valgrind`) and x86-64 Linux; takes about
a minute for each side.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from installations import HERE, Side, side
from kernels import KERNELS

BASELINE = HERE / "baselines" / "instructions.json"
BAR = 1.02
#: Valgrind does not support AVX-512: hidden from NumPy and OpenBLAS.
ENVIRONMENT = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "PYTHONWARNINGS": "ignore",
}
#: A label in callgrind's output and its instruction count.
PART = re.compile(r"^desc: Trigger: Client Request: (.+?)$.*?^summary: (\d+)$", re.MULTILINE | re.DOTALL)


def missing_tool() -> str | None:
    """Returns why instructions cannot be counted on this machine; None if they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "instructions are counted on x86-64 Linux only"
    return None if shutil.which("valgrind") else "valgrind is not installed (apt-get install valgrind)"


def counted(which: Side, names: list[str]) -> dict[str, int]:
    """Returns the instructions per kernel."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind"
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}"]
        command = [*valgrind, str(which.python), "-B", str(HERE / "instruction_kernels.py"), *names]
        if shutil.which("setarch"):
            command = ["setarch", "-R", *command]
        environment = which.environment | ENVIRONMENT
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        parts = (PART.search(file.read_text(encoding="utf-8")) for file in output.parent.glob("callgrind.*"))
        counts = {part[1]: int(part[2]) for part in parts if part}
    return {name: counts[name] for name in names}


def environment_of_counts() -> dict[str, str]:
    """Returns the versions, besides the package's, that counts depend on."""
    asked = {"valgrind": ["valgrind", "--version"], "rustc": ["rustc", "--version"]}
    tools = {
        name: subprocess.check_output(command, text=True).strip()
        for name, command in asked.items()
        if shutil.which(command[0])
    }
    avx2 = "avx2" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return {"python": platform.python_version(), "numpy": np.__version__, "avx2": str(avx2), **tools}


def compared(old: dict[str, int], new: dict[str, int]) -> list[str]:
    """Prints a table; returns the kernels that miss the bar."""
    print(f"{'kernel':36} {'old':>14} {'new':>14}   ratio")
    missed = []
    for name in (name for name in new if name in old):
        ratio = new[name] / old[name]
        if ratio > BAR:
            missed.append(name)
        print(f"{name:36} {old[name]:14,} {new[name]:14,}  {ratio:.4f}{f'  above {BAR}' if ratio > BAR else ''}")
    return missed


def main() -> int:
    """Counts and compares; returns 1 if a kernel misses the bar, 2 if counting is impossible."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sides", nargs="*", type=Path, metavar="WHEEL", help="a wheel, or a Python interpreter")
    parser.add_argument(
        "--kernel", action="append", metavar="NAME", choices=tuple(KERNELS), help="count this kernel alone (repeatable)"
    )
    parser.add_argument("--record", action="store_true", help="write baselines/instructions.json")
    given = parser.parse_args()
    if len(given.sides) > 2 or (given.record and (given.sides or given.kernel)):
        parser.error("--record counts all kernels of this interpreter" if given.record else "give two sides at most")
    if missing := missing_tool():
        parser.error(missing)

    names = given.kernel or list(KERNELS)
    new = counted(side(given.sides[1] if len(given.sides) > 1 else None), names)
    if given.record:
        record: dict[str, Any] = {"environment": environment_of_counts(), "instructions": new}
        BASELINE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"written to {BASELINE}")
        return 0
    if given.sides:
        missed = compared(counted(side(given.sides[0]), names), new)
    else:
        record = json.loads(BASELINE.read_text(encoding="utf-8"))
        here, there = environment_of_counts(), record["environment"]
        others = [f"{name} {there.get(name)} (here {here.get(name)})" for name in here if here[name] != there.get(name)]
        missed = compared(record["instructions"], new)
        if others:
            print(f"for information only, because the counts were recorded with {', '.join(others)}")
            missed = []
    print(f"{len(missed)} of {len(new)} kernels above {BAR}" if missed else "all kernels within the bar")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
