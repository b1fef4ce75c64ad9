"""Many positions searched in one call: speedup by a second thread.

Wall time requires two idle cores. Other load can only reduce the ratio of a pair whose single-threaded run had a core
to itself, so the best of those pairs is reported, if any. A second row gives the upper bound from CPU times (Amdahl's
law: the engine's part halved), which other load affects less.
"""

from __future__ import annotations

import os
import statistics
from typing import Any

from harness import Plan, Row, Worker, ours, spread

#: The minimum ratio of CPU time to wall time of the single-threaded run for its pair to count.
CALM = 0.97


def rows(plan: Plan) -> list[Row]:
    """Measures one and two threads alternately."""
    sizes = {"count": plan.size(256, 6), "sims": plan.size(1_000, 30)}
    what = f"{sizes['count']} Connect 4 positions x {sizes['sims']:,} simulations, 2 threads over 1"
    with ours() as worker:
        return [_wall(plan, worker, sizes, what), _ceiling(plan, worker, sizes, what)]


def _pairs(plan: Plan, worker: Worker, job: str, sizes: dict[str, int]) -> list[tuple[Any, Any]]:
    found = []
    for number in range(plan.rounds + 2):
        order = (1, 2) if number % 2 == 0 else (2, 1)
        outputs = {threads: worker.do(job, threads=threads, **sizes) for threads in order}
        found.append((outputs[1], outputs[2]))
    return found


def _wall(plan: Plan, worker: Worker, sizes: dict[str, int], what: str) -> Row:
    pairs = _pairs(plan, worker, "roots", sizes)
    if any(one["visits"] != two["visits"] for one, two in pairs):
        raise RuntimeError("two threads do not search as one does")
    calm = [one["wall"] / two["wall"] for one, two in pairs if one["cpu"] >= CALM * one["wall"]]
    return Row(
        bench="roots",
        what=f"{what}, wall time, best pair",
        unit="sims/s",
        ours=max(sizes["count"] * sizes["sims"] / two["wall"] for _, two in pairs),
        peer=None,
        peer_name="",
        measured=max(calm, default=None),
        lowest=min(calm, default=None),
        highest=max(calm, default=None),
        bar=1.8,
        note=f"{len(calm)} of {len(pairs)} pairs undisturbed, load {os.getloadavg()[0]:.1f}",
    )


def _ceiling(plan: Plan, worker: Worker, sizes: dict[str, int], what: str) -> Row:
    pairs = _pairs(plan, worker, "roots_parts", sizes)
    ratios = [(one["inside"] + one["outside"]) / (two["inside"] / 2 + two["outside"]) for one, two in pairs]
    middle, lowest, highest = spread(ratios)
    share = statistics.median(one["outside"] / (one["inside"] + one["outside"]) for one, _ in pairs)
    return Row(
        bench="roots",
        what=f"{what}, at best by CPU time",
        unit="",
        ours=None,
        peer=None,
        peer_name="",
        measured=middle,
        lowest=lowest,
        highest=highest,
        note=f"{share:.0%} of the time is outside the engine",
    )
