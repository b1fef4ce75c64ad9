"""What was measured on a GPU, as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from report import number

HEAD = ("search", "trees", "ours", "mctx", "times mctx", "bar", "bare network", "share", "bar")


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as text: simulations a second, or milliseconds of a search in a model."""
    ours, others = row["ours"], row["mctx"]
    best = max(others, key=lambda line: line["rate"], default=None)
    in_model = "milliseconds" in ours
    show = (lambda line: f"{line['milliseconds']:.3g} ms") if in_model else (lambda line: f"{number(line['rate'])}/s")
    times, bar = row["times_mctx"], row["bar"]
    missed = " FAIL" if times is not None and times < bar else ""
    share, share_bar = ours.get("share"), row.get("share_bar")
    share_missed = " FAIL" if share is not None and share_bar is not None and share < share_bar else ""
    return (
        row["case"],
        str(ours["trees"]),
        show(ours),
        "-" if best is None else show(best),
        "-" if times is None else f"{times:.3g}x",
        f">= {bar:g}x{missed}",
        "-" if share is None else f"{number(ours['bare'])}/s",
        "-" if share is None else f"{share:.2f}",
        "-" if share_bar is None else f">= {share_bar:g}{share_missed}",
    )


def table(record: dict[str, Any]) -> str:
    """The whole record, as Markdown."""
    lines = [HEAD, ("---",) * len(HEAD), *map(cells, record["rows"])]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    profile = "\n".join(_profile(row) for row in record["rows"])
    agreement = record.get("agreement")
    agreed = "" if not agreement else "\n\n" + ", ".join(f"{k}: {v}" for k, v in agreement.items() if k != "case")
    agreed += f"\n\n{record['note']}" if record.get("note") else ""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return f"{record['date']}, {record['device']}, {record['cores']} cores, {versions}\n\n{text}\n\n{profile}{agreed}"


def _profile(row: dict[str, Any]) -> str:
    ours = row["ours"]
    spent = ours.get("microseconds_per_call") or ours.get("microseconds_per_step") or {}
    return f"- {row['case']}: " + ", ".join(f"{name} {number(value)}" for name, value in spent.items())


def section() -> str:
    """For RESULTS.md; nothing where nothing was recorded."""
    file = Path(__file__).parent / "gpu.json"
    if not file.exists():
        return ""
    return f"""
## On one GPU

Written by `python benches/gpu.py --record`. Simulations are rows that the network evaluated, padding excluded; a rate
is of everything from planting the trees to dropping them, the median of five runs. Ours has two groups of as many trees
as the batch has rows, and mctx the better of one batch and two; in models both have one batch. The bare network is the
same one in PyTorch, bf16, recorded as one graph, in the faster of two forms (as written, and with convolutions,
additions and ReLUs in one). Below the table: where the time of one call of the network goes, in microseconds; the
engine works for one group while the network computes for the other, so that they do not add up.

{table(json.loads(file.read_text(encoding="utf-8")))}
"""
