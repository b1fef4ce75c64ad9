"""What was measured on a GPU, as a table."""

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
What these are: plant (trees made, states looked at), submit (questions handed to the device), wait (for the network),
check (answers looked at), grow (answers applied, the way down, moves made and generated), write (questions encoded), on
the device (the whole search where trees grow there), search (the whole search in a model where they do not), answer
(actions read), drop (trees given back), python (what is left of the search), network alone (one batch of the bare
network), all (everything from planting to dropping)."""


def number(value: float) -> str:
    """Three digits that count; rounded first, so that 999.9 is 1k."""
    return report.number(float(f"{value:.3g}"))


def milliseconds(value: float) -> str:
    """Three digits that count, never with an exponent."""
    return f"{float(f'{value:.3g}'):.9g}"


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as text: simulations a second, or milliseconds of a search in a model."""
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
        # At the batch that ours was measured at.
        show(min(others, key=lambda line: line["trees"], default=None), bare_key),
    )


def table(record: dict[str, Any]) -> str:
    """The whole record, as Markdown."""
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
    """For RESULTS.md: of a record, or of the one kept; nothing where nothing was recorded."""
    file = Path(__file__).parent / "gpu.json"
    if record is None:
        if not file.exists():
            return ""
        record = json.loads(file.read_text(encoding="utf-8"))
    return f"""
{TITLE}

Written by `python benches/gpu.py --record`. Simulations are rows that the network evaluated, padding excluded; a rate
is of everything from planting the trees to dropping them, the median of five runs after six to warm up. Ours has two
groups of as many trees as the batch has rows, and mctx the better of one batch and two; in models both have one batch.
Both sides search new trees of openings after 2 to 12 random moves (ours are distinct, mctx's drawn row by row), with
noise at the roots but in Gumbel search. Ours has `solve=False`, as mctx has nothing like it, and `in_flight=1`. Two
rows are of our side alone: "solving" has `solve=True`, a user's default, and "self-play" is one later move: the second
`simulate` alone, in trees that were searched before and advanced by their actions. mctx is the median of three runs
after one to warm up; of the first, and at one batch alone, where it takes longer than five seconds.

The bare network is the same one in PyTorch, bf16, recorded as one graph, in the faster of two forms (as written, and
with convolutions, additions and ReLUs in one); in JAX, 100 calls compiled as one program. In models, bare is as many
steps of the model alone as the search has simulations, and the share that of the search's time. Both are at the batch
named. Below the table: where the time of one call of the network (in models, of one step) goes, in microseconds, each
the median of all runs; the engine works for one group while the network computes for the other, so that they do not
add up. Below that: in how many trees all visits are the same on the GPU and on the processor.

{table(record)}
"""


def renewed(page: str, record: dict[str, Any]) -> str:
    """RESULTS.md with this record in the place of the last one."""
    text, found = re.subn(rf"\n{TITLE}\n.*?(?=\n## |\Z)", lambda _: section(record), page, count=1, flags=re.DOTALL)
    return text if found else page + section(record)
