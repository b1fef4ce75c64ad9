"""Benchmarks searches on a GPU against the bare network, and against mctx with pgx.

`python benches/gpu.py [WORD ...]` runs the cases whose names have one of the words in them. PyTorch must be installed
with the package; JAX, mctx and pgx only for the peer.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_cases import AGREEMENT, CASES, GameCase, cases, unknown
from gpu_report import renewed, table

HERE = Path(__file__).parent
RECORD, PAGE = HERE / "gpu.json", HERE / "RESULTS.md"
#: Checks of the libraries of each side.
OURS = "import pondertree, torch; print('gpu' if torch.cuda.is_available() else 'cpu')"
PEER = "import jax, mctx, pgx; print(jax.default_backend())"
ENVIRONMENT = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
Lines = list[dict[str, Any]]


def arguments() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Parses and validates the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = "; ".join((*CASES, AGREEMENT))
    parser.add_argument("words", nargs="*", metavar="WORD", help=f"parts of names (default: all): {names}")
    parser.add_argument("--no-peer", action="store_true", help="measure Pondertree alone")
    parser.add_argument(
        "--small", action="store_true", help="tiny sizes, on a CPU too: only shows that everything runs"
    )
    parser.add_argument("--ours", type=Path, metavar="FILE", help="what gpu_ours.py printed: nothing is measured")
    parser.add_argument("--mctx", type=Path, metavar="FILE", help="what gpu_mctx.py printed, together with --ours")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to FILE")
    parser.add_argument(
        "--record",
        action="store_true",
        help="write gpu.json and its section of RESULTS.md, beside this file, if every case was measured on a GPU",
    )
    parser.add_argument("--note", metavar="TEXT", help="a remark to be kept with what was measured")
    given = parser.parse_args()
    if missing := unknown(given.words):
        parser.error(f"there is no case with {missing[0]!r} in its name; there are {names}")
    if (given.ours is None) != (given.mctx is None):
        parser.error("--ours and --mctx belong together")
    if given.ours and (given.words or given.no_peer or given.small):
        parser.error("--ours and --mctx measure nothing: no names, no --no-peer or --small")
    if given.record and (given.words or given.no_peer or given.small):
        parser.error("--record is for a whole run: no names, no --no-peer or --small")
    for file in (given.json, *((RECORD, PAGE) if given.record else ())):
        if file is not None:
            _check_writable(parser, file)
    return parser, given


def _check_writable(parser: argparse.ArgumentParser, file: Path) -> None:
    existed = file.exists()
    try:
        file.open("a", encoding="utf-8").close()
    except OSError as error:
        parser.error(f"{file} cannot be written: {error.strerror}")
    if not existed:
        file.unlink()


def check_libraries(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Exits with 2 if a library or the GPU is missing, before minutes of measurements."""
    advice = {OURS: "install the package with PyTorch", PEER: "install jax, mctx and pgx, or give --no-peer"}
    for probe in (OURS, PEER) if with_peer(given) else (OURS,):
        check = subprocess.run(
            [sys.executable, "-c", probe], capture_output=True, text=True, check=False, env=ENVIRONMENT
        )
        if check.returncode:
            why = (check.stderr.strip().splitlines() or ["no reason given"])[-1]
            parser.error(f"{why}: {advice[probe]}")
        if check.stdout.split()[-1] == "cpu" and not given.small:
            what = "PyTorch has no GPU" if probe == OURS else "JAX has no GPU (--no-peer does without it)"
            parser.error(f"{what}; --small runs tiny sizes without one")


def with_peer(given: argparse.Namespace) -> bool:
    """Whether a case has a peer to compare with."""
    return not given.no_peer and any(case.times_mctx is not None for case in cases(given.words).values())


def measure(script: str, options: list[str], found: Lines) -> bool:
    """Runs a script and collects its lines; returns whether it succeeded.

    Each side has its own process: two libraries on one GPU compete for memory.
    """
    command = [sys.executable, str(HERE / script), *options]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT) as process,
    ):
        try:
            for line in process.stdout or ():
                # A killed process may leave a partial line.
                if line.startswith("{") and line.endswith("}\n"):
                    found.append(json.loads(line))
                    _tell(script, found[-1])
            process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        if process.returncode:
            errors.seek(0)
            print(*errors.read().splitlines()[-10:], sep="\n", file=sys.stderr)
            print(f"{script} ended with {process.returncode}", file=sys.stderr, flush=True)
    return not process.returncode


