"""The harness of the fuzzers: seeded inputs in a child process with time and memory limits, and a table of outcomes.

A fuzzer is a script that passes its kinds of input to `main`. A kind is a function `make(random) -> call`: `random`, a
`random.Random`, decides everything about the input, and `call()` passes it to the package. The outcome of an input is

    ok       the call returned
    typed    it raised a PondertreeError
    untyped  it raised anything else, MemoryError included: the address space of the child is limited
    hang     it did not return within the time limit
    crash    the process died

Input `n` depends on its kind, the seed and `n` alone: `--kind K --seed S --first n --inputs 1` reproduces it. The
working directory of the child is an empty temporary folder. The exit status is 1 if any outcome is untyped, hang or
crash.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pondertree.errors import PondertreeError

Make = Callable[[random.Random], Callable[[], object]]

OUTCOMES = ("ok", "typed", "untyped", "hang", "crash")
#: The message of `faulthandler` at a timeout.
TIMEOUT = "Timeout ("
#: Distinct findings printed per kind; the rest are counted.
MAX_PRINTED = 10


def main(kinds: Mapping[str, Make], about: str | None, argv: Sequence[str] | None = None) -> int:
    """Runs a fuzzer: parses its arguments, runs the inputs in child processes and prints the table of outcomes."""
    given = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=list(kinds), help="a kind of input (repeatable); else all")
    parser.add_argument("--inputs", type=int, default=1000, help="inputs per kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the inputs (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit per input (default: %(default)s)")
    parser.add_argument("--memory", type=float, default=4.0, help="GiB an input may allocate (default: %(default)s)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.child is not None:
        _run_inputs(kinds, json.loads(options.child), options)
        return 0
    plan = [(name, number) for name in options.kind or kinds for number in range(options.first, _end(options))]
    counts: dict[str, Counter[str]] = {name: Counter() for name, _ in plan}
    findings: dict[str, Counter[str]] = {name: Counter() for name in counts}
    for name, number, outcome, detail in _outcomes(plan, given):
        counts[name][outcome] += 1
        if outcome not in ("ok", "typed"):
            findings[name][detail] += 1
            if findings[name][detail] == 1 and len(findings[name]) <= MAX_PRINTED:
                again = f"--kind {name} --seed {options.seed} --first {number} --inputs 1"
                print(f"{outcome}: {again}\n{detail}", flush=True)
    width = max(map(len, [*counts, "kind"]))
    print(f"{'kind':{width}} {'inputs':>8} " + " ".join(f"{outcome:>8}" for outcome in OUTCOMES))
    for name, count in counts.items():
        print(f"{name:{width}} {count.total():>8} " + " ".join(f"{count[outcome]:>8}" for outcome in OUTCOMES))
    return 1 if any(findings.values()) else 0


def _end(options: argparse.Namespace) -> int:
    return int(options.first) + int(options.inputs)


def _outcomes(plan: list[tuple[str, int]], given: list[str]) -> Iterator[tuple[str, int, str, str]]:
    """Yields (kind, number, outcome, detail) of every input; after a crash a new child continues."""
    place = 0
    roots = [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    while place < len(plan):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+", errors="replace") as stderr:
            child = subprocess.Popen(
                [sys.executable, str(Path(sys.argv[0]).absolute()), *given, "--child", json.dumps(plan[place])],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
            )
            assert child.stdout is not None
            for line in child.stdout:
                outcome, detail = json.loads(line)
                yield *plan[place], outcome, detail
                place += 1
            status = child.wait()
            if place < len(plan):
                stderr.seek(0)
                said = stderr.read()
                hung = TIMEOUT in said
                if status > 0 and not hung:  # exceptions of the package are caught, so the fuzzer itself failed
                    raise SystemExit(f"the fuzzer failed at {plan[place]}:\n{said}")
                detail = said[said.index(TIMEOUT) :] if hung else f"signal {-status}\n{said[-4000:]}"
                yield *plan[place], "hang" if hung else "crash", detail
                place += 1


def _run_inputs(kinds: Mapping[str, Make], first: list[Any], options: argparse.Namespace) -> None:
    """The child process: runs the inputs from `first` on and writes an outcome per line to standard output."""
    # Output of the package goes to standard error, since the pipe is for outcomes.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    logging.disable()
    names = list(options.kind or kinds)
    for name in names[names.index(first[0]) :]:
        begin = first[1] if name == first[0] else options.first
        for number in range(begin, _end(options)):
            call = kinds[name](random.Random(f"{name}/{options.seed}/{number}"))
            _limit_memory(options.memory)
            faulthandler.dump_traceback_later(options.seconds, exit=True)
            outcome, detail = "ok", ""
            try:
                call()
            except PondertreeError:
                outcome = "typed"
            except BaseException as error:  # a panic of the engine is not an Exception
                outcome, detail = "untyped", _brief(error)
            faulthandler.cancel_dump_traceback_later()
            _limit_memory(None)
            lines.write(json.dumps([outcome, detail]) + "\n")
            lines.flush()


def _brief(error: BaseException) -> str:
    """Returns the last frames of a traceback and the exception, truncated."""
    frames = "".join(traceback.format_tb(error.__traceback__)[-4:])
    text = str(error)
    return f"{frames}{type(error).__name__}: {text if len(text) <= 300 else text[:300] + '...'}"


def _limit_memory(gibibytes: float | None) -> None:
    """Limits the growth of the address space (None: no limit), where the system supports it."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = hard if gibibytes is None else pages * resource.getpagesize() + int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
