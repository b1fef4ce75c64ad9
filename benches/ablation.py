"""Measures the engine without each of its hand-written mechanisms. `make bench ARGS=ablation`.

A mechanism is left out by a cargo feature of `core/Cargo.toml` or replaced by an environment, and results stay equal.
Every round starts one fresh process per library and environment, and measures each workload on all of them in turn,
each alternative between two measurements of the reference; the order alternates. A ratio is the reference's speed over
the alternative's: above 1 the mechanism gains. What gains under 5 % on every workload, and protects no promise, goes.
The control compares the engine with itself: its ratios show what the machine's noise makes of 1.

    python benches/ablation.py                                  compile the libraries (an hour), and measure
    python benches/ablation.py --built FOLDER --json FILE       measure with libraries compiled before: no cargo needed
    python benches/ablation.py --record FILE                    write such a FILE to ablation.json and RESULTS.md

mimalloc is measured if FOLDER has its library (`libmimalloc.so...`) or the system does.
"""

from __future__ import annotations

import argparse
import ctypes.util
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import HERE, Worker
from paired import Ratio

ROOT = HERE.parent
FOLDER = ROOT / "target" / "ablation" / "libraries"
RECORD, PAGE = HERE / "ablation.json", HERE / "RESULTS.md"
TITLE = "## The engine without each mechanism"
BAR = 1.05
MIMALLOC = "MIMALLOC"

#: Workloads whose rule has priors, and those with many threads.
PRIORS = r"^(?!UCT|advance|200)"
PARALLEL = r"threads$"