def _tell(script: str, line: dict[str, Any]) -> None:
    if "case" in line:
        trees = f", {line['trees']} trees, {line['rate']:,.0f} simulations/s" if "rate" in line else ""
        print(f"{script}: {line['case']}{trees}", file=sys.stderr, flush=True)


def lines_in(parser: argparse.ArgumentParser, file: Path) -> Lines:
    """Reads the lines that a script has printed into a file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
    except (OSError, ValueError) as error:
        parser.error(f"{file} cannot be read: {error}")
    if not found or "device" not in found[0]:
        parser.error(f"{file} does not begin with a line of versions and the device")
    return found


def joined(ours: Lines, peers: Lines) -> Lines:
    """Joins both sides to one row per case, with its bars; `--small` has none."""
    rows = []
    is_small = bool(ours and ours[0].get("small"))
    for name, case in CASES.items():
        own = next((line for line in ours if line.get("case") == name), None)
        if own is None:
            continue
        others = [line for line in peers if line.get("case") == name]
        best = max(others, key=lambda line: line["rate"], default=None)
        row = {"case": name, "ours": own, "mctx": others, "bar": None if is_small else case.times_mctx}
        row["times_mctx"] = None if best is None else own["rate"] / best["rate"]
        if isinstance(case, GameCase):
            row["share_bar"] = None if is_small else case.share
        rows.append(row)
    return rows


def record_of(ours: Lines, peers: Lines, note: str | None) -> dict[str, Any]:
    """The record of all measurements, rounded to four digits."""
    about = ours[0]
    versions = {
        name: line[name] for line in (about, *peers[:1]) for name in ("torch", "jax", "mctx", "pgx") if name in line
    }
    record = {
        "date": about.get("date") or datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "device": about["device"],
        "versions": versions,
        "cores": about.get("cores"),
        "rows": joined(ours, peers),
        "agreement": next((line for line in ours if line.get("case") == AGREEMENT), None),
    }
    rounded: dict[str, Any] = _rounded(record | ({"note": note} if note else {}))
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def as_text(record: dict[str, Any]) -> str:
    """Serialises a record as in `gpu.json`."""
    return json.dumps(record, indent=1) + "\n"


def shortcoming(ours: Lines, peers: Lines) -> str | None:
    """Why the measurements are incomplete; None if they are not."""
    for side, lines in (("ours", ours), ("mctx", peers)):
        about = lines[0] if lines else {"device": "nothing"}
        if about.get("small") or about["device"] in ("no GPU", "nothing") or "cpu" in about["device"].lower():
            return f"{side} was not measured on a GPU in full size"
        done = {line.get("case") for line in lines}
        wanted = [name for name, case in CASES.items() if side == "ours" or case.times_mctx is not None]
        for name in (*wanted, *((AGREEMENT,) if side == "ours" else ())):
            if name not in done:
                return f"{side} has nothing of {name!r}"
    return None


def main() -> int:
    """Runs both sides, prints the table and writes the record.

    1 if a side did not come to its end, 2 if there is not what is needed for what was asked.
    """
    parser, given = arguments()
    ours: Lines = []
    peers: Lines = []
    code = 0
    if given.ours:
        ours, peers = lines_in(parser, given.ours), lines_in(parser, given.mctx)
    else:
        options = [*given.words, *(["--small"] if given.small else [])]
        try:
            check_libraries(parser, given)
            code = 0 if measure("gpu_ours.py", options, ours) else 1
            # Without our own cases there is nothing to compare.
            if with_peer(given) and len(ours) > 1 and not measure("gpu_mctx.py", options, peers):
                code = 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            code = 130
    record = record_of(ours, peers, given.note) if ours else None
    if record is not None:
        print(table(record))
        if given.json:
            given.json.write_text(as_text(record), encoding="utf-8")
    if given.record:
        why = "not all came to its end" if code else shortcoming(ours, peers)
        if record is None or why:
            print(f"nothing was recorded: {why}", file=sys.stderr)
            return 130 if code == 130 else 2
        page = renewed(PAGE.read_text(encoding="utf-8"), record)
        RECORD.write_text(as_text(record), encoding="utf-8")
        PAGE.write_text(page, encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
