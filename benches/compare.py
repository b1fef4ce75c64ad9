"""Times two versions of the package in alternating pairs: new speed by old speed, by wall time and by CPU time.

    python benches/compare.py OLD.whl NEW.whl   two wheels, each in a cached virtual environment
    python benches/compare.py OLD.whl           a wheel, and this interpreter's package

Each pair is two fresh processes that measure every workload in turn, one right after the other; which is first changes
with every workload and every pair (ABBA). A workload fails if the median of its wall-time ratios is below 0.97 and
their 95 % interval does not contain 1; the exit status is 1 if one fails. It takes four minutes on an idle machine; a
loaded one widens the intervals.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from harness import Worker
from installations import Side, side
from kernels import KERNELS, PARALLEL
from paired import Ratio

WORKLOADS = (*KERNELS, *PARALLEL)
Measurement = dict[str, float]


def measure_pair(
    sides: tuple[Side, Side], names: list[str], seconds: float, number: int
) -> dict[str, list[Measurement]]:
    """Returns the measurements (old, new) of every workload, by two fresh processes."""
    found = {}
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(each.python, "kernels.py", each.environment)) for each in sides]
        if number == 0:
            for label, worker in zip(("old", "new"), workers, strict=True):
                print(f"{label}: {worker.do('environment')}", flush=True)
        for place, name in enumerate(names):
            order = (0, 1) if (place + number) % 2 == 0 else (1, 0)
            measured = {which: workers[which].do("measure", name=name, seconds=seconds) for which in order}
            found[name] = [measured[0], measured[1]]
    return found


def ratios(pairs: list[list[Measurement]], clock: str) -> Ratio:
    """Returns the ratios of new speed to old speed, by wall or CPU time."""
    speeds = [[each["units"] / each[clock] for each in pair] for pair in pairs]
    return Ratio.of([new / old for old, new in speeds])


def main() -> int:
    """Measures and compares; returns 1 if a workload fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a wheel, or a Python interpreter")
    parser.add_argument("new", type=Path, nargs="?", help="the same (default: this interpreter)")
    parser.add_argument("--pairs", type=int, default=15, help="pairs of processes (15)")
    parser.add_argument("--seconds", type=float, default=0.15, help="CPU seconds of one measurement (0.15)")
    parser.add_argument(
        "--workload", action="append", metavar="NAME", choices=WORKLOADS, help="measure this one alone (repeatable)"
    )
    given = parser.parse_args()

    names = given.workload or list(WORKLOADS)
    sides = side(given.old), side(given.new)
    pairs: dict[str, list[list[Measurement]]] = defaultdict(list)
    for number in range(given.pairs):
        for name, measured in measure_pair(sides, names, given.seconds, number).items():
            pairs[name].append(measured)
    print(f"{given.pairs} pairs; new speed by old speed, median and 95 % interval")
    print(f"{'workload':38} {'wall time':>22} {'CPU time':>22}")
    failed = []
    for name in names:
        wall, cpu = (ratios(pairs[name], clock) for clock in ("wall", "cpu"))
        if not wall.passed:
            failed.append(name)
        print(f"{name:38} {wall!s:>22} {cpu!s:>22}{'' if wall.passed else '  slower'}")
    print(f"{len(failed)} of {len(names)} workloads slower" if failed else "no workload slower")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