@dataclass(frozen=True)
class Mechanism:
    """A mechanism and its alternative."""

    name: str
    alternative: str
    #: Cargo features of the alternative's library.
    features: tuple[str, ...]
    #: Pattern of the workloads that it may matter for.
    workloads: str = ""
    #: The thread pool of the alternative; the reference is then the same library with its own pool.
    pool: str = ""
    #: Environment variables of both sides.
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def library(self) -> str:
        """The name of the alternative's library."""
        return "+".join(feature.removeprefix("ablate-") for feature in self.features) or "ours"

    @property
    def sides(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The reference and the alternative: library, pool and environment."""
        if self.pool:
            return (self.library, "own", self.environment), (self.library, self.pool, self.environment)
        environment = self.environment if self.features else ()
        return ("ours", "", environment), (self.library, "", self.environment)


MECHANISMS = (
    Mechanism("control", "the same library", (), environment=(("ABLATION_CONTROL", "1"),)),
    Mechanism("thread pool", "rayon, scope", ("rayon",), PARALLEL, pool="rayon scope"),
    Mechanism("thread pool", "rayon, broadcast", ("rayon",), PARALLEL, pool="rayon broadcast"),
    Mechanism("thread pool", "new threads", ("rayon",), PARALLEL, pool="std scope"),
    Mechanism("slabs and huge pages", "glibc", ("ablate-slabs",)),
    Mechanism(
        "slabs and huge pages",
        "glibc with huge pages",
        ("ablate-slabs",),
        r"trees",
        environment=(("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),),
    ),
    Mechanism("slabs and huge pages", "mimalloc", ("ablate-slabs",), r"trees", environment=(("LD_PRELOAD", MIMALLOC),)),
    Mechanism(
        "slabs and huge pages",
        "mimalloc with huge pages",
        ("ablate-slabs",),
        r"trees",
        environment=(("LD_PRELOAD", MIMALLOC), ("MIMALLOC_LARGE_OS_PAGES", "1")),
    ),
    Mechanism("huge pages", "slabs in ordinary pages", ("ablate-huge-pages",)),
    Mechanism("shards of slab pools", "one lock per pool", ("ablate-shards",), PARALLEL),
    Mechanism("vectors built in place", "a vector per chunk", ("ablate-parallel-vec",), r"trees"),
    Mechanism("descents by AVX2", "by SSE2", ("ablate-avx2",)),
    Mechanism("descents compiled per rule", "for any rule", ("ablate-specialization",), PRIORS),
    Mechanism("score masks of 4, 8, 16, 64", "of 64", ("ablate-ladder",)),
    Mechanism("score masks", "scores in memory", ("ablate-masks",)),
    Mechanism("Dirichlet noise in batches", "one proposal", ("ablate-noise-batches",), r"noise"),
)


def build(folder: Path) -> None:
    """Compiles every library, as it is released, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder.parent / "build"
    release = {"CARGO_PROFILE_RELEASE_DEBUG": "0", "CARGO_PROFILE_RELEASE_STRIP": "symbols"}
    for name, features in {"ours": ()} | {each.library: each.features for each in MECHANISMS}.items():
        print(f"compiling {name}", file=sys.stderr, flush=True)
        given = ",".join(each if each == "rayon" else f"pondertree-core/{each}" for each in features)
        command = ["cargo", "build", "--quiet", "--release", "--package", "pondertree-bindings", "--features", given]
        subprocess.run([*command, "--target-dir", str(target)], cwd=ROOT, env=os.environ | release, check=True)
        shutil.copy(target / "release" / "lib_core.so", folder / f"{name}.so")


def mimalloc(folder: Path) -> str | None:
    """Returns the library of mimalloc, if there is one."""
    found = next(map(str, folder.glob("libmimalloc.so*")), None)
    return found or ctypes.util.find_library("mimalloc")


def start(side: tuple[Any, ...], folder: Path) -> Worker:
    """Starts a process of one side."""
    library, pool, variables = side
    added = {name: mimalloc(folder) or "" if value == MIMALLOC else value for name, value in variables}
    paths = {"ABLATION_LIBRARY": str(folder / f"{library}.so"), "ABLATION_POOL": pool, "PYTHONHASHSEED": "0"}
    environment = os.environ | paths | added | {"PYTHONPATH": str(ROOT / "python")}
    return Worker(sys.executable, "ablation_worker.py", environment)


Measurement = dict[str, float]


def measure_round(
    mechanisms: list[Mechanism], names: list[str], folder: Path, given: argparse.Namespace, number: int
) -> Iterable[tuple[Mechanism, str, Measurement]]:
    """Yields the ratios of each mechanism and workload, by fresh processes."""
    sides = list(dict.fromkeys(side for each in mechanisms for side in each.sides))
    with ExitStack() as stack:
        workers = {side: stack.enter_context(start(side, folder)) for side in sides}
        for place, name in enumerate(names):
            groups = defaultdict(list)
            for each in mechanisms:
                if re.search(each.workloads, name):
                    groups[each.sides[0]].append(each)
            for reference, members in groups.items():
                others = list(dict.fromkeys(each.sides[1] for each in members))
                spent = [_timed(workers[reference], name, given)]
                ratios = {}
                for other in others if (place + number) % 2 else reversed(others):
                    theirs = _timed(workers[other], name, given)
                    spent.append(_timed(workers[reference], name, given))
                    before, after = spent[-2:]
                    ratios[other] = {key: 2 * theirs[key] / (before[key] + after[key]) for key in theirs}
                rate = len(spent) / sum(each["wall"] for each in spent)
                for each in members:
                    yield each, name, ratios[each.sides[1]] | {"rate": rate}


def _timed(worker: Worker, name: str, given: argparse.Namespace) -> Measurement:
    """Returns seconds of wall and CPU time per unit, and resident bytes."""
    found: Measurement = worker.do("measure", name=name, threads=given.threads, seconds=given.seconds)
    return {clock: found[clock] / found["units"] for clock in ("wall", "cpu")} | {"memory": found["memory"]}


def measure(given: argparse.Namespace, folder: Path) -> Iterable[dict[str, Any]]:
    """Yields the record after each round: as many as fit in the time, at least one."""
    usable = []
    for each in MECHANISMS:
        needs_mimalloc = ("LD_PRELOAD", MIMALLOC) in each.environment
        if (needs_mimalloc and mimalloc(folder) is None) or not (folder / f"{each.library}.so").exists():
            print(f"left out, as its library was not found: {each.name} / {each.alternative}", file=sys.stderr)
        elif re.search(given.only, f"{each.name} / {each.alternative}"):
            usable.append(each)
    with start(("ours", "", ()), folder) as worker:
        names = [name for name in worker.do("names", threads=given.threads) if re.search(given.workload, name)]
    found: dict[tuple[Mechanism, str], list[Measurement]] = defaultdict(list)
    begun, rounds, longest = time.monotonic(), 0, 0.0
    while rounds == 0 or time.monotonic() - begun + longest < 60 * given.minutes:
        this = time.monotonic()
        for mechanism, name, ratios in measure_round(usable, names, folder, given, rounds):
            found[mechanism, name].append(ratios)
        rounds, longest = rounds + 1, max(longest, time.monotonic() - this)
        print(f"round {rounds}: {time.monotonic() - this:.0f} s", file=sys.stderr, flush=True)
        yield _record(given, rounds, found)


def _record(
    given: argparse.Namespace, rounds: int, found: dict[tuple[Mechanism, str], list[Measurement]]
) -> dict[str, Any]:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": f"{model[1] if model else 'unknown CPU'}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 1),
        "threads": given.threads,
        "rounds": rounds,
        "rows": [
            {"mechanism": each.name, "alternative": each.alternative, "workload": name}
            | {key: [float(f"{ratios[key]:.4g}") for ratios in measured] for key in measured[0]}
            for (each, name), measured in found.items()
        ],
    }


