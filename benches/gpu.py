"""Measures the search on a GPU against the bare network and against mctx with pgx, in one call.

`python benches/gpu.py [WORD ...]` runs the cases whose names have one of the words in them. PyTorch must be installed
with the package; JAX, mctx and pgx only for the peer. `--record` writes gpu.json, which RESULTS.md shows.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpu_cases import GameCase, cases

HERE = Path(__file__).parent


def lines_of(script: str, names: list[str]) -> list[dict[str, Any]]:
    """What a script prints, line by line, in a process of its own: two libraries on one GPU get in each other's way."""
    settings = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [sys.executable, str(HERE / script), *names]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as process:
        for line in process.stdout or ():
            if line.startswith("{"):
                found.append(json.loads(line))
                print(line, end="", file=sys.stderr, flush=True)
    if process.returncode:
        print(f"{script} ended with {process.returncode}", file=sys.stderr)
    return found


def joined(ours: list[dict[str, Any]], peers: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """A row for each case, with its bars."""
    rows = []
    for name, case in cases(names).items():
        own = next((line for line in ours if line.get("case") == name), None)
        if own is None:
            continue
        others = [line for line in peers if line.get("case") == name]
        best = max(others, key=lambda line: line["rate"], default=None)
        row = {"case": name, "ours": own, "mctx": others, "bar": case.times_mctx}
        row["times_mctx"] = None if best is None else own["rate"] / best["rate"]
        if isinstance(case, GameCase):
            row["share_bar"] = case.share
        rows.append(row)
    return rows


def main() -> int:
    """Runs everything, prints the table, and writes what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the names of cases (default: all)")
    parser.add_argument("--no-peer", action="store_true", help="measure Ponderosa alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to FILE")
    parser.add_argument("--record", action="store_true", help="write gpu.json beside this file")
    given = parser.parse_args()
    ours = lines_of("gpu_ours.py", given.words)
    peers = [] if given.no_peer else lines_of("gpu_mctx.py", given.words)
    record = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "device": ours[0]["device"] if ours else "none",
        "versions": {
            name: value for line in (*ours[:1], *peers[:1]) for name, value in line.items() if name != "device"
        },
        "cores": os.cpu_count(),
        "rows": joined(ours, peers, given.words),
        "agreement": next((line for line in ours if line.get("case") == "agreement"), None),
    }
    from gpu_report import table

    print(table(record))
    for file in (given.json, HERE / "gpu.json" if given.record else None):
        if file is not None:
            file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
