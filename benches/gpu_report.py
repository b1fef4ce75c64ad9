"""Formats the GPU record as a section of RESULTS.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import report

HEAD = (
    *("search", "trees", "ours", "lowest-highest", "mctx", "times mctx", "bar"),
    *("bare", "share", "bar", "bare in JAX"),
)
TITLE = "## On one GPU"
LEGEND = """\
Phases: plant (creating trees from states), submit (submitting requests to the device), wait (for the network), check
(validating responses), grow (backup, selection, playing and generating moves), write (encoding requests), on the device
(the whole search, with GPU-resident trees), search (the whole search in a learned model with trees on the CPU), answer
(reading actions), drop (releasing trees), python (the rest of the search), network alone (one batch of the bare
network), all (from creating to releasing trees)."""


def number(value: float) -> str:
    """Formats three significant digits; rounded first, so that 999.9 is 1k."""
    return report.number(float(f"{value:.3g}"))


def milliseconds(value: float) -> str:
    """Formats three significant digits without an exponent."""
    return f"{float(f'{value:.3g}'):.9g}"


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cells of a row: simulations per second, or milliseconds per search in a learned model."""
    ours, others = row["ours"], row["mctx"]
    best = max(others, key=lambda line: line["rate"], default=None)
    in_model = "milliseconds" in ours
    key, bare_key = ("milliseconds", "bare_milliseconds") if in_model else ("rate", "bare")
    say, unit = (milliseconds, " ms") if in_model else (number, "/s")

    def show(line: dict[str, Any] | None, name: str) -> str:
        return "-" if line is None or line.get(name) is None else say(line[name]) + unit

    times, bar = row["times_mctx"], row["bar"]
    missed = " FAIL" if times is not None and bar is not None and times < bar else ""
    share, share_bar = ours.get("share"), row.get("share_bar")
    if in_model and bare_key in ours:
        share = ours[bare_key] / ours[key]
    share_missed = " FAIL" if share is not None and share_bar is not None and share < share_bar else ""
    return (
        row["case"],
        str(ours["trees"]),
        show(ours, key),
        "-".join(map(say, ours["spread"])),
        show(best, key),
        "-" if times is None else f"{times:.3g}x",
        "-" if bar is None else f">= {bar:g}x{missed}",
        show(ours, bare_key),
        "-" if share is None else f"{share:.2f}",
        "-" if share_bar is None else f">= {share_bar:g}{share_missed}",
        # At the batch size of our measurement.
        show(min(others, key=lambda line: line["trees"], default=None), bare_key),
    )


def table(record: dict[str, Any]) -> str:
    """Returns the whole record as Markdown."""
    lines = [HEAD, ("---",) * len(HEAD), *map(cells, record["rows"])]
    versions = (f"{name} {version}" for name, version in record["versions"].items())
    cores = [f"{record['cores']} cores"] if record.get("cores") else []
    agreement = record.get("agreement") or {}
    parts = (
        ", ".join((record["date"], record["device"], *cores, *versions)),
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        "\n".join(map(_profile, record["rows"])),
        LEGEND,
        ", ".join(f"{name}: {found}" for name, found in agreement.items() if name != "case"),
        record.get("note"),
    )
    return "\n\n".join(part for part in parts if part)


def _profile(row: dict[str, Any]) -> str:
    ours = row["ours"]
    spent = ours.get("microseconds_per_call") or ours.get("microseconds_per_step") or {}
    return f"- {row['case']}: " + ", ".join(f"{name} {number(value)}" for name, value in spent.items())


def section(record: dict[str, Any] | None = None) -> str:
    """Returns the section of a record, by default the stored one; empty without a record."""
    file = Path(__file__).parent / "gpu.json"
    if record is None:
        if not file.exists():
            return ""
        record = json.loads(file.read_text(encoding="utf-8"))
    return f"""
{TITLE}

Written by `python benches/gpu.py --record`. Simulations are rows that the network evaluated, without padding; rates
include everything from creating to releasing the trees, and are medians of five runs after six warm-up runs. Ours has
two groups of as many trees as the batch has rows, mctx the better of one batch and two; in learned models both have one
batch. Both search new trees of openings after 2 to 12 random moves (ours are distinct, mctx's drawn per row), with root
noise except in Gumbel search. Ours has `solve=False`, since mctx proves nothing, and `in_flight=1`. Two rows have no
counterpart: "solving" has `solve=True`, the default, and "self-play" is one later move: the second `simulate` alone, in
kept trees advanced by their actions. mctx's figures are medians of three runs after one warm-up run; of the first run,
with one batch only, if it takes longer than five seconds.

The bare network is the same one in PyTorch, bf16, as one CUDA graph, in the faster of two forms (as written, and with
fused convolutions, additions and ReLUs); in JAX, 100 calls compiled as one program. In learned models, bare is as many
steps of the model as the search has simulations, and the share is that of the search's time. Both use the batch size
given. Below the table: the time per call of the network (in models, per step) by phase, in microseconds, medians of all
runs; the engine works on one group while the network evaluates the other, so that phases do not add up. Below that: the
number of trees whose visits are equal on the GPU and on the CPU.

{table(record)}
"""


def renewed(page: str, record: dict[str, Any]) -> str:
    """Returns RESULTS.md with its GPU section replaced by this record."""
    text, found = re.subn(rf"\n{TITLE}\n.*?(?=\n## |\Z)", lambda _: section(record), page, count=1, flags=re.DOTALL)
    return text if found else page + section(record)
