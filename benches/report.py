"""Formats measured rows as tables, and describes the machine they were measured on."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness import PEERS, Plan, Row, ours, peer
from strength import rating

HEAD = ("benchmark", "unit", "ours", "peer", "measured", "spread", "bar", "")


def number(value: float | None) -> str:
    """Formats a number with three significant digits."""
    if value is None:
        return "-"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def cells(row: Row) -> tuple[str, ...]:
    """Returns the cells of a row."""
    is_ratio = row.measured != row.ours
    sign = "x" if is_ratio and row.measured is not None else ""
    peer_text = f"{number(row.peer)} ({row.peer_name})" if row.peer is not None else "-"
    span = "-" if row.lowest is None else f"{number(row.lowest)}-{number(row.highest)}"
    bar = "-" if row.bar is None else f"{'<=' if row.at_most else '>='} {number(row.bar)}{sign}"
    verdict = {True: "pass", False: "FAIL", None: ""}[row.passed]
    what = f"{row.what} ({row.note})" if row.note else row.what
    return what, row.unit, number(row.ours), peer_text, number(row.measured) + sign, span, bar, verdict


def text_table(rows: Sequence[Row]) -> str:
    """Returns the rows as a table for a terminal."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(rows: Iterable[Row]) -> str:
    """Returns the rows as a Markdown table."""
    lines = [HEAD, ("---",) * len(HEAD), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine(plan: Plan) -> dict[str, str]:
    """Describes the machine and the versions of all packages."""
    packages: dict[str, str] = {}
    with ExitStack() as stack:
        for worker in (ours(), *(peer(name, plan) for name in PEERS)):
            if worker is not None:
                packages |= stack.enter_context(worker).do("environment")["packages"]
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "CPU": f"{_cpu_model()}, {os.cpu_count()} cores seen",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items()),
        "engine": f"sha256 {engine()}",
        "load average": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def engine() -> str:
    """Returns the fingerprint of the engine's build."""
    with ours() as worker:
        return str(worker.do("environment")["engine"])


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def results_page(rows: Sequence[Row], about: dict[str, str]) -> str:
    """Returns the text of RESULTS.md."""
    facts = "\n".join(f"- {name}: {value}" for name, value in about.items())
    return f"""# Measured speed

Written by `make bench ARGS=--record`. Single-threaded unless stated otherwise. Rates are per second of CPU time,
medians of several rounds in which both sides alternate; "measured" is the median of the ratios per round (or our own
value, if the bar is absolute), "spread" its minimum and maximum. On a shared machine only the ratios are meaningful.

{facts}

{markdown_table(rows)}
{gpu_section()}{ablation_section()}{strength_section()}{matches_section()}"""


def gpu_section() -> str:
    """Returns the section of the GPU record."""
    from gpu_report import section

    return section()


def ablation_section() -> str:
    """Returns the section of the recorded ablation."""
    from ablation import section

    return section()


def strength_section() -> str:
    """Returns the section on playing strength, empty without a record."""
    file = Path(__file__).parent / "strength.json"
    if not file.exists():
        return ""
    played = json.loads(file.read_text(encoding="utf-8"))
    head = ("step", "a move", "games", "won, drawn, lost", "Elo (95 %)", "")
    steps = [
        (match["step"], *_match_cells(match)[1:5], "kept" if match["kept"] else "not kept")
        for match in played
        if "step" in match
    ]
    against = [match for match in played if "against" in match]
    levels = [
        (f"{match['default']}, against {match['against']}", *_match_cells(match)[1:5], "")
        for match in sorted(against, key=lambda match: (match["default"], match["against"]))
    ]
    ratings = []
    for default, words in (("before", "Before the steps"), ("now", "Now")):
        these = [match for match in against if match["default"] == default]
        if these:
            scores = [match["wins"] + match["draws"] / 2 for match in these]
            elo, error = rating([match["against"] for match in these], scores, [match["games"] for match in these])
            ratings.append(f"{words}: {elo:.0f} plus or minus {error:.0f}.")
    return f"""
## Steps and Elo of the hybrid search

Played by `python benches/strength.py --record`. A step is a match at equal time against the search without it; kept
steps are defaults now. `then` means: with move scores on both sides. The first five steps used move scores fitted to
30,000 positions, the others the built-in ones, fitted to 46,000; all but the last two used PeSTO's published weights on
both sides, the last two on one.

{_table(head, steps)}

Against Stockfish 15.1 (`python benches/strength.py --stockfish stockfish --seconds 0.05 --record`), whose `UCI_Elo` is
the number given, `UCI_LimitStrength` on, one thread, 16 MB of hash, and equal time per move:

{_table(("the search", *head[1:]), levels)}

The rating whose expected score equals the observed one, on the scale of `UCI_Elo`: {" ".join(ratings)}
The errors are statistical only. Results against single opponents deviate from this scale (better against weaker ones,
worse against stronger ones), and a step gains more against a search of the same kind than against Stockfish. These
matches precede the exact tables of elementary endings: the search did not yet mate a bare king with a queen or a rook.
"""


def _table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *lines))


def matches_section() -> str:
    """Returns the section of recorded matches, empty without a record."""
    file = Path(__file__).parent / "matches.json"
    if not file.exists():
        return ""
    head = ("question", "a move", "games", "won, drawn, lost", "Elo (95 %)", "sequential test")
    lines = [head, ("---",) * len(head), *map(_match_cells, json.loads(file.read_text(encoding="utf-8")))]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""
## Matches of the hybrid search

Played by `python benches/matches.py --record`. Openings are random and balanced, each played with both sides; Elo is
that of the first side named, from the counts of pairs. Matches with a time limit precede the steps above: their default
is `Hybrid(Pesto.published(), move_scores=None)`. "Costlier mate search" is an earlier version: 250 positions instead of
20, wherever a check was possible, and twice the time at the root. Matches with 200 simulations a move are of the
present default.

{table}
"""


def _match_cells(match: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cells of a match."""
    what, _, most = match["limit"].partition("=")
    limit = f"{most} s" if what == "time_limit" else f"{most} simulations"
    low, high = (_elo(bound) for bound in match["interval"])
    test = match.get("sprt")
    verdict = "-" if test is None else f"{test['elo0']:g} or {test['elo1']:g}: {test['verdict'] or 'open'}"
    scores = f"+{match['wins']} ={match['draws']} -{match['losses']}"
    return (
        match.get("question", ""),
        limit,
        str(match["games"]),
        scores,
        f"{_elo(match['elo'])} ({low} to {high})",
        verdict,
    )


def _elo(number: float | None) -> str:
    """Formats an Elo difference; a missing bound is `none`."""
    return "none" if number is None else f"{number:+.0f}"