def table(record: dict[str, Any]) -> str:
    """Returns every row as text."""
    lines = [f"{'ours over the alternative':58} {'workload':56} {'wall time':>22} {'CPU time':>22} {'memory':>6}"]
    for row in record["rows"]:
        wall, cpu = Ratio.of(row["wall"]), Ratio.of(row["cpu"])
        what = f"{row['mechanism']} / {row['alternative']}"
        memory = statistics.median(row["memory"])
        lines.append(f"{what:58} {row['workload']:56} {wall!s:>22} {cpu!s:>22} {memory:6.2f}")
    return "\n".join(lines)


def section(record: dict[str, Any] | None = None) -> str:
    """Returns the section of a record in RESULTS.md, by default the stored one; empty without a record."""
    if record is None:
        if not RECORD.exists():
            return ""
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    groups = defaultdict(list)
    for row in record["rows"]:
        groups[row["mechanism"], row["alternative"]].append((Ratio.of(row["wall"]), row))
    lines = [
        "| mechanism | alternative | workloads | gain over 5 % in | median | largest gains | least |",
        "|---" * 7 + "|",
    ]
    for (mechanism, alternative), found in groups.items():
        found.sort(key=lambda pair: pair[0].median)
        most = "; ".join(f"{row['workload']} {ratio}" for ratio, row in found[:-4:-1])
        gains = sum(ratio.median >= BAR and ratio.low > 1 for ratio, _ in found)
        middle = statistics.median(ratio.median for ratio, _ in found)
        least = f"{found[0][1]['workload']} {found[0][0]}"
        lines.append(f"| {mechanism} | {alternative} | {len(found)} | {gains} | {middle:.3f} | {most} | {least} |")
    listing = "\n".join(lines)
    return f"""
{TITLE}

Written by `python benches/ablation.py --record`; every row is in `ablation.json`. Ratios are the speed with the
mechanism over the speed without it, by wall time: medians of {record["rounds"]} rounds of fresh processes, with 95 %
intervals. "Gain over 5 %" counts workloads whose median is at least 1.05 and whose interval lies above 1.

{record["date"]}, {record["machine"]}, 1 to {record["threads"]} threads, load {record["load"]}

{listing}
"""


def main(arguments: list[str] | None = None) -> int:
    """Compiles, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=Path, metavar="FOLDER", help="libraries compiled before")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every ratio to FILE")
    parser.add_argument("--record", type=Path, metavar="FILE", help="measure nothing: record such a file")
    parser.add_argument("--threads", type=int, default=min(8, os.cpu_count() or 1), help="of parallel workloads (8)")
    parser.add_argument("--minutes", type=float, default=7.0, help="starts no round that would end later (7)")
    parser.add_argument("--seconds", type=float, default=0.05, help="CPU seconds of a measurement and thread (0.05)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="mechanisms: a pattern of 'NAME / ALTERNATIVE'")
    parser.add_argument("--workload", default="", metavar="PATTERN", help="workloads whose names match")
    parser.add_argument("--tiny", action="store_true", help="one round as short as possible")
    parser.add_argument("--list", action="store_true", help="list mechanisms and their libraries")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(f"{each.library}: {each.name} / {each.alternative}" for each in MECHANISMS))
        return 0
    if given.record:
        record = json.loads(given.record.read_text(encoding="utf-8"))
        text, new = PAGE.read_text(encoding="utf-8"), section(record)
        page, found = re.subn(rf"\n{TITLE}\n.*?(?=\n## |\Z)", lambda _: new, text, count=1, flags=re.DOTALL)
        RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")
        PAGE.write_text(page if found else text + new, encoding="utf-8")
        return 0
    if given.tiny:
        given.minutes, given.seconds = 0.0, 1e-6
    if given.built is None:
        build(FOLDER)
    for record in measure(given, (given.built or FOLDER).resolve()):
        if given.json:
            given.json.write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(table(record))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
