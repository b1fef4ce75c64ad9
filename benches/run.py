"""Measures Pondertree, and its peers in the same run. `make bench ARGS="uct --quick"`.

Peers are installed from PyPI, pinned, each into an environment of its own beside this file.

`make bench ARGS=--check` is the regression check instead: results bit for bit (fingerprints.py) and instruction counts
(instructions.py) against the recorded baselines. With `--baseline OLD.whl` instructions are compared with those of a
wheel, and so are timings (compare.py).

`make bench ARGS=ablation` measures the engine without each of its hand-written mechanisms (ablation.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ablation
import alphazero
import hybrid
import memory
import muzero
import perft
import python_game
import report
import roots
import uct
from harness import HERE, Plan, Row
from instructions import missing_tool

BENCHES: dict[str, Callable[[Plan], list[Row]]] = {
    "uct": uct.rows,
    "alphazero": alphazero.rows,
    "muzero": muzero.rows,
    "hybrid": hybrid.rows,
    "memory": memory.rows,
    "roots": roots.rows,
    "perft": perft.rows,
    "python_game": python_game.rows,
}


def check(baseline: Path | None) -> int:
    """Runs the regression check; returns 1 if a part failed."""
    against = [] if baseline is None else [str(baseline)]
    parts = {"fingerprints.py": []}
    if missing := missing_tool():
        print(f"instructions.py: left out, {missing}")
    else:
        parts["instructions.py"] = against
    if baseline is not None:
        parts["compare.py"] = against
    failed = []
    for script, options in parts.items():
        print(f"== {script}", flush=True)
        if subprocess.call([sys.executable, "-B", str(HERE / script), *options]):
            failed.append(script)
    print(f"failed: {', '.join(failed)}" if failed else "the check passed")
    return 1 if failed else 0


def main() -> int:
    """Runs the named benchmarks; returns 1 if a bar was missed, 2 if the run is invalid."""
    if sys.argv[1:2] == ["ablation"]:
        return ablation.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(BENCHES)} (default: all)"
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    size.add_argument("--tiny", action="store_true", help="tiny sizes: only shows that everything runs")
    parser.add_argument("--no-peers", action="store_true", help="measure Pondertree alone and install nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE")
    parser.add_argument("--record", action="store_true", help="write RESULTS.md (a whole run only)")
    parser.add_argument("--check", action="store_true", help="compare results and speed with the baselines (see above)")
    parser.add_argument("--baseline", type=Path, metavar="WHEEL", help="the version that --check compares speed with")
    given = parser.parse_args()
    measuring = (given.names, given.quick, given.tiny, given.no_peers, given.json, given.record)
    if given.baseline and not given.check:
        parser.error("--baseline belongs to --check")
    if given.check and any(measuring):
        parser.error("--check goes with --baseline alone")
    if given.check:
        return check(given.baseline)
    for name in given.names:
        if name not in BENCHES:
            parser.error(f"there is no bench {name!r}; there are {', '.join(BENCHES)}")
    if given.record and (given.names or given.quick or given.tiny or given.no_peers):
        parser.error("--record is for a whole run: no names, no --quick, --tiny or --no-peers")

    plan = Plan(rounds=9, seconds=0.5)
    if given.quick:
        plan = Plan(rounds=3, seconds=0.15)
    if given.tiny:
        plan = Plan(rounds=1, seconds=0.001, full=False)
    plan = dataclasses.replace(plan, peers=not given.no_peers)

    about = report.machine(plan)
    rows: list[Row] = []
    for name in given.names or BENCHES:
        found = BENCHES[name](plan)
        rows += found
        print(report.text_table(found), end="\n\n", flush=True)
    print("\n".join(f"{name}: {value}" for name, value in about.items()))
    missed = [row for row in rows if row.passed is False]
    if about["engine"] != f"sha256 {report.engine()}":
        print("The engine was compiled anew during this run: the rows are not of one build.", file=sys.stderr)
        return 2
    if given.json:
        entries = [dataclasses.asdict(row) | {"passed": row.passed} for row in rows]
        given.json.write_text(json.dumps({"machine": about, "rows": entries}, indent=1) + "\n", encoding="utf-8")
    if given.record:
        (HERE / "RESULTS.md").write_text(report.results_page(rows, about), encoding="utf-8")
    return 1 if missed and plan.full else 0


if __name__ == "__main__":
    raise SystemExit(main())
