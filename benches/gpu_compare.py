"""Compares two wheels on one GPU in one call: the results bit for bit, and the speed in alternating pairs.

    python benches/gpu_compare.py OLD.whl NEW.whl             ten cases of gpu_cases.py, five pairs
    python benches/gpu_compare.py OLD.whl NEW.whl chess       cases with a word in their names

Needs this interpreter's NumPy and PyTorch and installs nothing: wheels are unpacked into temporary folders. Results are
compared with networks whose arithmetic is exact, so that every tree must have the same visits. Speed is measured with
the networks of gpu.py: five pairs of measurements in two pairs of fresh processes (kernels are chosen anew in each),
each the median of several searches; which side is first alternates. A case fails if the median of new speed by old
speed is below 0.97 and the range of the five ratios (a 94 % confidence interval of their median) does not contain 1.
The exit status is 1 if a case fails or a tree differs. It takes about five minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gpu_cases import CASES, cases, unknown
from harness import Worker
from paired import Ratio

NAMES = (
    "Connect 4, 256 x 64",
    "Connect 4, 1024 x 64",
    "Connect 4, 1024 x 400",
    "Connect 4, Gumbel, 1024 x 64",
    "Connect 4, self-play, 1024 x 64",
    "chess, 256 x 64",
    "chess, 1024 x 64",
    "MuZero, 1024 x 50, 18 actions",
    "Gumbel MuZero, 1024 x 50, 18 actions",
    "MuZero, 256 x 50, 4672 actions",
)
SIDES = ("old", "new")
#: Pairs of measurements by each pair of processes.
PAIRS = (3, 2)


def workers(stack: ExitStack, wheels: list[Path], folder: Path) -> list[Worker]:
    """Starts a process per wheel."""
    found = []
    for label, wheel in zip(SIDES, wheels, strict=True):
        package = folder / label
        if not package.exists():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(package)
        environment = os.environ | {"PYTHONPATH": str(package)}
        worker = stack.enter_context(Worker(sys.executable, "gpu_worker.py", environment))
        found.append(worker)
    for label, worker in zip(SIDES, found, strict=True):
        about = worker.do("environment")
        print(f"{label}: {about}", file=sys.stderr, flush=True)
        if Path(about["package"]) != (folder / label / "pondertree").resolve():
            raise RuntimeError(f"the {label} side imported {about['package']}, not its wheel")
    return found


def compare_results(sides: list[Worker], small: bool) -> int:
    """Prints the number of trees with equal visits; returns that of the others."""
    old, new = (side.do("results", small=small) for side in sides)
    different = 0
    for name, trees in old.items():
        equal = sum(before == after for before, after in zip(trees, new[name], strict=True))
        different += len(trees) - equal
        print(f"exact network, {name}: visits equal in {equal} of {len(trees)} trees", flush=True)
    return different


def main() -> int:
    """Measures and compares; returns 1 if a case is slower or a result differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a wheel")
    parser.add_argument("new", type=Path, help="a wheel")
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of names of cases (default: ten cases)")
    parser.add_argument("--rounds", type=int, default=5, help="searches of one measurement (5)")
    parser.add_argument(
        "--small", action="store_true", help="tiny sizes, on a CPU too: only shows that everything runs"
    )
    given = parser.parse_args()
    if missing := unknown(given.words):
        parser.error(f"there is no case with {missing[0]!r} in its name; there are {'; '.join(CASES)}")
    for wheel in (given.old, given.new):
        if not zipfile.is_zipfile(wheel):
            parser.error(f"{wheel} is no wheel")

    begun = time.perf_counter()
    names = list(cases(given.words)) if given.words else list(NAMES)
    pairs: dict[str, list[list[dict[str, Any]]]] = defaultdict(list)
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for process, count in enumerate((1,) if given.small else PAIRS):
            with ExitStack() as stack:
                sides = workers(stack, [given.old, given.new], Path(folder).resolve())
                if process == 0:
                    different = compare_results(sides, given.small)
                for name in names:
                    for side in sides:
                        side.do("prepare", name=name, small=given.small)
                    for number in range(count):
                        order = (0, 1) if (number + process) % 2 == 0 else (1, 0)
                        measured = {
                            which: sides[which].do("measure", name=name, rounds=given.rounds) for which in order
                        }
                        pairs[name].append([measured[0], measured[1]])
                    spent = f"{time.perf_counter() - begun:.0f} s"
                    print(f"{spent}: {name} {_milliseconds(pairs[name])}", file=sys.stderr, flush=True)
    failed = []
    print(f"{'case':38} {'new speed by old':>22}   ms (old, new)   trees with equal visits")
    for name in names:
        ratio = Ratio.of([old["seconds"] / new["seconds"] for old, new in pairs[name]])
        if not (ratio.passed or given.small):
            failed.append(name)
        old, new = pairs[name][0]
        equal = sum(before == after for before, after in zip(old["trees"], new["trees"], strict=True))
        verdict = "" if ratio.passed else "   slower"
        print(f"{name:38} {ratio!s:>22}   {_milliseconds(pairs[name])}   {equal} of {len(old['trees'])}{verdict}")
    print(f"{len(failed)} of {len(names)} cases slower, {different} trees differ, {time.perf_counter() - begun:.0f} s")
    return 1 if failed or different else 0


def _milliseconds(pairs: list[list[dict[str, Any]]]) -> str:
    """Returns the fastest measurement of each side."""
    return " ".join(f"{1e3 * min(pair[which]['seconds'] for pair in pairs):.1f}" for which in (0, 1))


if __name__ == "__main__":
    raise SystemExit(main())
